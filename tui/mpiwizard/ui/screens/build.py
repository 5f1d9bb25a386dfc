"""Build: the steps of a run, its live log, and what to do when it failed or was cut off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import OptionList, Static

from mpiwizard.core.format import clock, duration, memory
from mpiwizard.core.i18n import _, ngettext
from mpiwizard.ui.screens.stage import StageScreen
from mpiwizard.ui.signs import RESUMABLE, sign, style, word
from mpiwizard.ui.widgets.evidence import Evidence
from mpiwizard.ui.widgets.log_view import LogView
from mpiwizard.ui.widgets.rows import Column, Row

if TYPE_CHECKING:
    from mpiwizard.core.build.failure import FailureCard
    from mpiwizard.core.build.model import RunState, StepState
    from mpiwizard.ui.watch import View
    from mpiwizard.ui.widgets.entry import Entry

_BAR = 24  # cells
_WARNING = r"\bwarning: |\berror: "
_LATER = ("tune", "validate")  # steps with a screen of their own


class BuildScreen(StageScreen):
    """Rows are steps; below them the log of the highlighted one."""

    stage = "build"
    CSS_PATH = "build.tcss"
    columns = (Column(10), Column(8, right=True), Column())
    BINDINGS = [
        Binding("r", "resume", _("resume"), key_display="r"),
        Binding("n", "new", _("new build"), key_display="n"),
        Binding("enter", "go_on", _("results"), key_display="Enter"),
        Binding("s", "stop", _("stop"), key_display="s"),
        Binding("q", "leave_running", _("leave it running"), key_display="q"),
        Binding("q", "quit", _("quit"), key_display="q"),
        Binding("f", "follow", _("follow"), key_display="f"),
        Binding("v", "card", _("log"), key_display="v"),
        Binding("slash", "search", _("search"), key_display="/", priority=True),
        Binding("w", "warning", _("next warning"), key_display="w"),
        Binding("L", "pager", _("full log"), key_display="L"),
        Binding("y", "copy", _("copy line"), show=False, key_display="y"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._current = ""
        self._card_wanted = True
        self._is_lost = False
        self.meter = Static(id="meter", markup=False)
        self.log_view = LogView()
        self.card = Evidence(id="card")

    def panes(self) -> ComposeResult:
        self.log_view.hertz = self.wizard.hertz
        yield self.meter
        yield self.log_view
        yield self.card

    def on_mount(self) -> None:
        self.headline(_("Looking at the run"))

    def entered(self) -> None:
        if self.wizard.view is not None:
            self.run_changed(self.wizard.view)

    @property
    def run(self) -> RunState | None:
        return self.wizard.view.run if self.wizard.view is not None else None

    @property
    def active(self) -> bool:
        return self.run is not None and self.run.active

    @property
    def resumable(self) -> bool:
        return self.run is not None and self.run.state in RESUMABLE

    def offers(self, action: str) -> bool:
        if action == "resume":
            return self.resumable
        if action == "new":
            return self.resumable or self._is_lost
        if action == "card":
            return self.card.display
        if action in ("stop", "leave_running"):
            return self.active
        if action == "quit":
            return not self.active
        if action == "go_on":
            return any(self._finished(step) for step in ("install",))
        if action == "enlarge":
            return False
        if action == "follow":
            return self.log_view.display and not self.log_view.follow
        return True

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "leave_running" and not self.active:
            return False  # then the same key quits
        return super().check_action(action, parameters)

    def run_lost(self, sentence: str) -> None:
        super().run_lost(sentence)
        self._is_lost = True
        self.headline(sentence, _("n starts a new build."))
        for pane in (self.meter, self.log_view, self.card):
            pane.display = False

    def run_changed(self, view: View) -> None:
        self._is_lost, self.meter.display = False, True
        self.log_view.leave_out = f"{view.run.plan.source_folder}/"
        moved = self._move_highlight(view.run)
        self.headline(*_sentences(view))
        self.rows.show(list(_rows(view)), highlight=moved)
        self.meter.update(_meter(view))
        self._show_log_or_card(view)
        self.refresh_bindings()
        if moved in _LATER and view.run.active and self.log_view.follow:
            self.wizard.visit(moved)

    def _move_highlight(self, run: RunState) -> str:
        """The step to highlight when the run came to it and the person was not looking elsewhere."""
        current = run.current.id if run.current is not None else ""
        if run.state == "done":
            current = run.steps[-1].id
        if not current:  # between two steps
            return ""
        before, self._current = self._current, current
        # Before the first step ran, the first row was highlighted by nobody.
        was_there = not before or self.rows.row_id in ("", before)
        return current if current != before and was_there else ""

    def _show_log_or_card(self, view: View) -> None:
        step = self.rows.row_id
        card = self._card_wanted and self._has_card(step)
        self.log_view.display = not card
        self.card.display = card
        if step:
            log = Path(view.run.folder) / f"{step}.log"
            self.log_view.open(log)
            if card and view.failure is not None:
                self._fill_card(view.failure, str(log))

    def _has_card(self, step_id: str) -> bool:
        steps = self.run.steps if self.run is not None else ()
        return step_id not in _LATER and any(step.id == step_id and step.state == "failed" for step in steps)

    def _fill_card(self, failure: FailureCard, log: str) -> None:
        line = _("{file}, line {line}").format(file=log, line=failure.line) if failure.line else log
        leave_out = self.log_view.leave_out
        self.card.show(
            failure.what,
            [],
            [
                (_("Where"), failure.where.replace(leave_out, "")),
                (_("First error"), failure.evidence.replace(leave_out, "")),
                (_("Try"), failure.try_this),
                (_("Log"), line),
            ],
        )

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if self.wizard.view is not None:
            self._show_log_or_card(self.wizard.view)
            self.refresh_bindings()

    def on_log_view_follow_changed(self) -> None:
        self.refresh_bindings()

    def on_log_view_found(self, event: LogView.Found) -> None:
        if event.line is None:
            if event.pattern == _WARNING:
                self.refuse(_("This log has no warning and no error."))
            else:
                self.refuse(_("“{pattern}” is not in this log.").format(pattern=event.pattern))

    def on_entry_closed(self, event: Entry.Closed) -> None:
        self.log_view.focus()
        if event.text:
            self.log_view.find(event.text)

    def action_follow(self) -> None:
        log = self.log_view
        log.marked = None
        log.follow = True
        log.poll()

    def action_search(self) -> None:
        self._show_log()
        self.type_in(_("search the log of this step; a regular expression is welcome"))

    def action_warning(self) -> None:
        self._show_log()
        self.log_view.find(_WARNING)

    def action_card(self) -> None:
        if not self._has_card(self.rows.row_id):
            self.refuse(_("Only a step that failed has a card."))
            return
        self._card_wanted = not self._card_wanted
        if self.wizard.view is not None:
            self._show_log_or_card(self.wizard.view)
            self.refresh_bindings()

    def _show_log(self) -> None:
        if self.card.display:
            self.action_card()

    def action_copy(self) -> None:
        view = self.wizard.view
        if self.card.display and view is not None and view.failure is not None:
            self.copy(view.failure.evidence)
        else:
            self.copy(self.log_view.line_text())

    def action_pager(self) -> None:
        import os
        import shlex
        import subprocess

        path = self.log_view.path
        if path is None or not path.exists():
            self.refuse(_("This step has written no log yet."))
            return
        pager = shlex.split(os.environ.get("PAGER", "")) or ["less", "-R"]
        try:
            with self.app.suspend():
                subprocess.run([*pager, str(path)], check=False)
        except OSError as error:
            self.refuse(_("{pager} could not be started: {error}").format(pager=pager[0], error=error))

    def action_stop(self) -> None:
        from mpiwizard.ui.screens.dialogs import Question

        if not self.active:
            self.refuse(_("Nothing runs that could be stopped."))
            return
        self.app.push_screen(
            Question(
                _("Stop this build?"),
                _("What is compiled stays; resume goes on from there."),
                (("", _("Let it run")), ("stop", _("Stop it"))),
            ),
            self._stop_answered,
        )

    def _stop_answered(self, answer: str | None) -> None:
        run = self.run
        if answer == "stop" and run is not None:
            self.headline(_("Stopping the build"), _("Its commands get ten seconds to end."))
            self.ask(lambda: self.wizard.stages.stop(run.id), lambda _done: None)

    def action_leave_running(self) -> None:
        self.wizard.leave_now()

    def action_resume(self) -> None:
        run = self.run
        if run is None or not self.resumable:
            self.refuse(
                _("There is nothing to resume: this run is {state}.").format(state=word(run.state) if run else "")
            )
            return
        self._card_wanted = True
        self._current = self.rows.row_id  # the highlight goes along again
        self.headline(_("Resuming"))
        self.ask(lambda: self.wizard.stages.resume(run.id), lambda _done: self.wizard.watch_run(run.id))

    def action_new(self) -> None:
        if self.active:
            self.refuse(_("A build is running: s stops it, then n starts a new one."))
        else:
            self.wizard.visit("detect")

    def action_go_on(self) -> None:
        if self._finished("validate") or self._finished("tune"):
            self.wizard.visit("validate")
        elif self._finished("install"):
            self.wizard.visit("tune")
        elif self.resumable:
            self.refuse(_("r resumes this build; n starts a new one."))
        else:
            self.refuse(_("Tune and validate follow by themselves when the build is done."))

    def failed(self, sentence: str) -> None:
        self.refuse(sentence)  # the headline belongs to the run, and is written anew at every look

    def _finished(self, step_id: str) -> bool:
        run = self.run
        return run is not None and any(step.id == step_id and step.state == "done" for step in run.steps)


def _rows(view: View) -> Iterator[Row]:
    decisions = {decision.step: decision for decision in view.decisions}
    for step in view.run.steps:
        seconds = view.in_step if step.state == "running" else step.seconds
        time = clock(seconds) if step.state not in ("waiting", "interrupted") else ""
        detail = step.detail or word(step.state)
        if step.state == "running":
            detail = _progress(view, step)
        elif step.id in decisions and step.state != "waiting":
            detail = _decision(decisions[step.id].action, decisions[step.id].why)
            detail = (
                detail if step.state == "done" else _("{state}; it {what}").format(state=word(step.state), what=detail)
            )
        yield Row(step.id, (step.id, time, detail), sign(step.state), style(step.state), step.state == "waiting")


def _decision(action: str, why: str) -> str:
    words = {
        "keep": _("kept"),
        "first": _("to do"),
        "again": _("is done again"),
        "clean": _("is done again in a clean folder"),
        "continue": _("goes on"),
    }
    said = words.get(action, action)
    return f"{said} ({why})" if why else said


def _progress(view: View, step: StepState) -> str:
    counts = view.counts
    if step.id == "configure":
        return ngettext("{count:,} check", "{count:,} checks", counts.checks).format(count=counts.checks)
    if view.part is None:
        return _(step.title)
    return _("{compiled:,} of {expected:,} compiled  {bar} {percent:.0f} %").format(
        compiled=counts.compiled, expected=counts.expected, bar=bar(view.part), percent=100 * view.part
    )


def bar(part: float, width: int = _BAR) -> str:
    """A bar that is legible without colour: thick for what is done, thin for what is left."""
    done = round(part * width)
    return "━" * done + "─" * (width - done)


def _meter(view: View) -> str:
    counts, usage = view.counts, view.usage
    parts = [_("jobs {count}").format(count=view.run.plan.jobs)]
    if usage is not None:
        if usage.cpu is not None:
            parts.append(_("CPU {percent:.0f} %").format(percent=usage.cpu))
        parts.append(_("memory {used} of {all}").format(used=memory(usage.memory), all=memory(usage.memory_of_box)))
    parts.append(ngettext("{count} warning", "{count} warnings", counts.warnings).format(count=counts.warnings))
    parts.append(ngettext("{count} error", "{count} errors", counts.errors).format(count=counts.errors))
    return "  " + " · ".join(parts)


def _sentences(view: View) -> tuple[str, str]:
    """The headline for the state of the run."""
    run, release = view.run, view.run.plan.choice.release
    step = run.current.id if run.current is not None else ""
    notes = " ".join(run.notes)
    if run.state in ("running", "new"):
        return _running(view, step), notes or _("Safe to close: the build goes on without this window.")
    if run.state == "orphaned":
        return (
            _("The commands of this build still run, but its worker is gone."),
            _("Wait until they end, or stop them with s; resume then goes on."),
        )
    if run.state == "done":
        return (
            _("Open MPI {release} is built and proven in {prefix}, after {time}.").format(
                release=release, prefix=run.plan.prefix, time=duration(view.elapsed)
            ),
            notes or _("Enter shows what was measured."),
        )
    if run.state == "failed":
        what = view.failure.what if view.failure is not None else ""
        if step in _LATER:
            return run.failure or what, _("Enter shows what was found; r does it again; n starts a new build.")
        return run.failure or what, _("r resumes once the cause is gone; n starts a new build.")
    if run.state == "stopped":
        return _("You stopped this build in {step}.").format(step=step), _after(view)
    return _("This build was cut off in {step}. What was done before it stays.").format(step=step), _after(view)


def _after(view: View) -> str:
    redo = next((decision for decision in view.decisions if decision.action not in ("keep", "first")), None)
    if redo is None:
        return _("r resumes; n starts a new build.")
    said = _decision(redo.action, redo.why)
    return _("r resumes, and {step} {what}. n starts anew.").format(step=redo.step, what=said)


def _running(view: View, step: str) -> str:
    doing = {
        "tune": _("Tuning Open MPI {release}"),
        "validate": _("Validating Open MPI {release}"),
    }.get(step, _("Building Open MPI {release}"))
    parts = [doing.format(release=view.run.plan.choice.release)]
    if step and step not in _LATER:
        parts.append(step if view.part is None else f"{step} {100 * view.part:.0f} %")
    left = duration(_about(view.left))
    parts.append(_("{time} so far, about {left} left").format(time=duration(round(view.elapsed)), left=left))
    return " · ".join(parts)


def _about(seconds: float) -> int:
    """An estimate without digits that it cannot know: whole minutes, tens of seconds, seconds."""
    step = 60 if seconds >= 90 else 10 if seconds >= 15 else 1
    return round(seconds / step) * step
