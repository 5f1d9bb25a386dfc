"""Configure: every option with its reason, every command as it will run, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Static

from mpiwizard.core.errors import WizardError
from mpiwizard.core.i18n import _
from mpiwizard.ui.screens.stage import StageScreen
from mpiwizard.ui.signs import LOOK, sign
from mpiwizard.ui.widgets.rows import Column, Row, heading

if TYPE_CHECKING:
    from mpiwizard.core.configure.model import Option, Plan

_STEP = "step:"  # before a step's id, since an option may have the same
_NOTE = "note:"  # before a note's place


class ConfigureScreen(StageScreen):
    """Rows are options, steps and notes. Enter starts the build."""

    stage = "configure"
    CSS_PATH = "configure.tcss"
    columns = (Column(34), Column())
    BINDINGS = [
        Binding("enter", "go_on", _("start the build"), key_display="Enter"),
        Binding("space", "switch", _("switch"), key_display="Space"),
        Binding("p", "prefix", _("install to…"), key_display="p"),
        Binding("y", "copy", _("copy command"), key_display="y"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._made_from: tuple[Any, ...] | None = None
        self._problem = ""
        self._command = Static(id="command", markup=False)
        self._starting = False

    def foot(self) -> ComposeResult:
        yield self._command

    def entered(self) -> None:
        walk, session = self.wizard.walk, self.wizard.session
        machine, choice = walk.machine, walk.choice
        if machine is None or choice is None:
            return
        wanted = (machine, choice, session.wishes, dict(session.switches))
        if wanted != self._made_from or walk.state(self.stage) == "outdated":
            self._made_from = wanted
            self._announce(_("Making the plan"))
            self.ask(lambda: self._plan(*wanted), self._planned)

    def _plan(self, *wanted: Any) -> tuple[Plan, str]:
        plan = self.wizard.stages.plan(*wanted)
        try:
            self.wizard.stages.check(wanted[0], plan)
        except WizardError as error:
            return plan, str(error)
        return plan, ""

    def _planned(self, answer: tuple[Plan, str]) -> None:
        plan, self._problem = answer
        self.wizard.walk.planned(plan)
        self.refresh_rail()
        self._announce()
        self.rows.show(list(self._rows(plan)))
        self.show_evidence(self.rows.row_id)
        self._command.update(Content.assemble(("$ ", "bold $primary"), _shortened(plan)))

    def failed(self, sentence: str) -> None:
        self._made_from = None
        self._starting = False
        super().failed(sentence)

    def _announce(self, waiting: str = "") -> None:
        from mpiwizard.core.format import duration, size

        plan = self.wizard.walk.plan
        if waiting or plan is None:
            self.headline(waiting)
        elif self._problem:
            self.headline(self._problem, _("Nothing was started; nothing was changed. Enter checks again."))
        else:
            replaces = [f"{sign('attention')} {plan.replaces}"] if plan.replaces else []
            disk = _("{disk} of disk while building, {kept} afterwards. Never asks for root.").format(
                disk=size(plan.disk), kept=size(plan.disk_kept)
            )
            minutes = duration(round(plan.seconds / 60) * 60 or plan.seconds)
            self.headline(
                _("Open MPI {release} in {prefix}: about {time}.").format(
                    release=plan.choice.release, prefix=plan.prefix, time=minutes
                ),
                "\n".join([*replaces, disk]),
            )

    def _rows(self, plan: Plan) -> Iterator[Row]:
        from mpiwizard.core.format import clock

        yield heading(_("OPTIONS"))
        for option in plan.options:
            yield _option_row(option)
        yield heading(_("STEPS"))
        for step in plan.steps:
            yield Row(_STEP + step.id, (f"{step.id}", f"{clock(step.seconds):>6}  {_(step.title)}"), "○")
        if plan.notes:
            yield heading(_("NOTES"))
        for place, note in enumerate(plan.notes):
            yield Row(f"{_NOTE}{place}", (note,))

    def show_evidence(self, row_id: str) -> None:
        plan = self.wizard.walk.plan
        if plan is None:
            return
        if row_id.startswith(_STEP):
            step = plan.step(row_id.removeprefix(_STEP))
            self.evidence.show(
                _(step.title),
                [],
                [
                    *((_("Runs") if place == 0 else "", line) for place, line in enumerate(step.script)),
                    (_("In"), step.folder),
                ],
            )
            return
        if row_id.startswith(_NOTE):
            self.evidence.show("", [plan.notes[int(row_id.removeprefix(_NOTE))]])
            return
        option = next((option for option in plan.options if option.id == row_id), None)
        if option is not None:
            self.evidence.show(
                option.argument,
                [_what_it_means(option)],
                [
                    (_("Conflict"), _(option.conflict)),
                    (_("If on"), "" if option.enabled else _(option.reason)),
                    (_("Effect"), _(option.effect)),
                    (_("Leaves out"), _(option.lost)),
                ],
            )

    def action_switch(self) -> None:
        plan = self.wizard.walk.plan
        options = plan.options if plan is not None else ()
        option = next((option for option in options if option.id == self.rows.row_id), None)
        if option is None:
            self.refuse(_("Only options can be switched; a step is always taken."))
        elif option.fixed:
            self.refuse(_("{option} is fixed: {reason}").format(option=option.argument, reason=_(option.reason)))
        else:
            switches = {**self.wizard.session.switches, option.id: not option.enabled}
            self.wizard.remember(switches=switches)
            self.entered()

    def action_prefix(self) -> None:
        from mpiwizard.ui.screens.dialogs import TextQuestion

        if (plan := self.wizard.walk.plan) is None:
            self.refuse(_("The plan is still being made."))
            return
        self.app.push_screen(
            TextQuestion(
                _("Where shall Open MPI be installed?"),
                _("An absolute folder you may write to, without blanks."),
                plan.prefix,
            ),
            self._prefix_given,
        )

    def _prefix_given(self, prefix: str | None) -> None:
        from msgspec.structs import replace

        if prefix:
            self.wizard.remember(wishes=replace(self.wizard.session.wishes, prefix=prefix))
        self.entered()

    def action_copy(self) -> None:
        if (plan := self.wizard.walk.plan) is None:
            self.refuse(_("The plan is still being made."))
        else:
            self.copy(plan.configure_line)

    def action_go_on(self) -> None:
        walk = self.wizard.walk
        plan, machine, run = walk.plan, walk.machine, walk.run
        if plan is None or machine is None or self._starting:
            self.refuse(_("The plan is still being made."))
        elif self._problem:
            self._made_from = None  # the disk may have room by now
            self.entered()
        elif conflict := next((option.conflict for option in plan.options if option.enabled and option.conflict), ""):
            self.refuse(_(conflict))
        elif run is not None and run.active:
            self.refuse(_("A build is running already: 4 shows it, s there stops it."))
        else:
            self._starting = True
            self._announce(_("Starting the build"))
            self.ask(lambda: self.wizard.stages.start(plan), self._started)

    def _started(self, run_id: str) -> None:
        self._starting = False
        self._made_from = None  # the next plan gets a run of its own
        self.wizard.walk.mark(self.stage, "done")
        self.wizard.remember(run=run_id)
        self.wizard.watch_run(run_id)
        self.wizard.visit("build")


def _shortened(plan: Plan) -> str:
    """The configure command, with … for the run's own folder; `y` copies it in full."""
    return plan.configure_line.replace(str(PurePath(plan.source_folder).parent), "…")


def _what_it_means(option: Option) -> str:
    """Why the option is on, or what there is since it is off."""
    if option.fixed:
        return _("fixed: {reason}").format(reason=_(option.reason))
    if option.enabled:
        return _(option.reason)
    return _("keeps {lost}").format(lost=_(option.lost)) if option.lost else ""


def _option_row(option: Option) -> Row:
    state = _("on ") if option.enabled else _("off")
    box = "[x]" if option.enabled else "[ ]"
    cells = (f"{box} {state} {option.argument}", _(option.conflict) or _what_it_means(option))
    if option.conflict:
        return Row(option.id, cells, "!", LOOK)
    return Row(option.id, cells, "=" if option.fixed else " ", dim=not option.enabled)
