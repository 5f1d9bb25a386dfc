"""Detect: the facts of this machine, as they are found, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input

from mpiwizard.core.frontend import Frontend
from mpiwizard.core.i18n import _, ngettext
from mpiwizard.ui.screens.stage import StageScreen
from mpiwizard.ui.signs import sign, style
from mpiwizard.ui.widgets.rows import Column, Row, heading

if TYPE_CHECKING:
    from mpiwizard.core.detect.model import Fact, Machine
    from mpiwizard.core.recipes import Claim
    from mpiwizard.ui.widgets.entry import Entry

_LOOK_AT_THIS = ("problem", "attention")


class FactFound(Message):
    """Detection found a fact."""

    def __init__(self, fact: Fact) -> None:
        super().__init__()
        self.fact = fact


class _Listener(Frontend):
    """Hands facts from the thread that detects to the screen."""

    def __init__(self, screen: DetectScreen) -> None:
        self._screen = screen

    def fact(self, fact: Fact) -> None:
        self._screen.post_message(FactFound(fact))


class DetectScreen(StageScreen):
    """Rows are facts; those that need a look come first."""

    stage = "detect"
    columns = (Column(28), Column())
    BINDINGS = [
        Binding("enter", "go_on", _("Choose"), key_display="Enter"),
        Binding("slash", "filter", _("filter"), key_display="/", priority=True),
        Binding("y", "copy", _("copy command"), key_display="y"),
        Binding("r", "again", _("look again"), key_display="r"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._facts: dict[str, Fact] = {}
        self._filter = ""
        self._failure = ""
        self._go_on_when_done = False
        self._stale = False
        self._claims: dict[tuple[int, ...], tuple[Claim, ...]] = {}

    def on_mount(self) -> None:
        self.wizard.walk.mark(self.stage, "running")  # at once: Enter may come before the first look
        self._announce()
        self.call_after_refresh(self.detect)

    def detect(self) -> None:
        """Look at the machine; the facts of an earlier look stay until they are found again."""
        self._failure = ""
        self.wizard.walk.mark(self.stage, "running")
        self.refresh_rail()
        self._announce()
        self.ask(lambda: self.wizard.stages.detect(_Listener(self)), self._found)

    def on_fact_found(self, event: FactFound) -> None:
        self._facts[event.fact.id] = event.fact
        if not self._stale:  # many facts come at once: draw them together
            self._stale = True
            self.call_after_refresh(self._draw)

    def _found(self, machine: Machine) -> None:
        self._facts = {fact.id: fact for fact in machine.facts}
        self.wizard.walk.found(machine)
        self.refresh_rail()
        self._draw()
        if self._go_on_when_done:
            self.wizard.visit("choose")

    def failed(self, sentence: str) -> None:
        self._go_on_when_done = False
        self._failure = sentence
        super().failed(sentence)
        self._announce()

    def _draw(self) -> None:
        self._stale = False
        self._announce()
        self.rows.show(list(self._rows()))
        self.show_evidence(self.rows.row_id)

    def _announce(self) -> None:
        machine = self.wizard.walk.machine
        if self._failure:
            self.headline(self._failure, _("r looks again; nothing was changed on this machine."))
        elif machine is None or self.wizard.walk.state(self.stage) == "running":
            found = ngettext("{count} fact so far.", "{count} facts so far.", len(self._facts))
            then = (
                _("Going on as soon as all are known.")
                if self._go_on_when_done
                else _("Nothing is changed on this machine.")
            )
            self.headline(_("Looking at this machine"), f"{found.format(count=len(self._facts))} {then}")
        else:
            self.headline(machine.headline, self._summary(machine))

    def _summary(self, machine: Machine) -> str:
        from mpiwizard.core.format import duration

        problems, looks = len(machine.of_state("problem")), len(machine.of_state("attention"))
        parts = []
        if problems:
            parts.append(
                ngettext("{count} thing stops a build.", "{count} things stop a build.", problems).format(
                    count=problems
                )
            )
        if looks:
            parts.append(
                ngettext(
                    "{count} thing to look at before you build.",
                    "{count} things to look at before you build.",
                    looks,
                ).format(count=looks)
            )
        parts.append(_("Found in {time}.").format(time=duration(machine.seconds)))
        if self._filter:
            parts.append(_("Filtered by “{text}”.").format(text=self._filter))
        return " ".join(parts)

    def _rows(self) -> Iterator[Row]:
        facts = [fact for fact in self._facts.values() if self._matches(fact)]
        first = [fact for state in _LOOK_AT_THIS for fact in facts if fact.state == state]
        if first:
            yield heading(_("LOOK AT THIS"))
            yield from map(_row, first)
        for group in dict.fromkeys(fact.group for fact in facts):
            rest = [fact for fact in facts if fact.group == group and fact.state not in _LOOK_AT_THIS]
            if rest:
                yield heading(group_title(group))
                yield from map(_row, rest)
        if self._filter and not facts:
            yield heading(_("No fact has “{text}” in it.").format(text=self._filter))

    def _matches(self, fact: Fact) -> bool:
        return self._filter in f"{fact.label} {fact.text} {fact.id}".lower()

    def show_evidence(self, row_id: str) -> None:
        fact = self._facts.get(row_id)
        if fact is None:
            self.evidence.show("")
            return
        if fact.claims and fact.claims not in self._claims:
            self._claims[fact.claims] = ()
            self.ask(
                lambda: (fact.claims, self.wizard.stages.claims(fact.claims)),
                self._claims_found,
            )
        self.evidence.show(
            f"{fact.label}: {fact.text}",
            [_(fact.meaning)],
            [
                (_("Read from"), fact.read_from),
                (_("See it yourself"), fact.see_yourself),
                (_("What to do") if fact.state == "problem" else _("What follows"), _(fact.action)),
                (_("Rests on"), ", ".join(self._labels(fact))),
                *(
                    (_("The guide says"), f"{_(claim.statement)} {_(claim.correction)}")
                    for claim in self._claims.get(fact.claims, ())
                ),
            ],
        )

    def _labels(self, fact: Fact) -> Iterator[str]:
        for other in fact.rests_on:
            yield self._facts[other].label if other in self._facts else other

    def _claims_found(self, answer: tuple[tuple[int, ...], tuple[Claim, ...]]) -> None:
        self._claims.update([answer])
        self.show_evidence(self.rows.row_id)

    def action_go_on(self) -> None:
        if self.wizard.walk.state(self.stage) == "running":
            self._go_on_when_done = True
            self._announce()
        elif self.wizard.walk.machine is None:
            self.refuse(_("This machine could not be looked at. r tries again."))
        else:
            self.wizard.visit("choose")

    def action_again(self) -> None:
        if self.wizard.walk.state(self.stage) != "running":
            self._go_on_when_done = False
            self.detect()

    def action_copy(self) -> None:
        fact = self._facts.get(self.rows.row_id)
        if fact is None:
            self.refuse(_("No row is highlighted yet."))
        else:
            self.copy(fact.see_yourself or fact.text)

    def action_filter(self) -> None:
        self.type_in(_("filter the rows; Esc shows all"), self._filter)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._filter = event.value.lower().strip()
        self._draw()

    def on_entry_closed(self, event: Entry.Closed) -> None:
        self._filter = event.text.lower().strip()
        self._draw()
        self.rows.focus()


def group_title(group: str) -> str:
    """The heading over a group of facts."""
    titles = {
        "platform": _("PLATFORM"),
        "kernel": _("KERNEL"),
        "cpu": _("CPU"),
        "memory": _("MEMORY"),
        "network": _("NETWORK"),
        "tools": _("TOOLS"),
        "mpi": _("MPI ALREADY HERE"),
        "storage": _("STORAGE"),
        "sources": _("SOURCES OF OPEN MPI"),
    }
    return titles.get(group, group.upper())


def _row(fact: Fact) -> Row:
    return Row(fact.id, (_(fact.label), _(fact.text)), sign(fact.state), style(fact.state))
