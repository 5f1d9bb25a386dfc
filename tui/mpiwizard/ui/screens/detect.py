"""Detect: the facts of this machine, as they are found, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input

from mpiwizard.core.frontend import Frontend
from mpiwizard.core.i18n import _, ngettext
from mpiwizard.ui.screens.stage import StageScreen
from mpiwizard.ui.signs import LOOK, sign, style
from mpiwizard.ui.widgets.rows import MARGIN, Column, Row, heading, remark

if TYPE_CHECKING:
    from mpiwizard.core.detect.model import Fact, Machine
    from mpiwizard.core.recipes import Claim
    from mpiwizard.ui.widgets.entry import Entry

_LOOK_AT_THIS = ("problem", "attention")
_ASKING = "asking"  # id of the row that stands for sources that have not answered
_ROWS_FOR_REMARKS = 20  # lines of a terminal from which on a row to look at says below what it would break
_LINES_OF_A_REMARK = 2  # the evidence has it in full


class FactFound(Message):
    """A look, known by its number, found a fact."""

    def __init__(self, look: int, fact: Fact) -> None:
        super().__init__()
        self.look = look
        self.fact = fact


class _Listener(Frontend):
    """Hands facts from the thread that detects to the screen."""

    def __init__(self, screen: DetectScreen, look: int) -> None:
        self._screen = screen
        self._look = look

    def fact(self, fact: Fact) -> None:
        self._screen.post_message(FactFound(self._look, fact))


class DetectScreen(StageScreen):
    """Rows are facts; those that need a look come first.

    A look at the box takes half a second. The sources are asked after it, in the background: they may take
    long, and only Choose needs them.
    """

    stage = "detect"
    columns = (Column(28, least=28), Column())  # wide enough for every label: no row shifts when others come
    BINDINGS = [
        Binding("enter", "go_on", _("Choose"), key_display="Enter"),
        Binding("slash", "filter", _("filter"), key_display="/", priority=True),
        Binding("o", "overrule", _("overrule"), key_display="o", tooltip=_("overrule what the platform is")),
        Binding("y", "copy", _("copy"), key_display="y", tooltip=_("copy the command that shows it")),
        Binding("Y", "copy_all", _("copy all of the evidence"), key_display="Y", show=False),
        Binding("r", "again", _("again"), key_display="r", tooltip=_("look again")),
        Binding("escape", "all_rows", _("show all rows"), key_display="Esc", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._facts: dict[str, Fact] = {}
        self._look = 0  # number of the latest look; what an earlier one says is not heard
        self._heard = 0  # facts of the latest look
        self._box: Machine | None = None  # what the latest look found, once it has ended
        self._asking = False
        self._sources_known = False
        self._filter = ""
        self._failure = ""
        self._go_on_when_known = False
        self._stale = False
        self._claims: dict[tuple[int, ...], tuple[Claim, ...]] = {}

    # --- looking -----------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.wizard.walk.looks()  # at once: Enter may come before the first look
        self._announce()
        self.call_after_refresh(self.look)

    def look(self) -> None:
        """Look at the machine; the facts of an earlier look stay until they are found again."""
        self._look, self._heard = self._look + 1, 0
        self._box = None
        self._failure = ""
        self.wizard.walk.looks()
        self.refresh_rail()
        self._announce()
        look = self._look
        self.ask(
            lambda: (look, self.wizard.stages.detect(_Listener(self, look), self.wizard.session.wishes)), self._found
        )

    def on_fact_found(self, event: FactFound) -> None:
        if event.look != self._look:
            return
        self._facts[event.fact.id] = event.fact
        self._heard += 1
        if not self._stale:  # many facts come at once: draw them together
            self._stale = True
            self.call_after_refresh(self._draw)

    def _found(self, answer: tuple[int, Machine]) -> None:
        look, machine = answer
        if look != self._look:
            return
        self._box = machine
        self._facts = {fact.id: fact for fact in (*machine.facts, *self._sources())}
        self.wizard.walk.mark(self.stage, "done")
        if not self._sources_known and not self._asking:
            self._asking = True
            self.ask(lambda: self.wizard.stages.sources(machine, _Listener(self, look)), self._answered)
        self._settle()

    def _answered(self, machine: Machine) -> None:
        self._asking, self._sources_known = False, True
        self._facts.update((fact.id, fact) for fact in machine.facts if fact.group == "sources")
        self._settle()

    def _sources(self) -> Iterator[Fact]:
        return (fact for fact in self._facts.values() if fact.group == "sources")

    def _settle(self) -> None:
        """Go on when both the box and its sources are known."""
        if self._box is not None and self._sources_known:
            from msgspec.structs import replace

            self.wizard.walk.found(replace(self._box, facts=tuple(self._facts.values())))
        self.refresh_rail()
        self._draw()
        if self._go_on_when_known and self.wizard.walk.machine is not None and self.is_current:
            self._go_on_when_known = False
            self._announce()
            self.wizard.visit("choose")

    def failed(self, sentence: str) -> None:
        self._asking = self._go_on_when_known = False
        self._failure = sentence
        super().failed(sentence)
        self._draw()

    # --- what is shown -----------------------------------------------------------------------------

    def _draw(self) -> None:
        self._stale = False
        self._announce()
        if self.has_class("-evidence") or self.focused is self.evidence:
            self.rows.hold()  # the person is reading about this row
        self.rows.show(list(self._rows()))
        self.show_evidence(self.rows.row_id)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._draw)  # when the rows have their new width

    def _announce(self) -> None:
        if self._failure:
            self.headline(self._failure, _("r looks again; nothing was changed on this machine."))
        elif self._box is None:
            found = ngettext("{count} fact so far.", "{count} facts so far.", self._heard).format(count=self._heard)
            then = (
                _("Going on as soon as all are known.")
                if self._go_on_when_known
                else _("Nothing is changed on this machine.")
            )
            self.headline(_("Looking at this machine"), f"{found} {then}")
        elif self._go_on_when_known:
            self.headline(self._folded(self._box.headline), _("Going on as soon as the sources have answered."))
        else:
            self.headline(self._folded(self._box.headline), " ".join(self._summary(self._box.seconds)))

    def _folded(self, headline: str) -> str:
        """The headline in lines that end between two of its parts."""
        room = self.app.size.width - 2
        lines: list[str] = []
        for part in headline.split(" · "):
            if lines and cell_len(longer := f"{lines[-1]} · {part}") <= room:
                lines[-1] = longer
            else:
                lines.append(part)
        return "\n".join(lines)

    def _summary(self, seconds: float) -> Iterator[str]:
        if self._filter:
            yield _("Only rows with “{text}” are shown; Esc shows all.").format(text=self._filter)
            return
        states = [fact.state for fact in self._facts.values()]
        if problems := states.count("problem"):
            stops = ngettext("{count} thing stops a build.", "{count} things stop a build.", problems)
            yield stops.format(count=problems)
        if looks := states.count("attention"):
            yield ngettext(
                "{count} thing to look at before you build.", "{count} things to look at before you build.", looks
            ).format(count=looks)
        if not problems and not looks:
            yield _("Nothing to look at before you build.")
        yield _("Found in {seconds:.1f} s.").format(seconds=seconds)
        if assume := self.wizard.session.wishes.assume:
            names = ", ".join(self._label(f"platform.{axis}") for axis, _value in assume)
            yield _("Overruled: {names}.").format(names=names)
        if self._asking:
            yield _("Sources are being asked.")

    def _rows(self) -> Iterator[Row]:
        from mpiwizard.core.detect.evidence import group_names

        facts = self._facts_to_show()
        first = [fact for state in _LOOK_AT_THIS for fact in facts if fact.state == state]
        if first:
            yield heading(_("LOOK AT THIS"), style=LOOK)
            yield from self._rows_to_look_at(first)
        asking = self._asking and not self._filter
        for group, name in group_names().items():
            rest = [fact for fact in facts if fact.group == group and fact.state not in _LOOK_AT_THIS]
            if rest or (asking and group == "sources"):
                yield heading(name.upper())
                yield from map(_row, rest)
        if asking:
            yield Row(_ASKING, (_("asking where Open MPI can be had …"),), sign("running"), dim=True)
        if self._filter and not facts:
            yield heading(_("No fact has “{text}” in it.").format(text=self._filter))

    def _rows_to_look_at(self, facts: Iterable[Fact]) -> Iterator[Row]:
        from mpiwizard.core.detect.evidence import what_breaks

        for fact in facts:
            yield _row(fact)
            if self.app.size.height >= _ROWS_FOR_REMARKS:
                room = max(self.rows.content_region.width - MARGIN - 1, 1)  # the bar to scroll with may come
                lines = wrap(what_breaks(fact), room, max_lines=_LINES_OF_A_REMARK, placeholder=" …")
                yield from map(remark, lines)

    def _facts_to_show(self) -> list[Fact]:
        """In their final order, whatever order they came in."""
        if not self._facts:
            return []
        from mpiwizard.core.detect.survey import in_order

        return [
            fact
            for fact in in_order(list(self._facts.values()))
            if self._filter in f"{fact.label} {fact.text} {fact.id}".lower()
        ]

    def show_evidence(self, row_id: str) -> None:
        fact = self._facts.get(row_id)
        if fact is not None:
            self._show_fact(fact)
        elif row_id == _ASKING:
            self.evidence.show(
                _("Asking where Open MPI can be had"),
                [
                    _("Open MPI's own site, or the mirror you named, and the servers of this distribution are asked."),
                    _("Nothing else goes out; with --offline nobody is asked."),
                ],
            )
        else:
            self.evidence.show("")

    def _show_fact(self, fact: Fact) -> None:
        from mpiwizard.core.detect.evidence import evidence

        if fact.claims and fact.claims not in self._claims:
            self._claims[fact.claims] = ()
            self.ask(lambda: (fact.claims, self.wizard.stages.claims(fact.claims)), self._claims_found)
        says = (f"{_(claim.statement)} {_(claim.correction)}" for claim in self._claims.get(fact.claims, ()))
        self.evidence.show(
            f"{fact.label}: {fact.text}",
            [fact.meaning],
            [*evidence(fact, self._label), *((_("The guide says"), text) for text in says)],
            verbatim=(_("The text that was read"), fact.raw),
        )

    def _label(self, fact_id: str) -> str:
        return self._facts[fact_id].label if fact_id in self._facts else fact_id

    def _claims_found(self, answer: tuple[tuple[int, ...], tuple[Claim, ...]]) -> None:
        self._claims.update([answer])
        self.show_evidence(self.rows.row_id)

    # --- what keys do ------------------------------------------------------------------------------

    def action_go_on(self) -> None:
        if self.wizard.walk.machine is not None:
            self.wizard.visit("choose")
        elif self._failure:
            self.refuse(_("There is nothing to go on with yet; r looks again."))
        else:
            self._go_on_when_known = True
            self._announce()

    def action_again(self) -> None:
        if self.wizard.walk.state(self.stage) != "running":
            self._go_on_when_known = self._sources_known = False
            self.look()

    def action_overrule(self) -> None:
        from mpiwizard.core.detect.facts import labels
        from mpiwizard.ui.screens.overrule import axis_of, question

        axes = self.wizard.stages.axes()
        axis = axis_of(self.rows.row_id, axes)
        if not axis:
            names = ", ".join(labels()[f"platform.{axis}"] for axis in axes)
            self.refuse(_("What can be overruled is the platform: {names}.").format(names=names))
            return
        fact = self._facts[self.rows.row_id]
        assume = self.wizard.session.wishes.assume
        self.app.push_screen(question(fact, axes[axis], assume), lambda answer: self._overruled(axis, answer))

    def _overruled(self, axis: str, answer: str | None) -> None:
        from msgspec.structs import replace

        from mpiwizard.ui.screens.overrule import assumed

        wishes = self.wizard.session.wishes
        if answer and (assume := assumed(wishes.assume, axis, answer)) != wishes.assume:
            self.wizard.remember(wishes=replace(wishes, assume=assume))
            self._go_on_when_known = False
            self.look()

    def action_copy(self) -> None:
        fact = self._facts.get(self.rows.row_id)
        if fact is None:
            self.refuse(_("This row has nothing to copy."))
        else:
            self.copy(fact.see_yourself or fact.text)

    def action_copy_all(self) -> None:
        if self.rows.row_id not in self._facts:
            self.refuse(_("This row has nothing to copy."))
        else:
            self.app.copy_to_clipboard(self.evidence.text)
            self.refuse(_("Copied: all of the evidence for {label}").format(label=self._label(self.rows.row_id)))

    def action_filter(self) -> None:
        self.type_in(_("filter the rows; Esc shows all"), self._filter)

    def action_all_rows(self) -> None:
        self._filter = ""
        self._draw()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._filter = event.value.lower().strip()
        self._draw()

    def on_entry_closed(self, event: Entry.Closed) -> None:
        self._filter = event.text.lower().strip()
        self._draw()
        self.rows.focus()


def _row(fact: Fact) -> Row:
    return Row(fact.id, (fact.label, fact.text), sign(fact.state), style(fact.state))
