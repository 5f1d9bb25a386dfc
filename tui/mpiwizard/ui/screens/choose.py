"""Choose: the ways to an MPI on this machine, best first for what matters to the person."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.content import Content

from mpiwizard.core.i18n import _
from mpiwizard.ui.screens.stage import StageScreen
from mpiwizard.ui.signs import GOOD
from mpiwizard.ui.widgets.rows import Column, Row, heading

if TYPE_CHECKING:
    from mpiwizard.core.choose.model import Choice
    from mpiwizard.core.context import Wishes
    from mpiwizard.core.detect.model import Machine

MATTERS = ("soon", "speed", "match", "learn")


def matters_text(matters: str) -> str:
    """One answer to “What matters to you?”."""
    return {
        "soon": _("run soon"),
        "speed": _("best speed"),
        "match": _("match a cluster"),
        "learn": _("learn"),
    }[matters]


class ChooseScreen(StageScreen):
    """Rows are choices; those that cannot be taken here come last and say why."""

    stage = "choose"
    columns = (Column(38), Column(9, right=True), Column(8, right=True), Column())
    BINDINGS = [
        Binding("enter", "go_on", _("Configure"), key_display="Enter"),
        *(
            Binding(str(number), f"matters('{answer}')", matters_text(answer), show=False)
            for number, answer in enumerate(MATTERS, 1)
        ),
        Binding("y", "copy", _("copy command"), key_display="y"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._choices: dict[str, Choice] = {}
        self._ranked_for: tuple[Machine, Wishes] | None = None
        self._go_on_when_ranked = False

    def entered(self) -> None:
        machine, wishes = self.wizard.walk.machine, self.wizard.session.wishes
        if machine is not None and (machine, wishes) != self._ranked_for:
            self._ranked_for = (machine, wishes)
            self._announce()
            self.ask(lambda: self.wizard.stages.choose(machine, wishes), self._ranked)

    def _ranked(self, choices: tuple[Choice, ...]) -> None:
        first_time = not self._choices
        self._choices = {choice.id: choice for choice in choices}
        if self.wizard.walk.state(self.stage) in ("waiting", "failed"):
            self.wizard.walk.mark(self.stage, "ready")
        self.refresh_rail()
        self._announce()
        remembered = self.wizard.session.choice if first_time else ""
        if remembered not in self._choices or not self._choices[remembered].available:
            remembered = next(iter(self._choices), "")
        self.rows.show(list(self._rows()), highlight=remembered)
        self.show_evidence(self.rows.row_id)
        if self._go_on_when_ranked:
            self._go_on_when_ranked = False
            self.action_go_on()

    def _announce(self) -> None:
        possible = [choice for choice in self._choices.values() if choice.available]
        if possible:
            first = _("Best for you here: {title}").format(title=_(possible[0].title))
        elif self._choices:
            first = _("No way to an MPI is open on this machine; each row says what is in its way.")
        else:
            first = _("Ranking the ways to an MPI on this machine")
        self.top.update(Content.assemble((first, "bold"), "\n", self._question()))

    def _question(self) -> Content:
        now = self.wizard.session.wishes.matters
        answers = [
            Content.assemble((f"[{number} {matters_text(answer)}]", "bold $primary"))
            if answer == now
            else Content.assemble(" ", (str(number), "bold"), f" {matters_text(answer)} ")
            for number, answer in enumerate(MATTERS, 1)
        ]
        return Content(" ").join([Content.assemble((_("What matters to you?"), "dim")), *answers])

    def _rows(self) -> Iterator[Row]:
        from mpiwizard.core.format import duration, size

        yield heading(_("WHAT YOU GET"), _("TIME"), _("DISK"), _("WHAT IS LOST"))
        for place, choice in enumerate(self._choices.values()):
            if choice.available:
                lost = " · ".join(_(lost) for lost in choice.lost) or _("nothing")
                cells = (
                    _(choice.title),
                    duration(round(choice.minutes) * 60 or choice.minutes * 60),
                    size(choice.disk),
                    lost,
                )
                yield Row(choice.id, cells, "★" if place == 0 else " ", GOOD if place == 0 else "")
            else:
                yield Row(choice.id, (_(choice.title), "–", "–", _(choice.why_not)), "✗", dim=True)

    def show_evidence(self, row_id: str) -> None:
        choice = self._choices.get(row_id)
        if choice is None:
            return
        self.evidence.show(
            _(choice.title),
            [_(choice.why_not)],
            [
                *((_("Because") if place == 0 else "", _(why)) for place, why in enumerate(choice.reasons)),
                *((_("Leaves out") if place == 0 else "", _(lost)) for place, lost in enumerate(choice.lost)),
                (_("The guide"), _(choice.guide)),
                (_("Without a screen"), _command(choice, self.wizard.session.wishes)),
            ],
        )

    def action_matters(self, answer: str) -> None:
        from msgspec.structs import replace

        self.wizard.remember(wishes=replace(self.wizard.session.wishes, matters=answer))
        self.entered()

    def action_copy(self) -> None:
        choice = self._choices.get(self.rows.row_id)
        if choice is None:
            self.refuse(_("No row is highlighted yet."))
        else:
            self.copy(_command(choice, self.wizard.session.wishes))

    def action_go_on(self) -> None:
        choice = self._choices.get(self.rows.row_id)
        if choice is None:
            self._go_on_when_ranked = True
        elif not choice.available:
            self.refuse(_(choice.why_not))
        else:
            if choice.id != self.wizard.session.choice:
                self.wizard.remember(choice=choice.id, switches={})
            self.wizard.walk.chose(choice)
            self.wizard.visit("configure")


def _command(choice: Choice, wishes: Wishes) -> str:
    """What does the same without a screen."""
    given = {
        "--recipe": choice.recipe,
        "--release": choice.release,
        "--source": choice.source,
        "--archive": wishes.archive if choice.source == "archive" else "",
        "--mirror": wishes.mirror,
        "--prefix": wishes.prefix,
    }
    return shlex.join(
        [
            "mpiwizard",
            "run",
            *(word for option, value in given.items() if value for word in (option, value)),
            *(word for axis, value in wishes.assume for word in ("--assume", f"{axis}={value}")),
            "--yes",
        ]
    )
