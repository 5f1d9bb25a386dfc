"""The full-screen interface: one screen per stage, and the run that is watched."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.screen import Screen
from textual.theme import Theme

from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.i18n import _
from mpiwizard.ui.screens.stage import StageScreen, as_sentence, how_to_use
from mpiwizard.ui.signs import RESUMABLE, STAGES, stage_title
from mpiwizard.ui.walk import Walk

if TYPE_CHECKING:
    from textual.timer import Timer

    from mpiwizard.core.build.model import RunState
    from mpiwizard.core.context import Context, Wishes
    from mpiwizard.core.session import Session
    from mpiwizard.ui.stages import Stages
    from mpiwizard.ui.watch import View, Watch

_LOOK_EVERY = 0.25  # seconds, while a run is active
_LOOK_AT_ENDED_EVERY = 2.0  # seconds; somebody may resume it elsewhere
# Blue for what is well, orange for what needs a look: told apart with any kind of colour vision.
_THEME = Theme(
    name="mpiwizard",
    primary="#6cb6ff",
    secondary="#6cb6ff",
    success="#6cb6ff",
    warning="#ffb454",
    error="#ffb454",
    accent="#6cb6ff",
    foreground="#d7dde4",
    background="#12161b",
    surface="#12161b",
    panel="#1d242c",
    dark=True,
    variables={
        "block-cursor-background": "#24415f",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-text-style": "none",
    },
)


def _stage_screen(stage: str) -> Screen[Any]:
    """The screen of a stage; its module is imported when it is first shown."""
    module = import_module(f"mpiwizard.ui.screens.{stage}")
    screen: StageScreen = getattr(module, f"{stage.capitalize()}Screen")()
    return screen


class WizardApp(App[str]):
    """Shows the six stages. Everything it knows comes from `stages`.

    `run_id` is the run to attach to; `hertz` how often a log may be drawn in a second. What it returns is
    the line a person needs next, in the shell.
    """

    TITLE = "mpiwizard"
    CSS_PATH = "wizard.tcss"
    DEFAULT_MODE = "detect"
    HORIZONTAL_BREAKPOINTS = [(0, "-cramped"), (60, "-narrow"), (110, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (16, "-low"), (36, "-tall")]
    BINDINGS = [
        Binding("ctrl+q", "leave", _("quit"), show=False, priority=True, key_display="Ctrl+Q"),
        Binding("ctrl+c", "leave", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", _("to the shell; fg comes back"), show=False, key_display="Ctrl+Z"),
    ]

    def __init__(
        self,
        stages: Stages,
        run_id: str | None = None,
        *,
        no_colour: bool = False,
        animations: bool = True,
        hertz: float = 30.0,
    ) -> None:
        if run_id:
            self.DEFAULT_MODE = "build"  # type: ignore[misc]  # the stage to start in depends on the run
        # Textual does not load the styles of the screen it starts with.
        styles: list[str | PurePath] | None = ["wizard.tcss", f"screens/{self.DEFAULT_MODE}.tcss"] if run_id else None
        super().__init__(css_path=styles, ansi_color=True if no_colour else None)
        self.register_theme(_THEME)
        self.theme = _THEME.name
        if not animations:
            self.animation_level = "none"
        self.stages = stages
        self.walk = Walk()
        self.hertz = hertz
        self.view: View | None = None
        self._session: Session | None = None
        self._watch: Watch | None = None
        self._next_look: Timer | None = None
        self._first_run = run_id

    @property
    def session(self) -> Session:
        """What the person decided so far, also in earlier starts."""
        if self._session is None:
            self._session = self.stages.session()
        return self._session

    def remember(self, **changes: Any) -> None:
        """Keep a decision for this start and the next."""
        from msgspec.structs import replace

        self._session = replace(self.session, **changes)
        try:
            self.stages.remember(self._session)
        except OSError as error:
            why = error.strerror or str(error)
            self.notify(_("This decision is not kept for the next start: {why}").format(why=why), markup=False)

    def get_default_screen(self) -> Screen[Any]:
        return _stage_screen(self.DEFAULT_MODE)

    def on_mount(self) -> None:
        for stage in STAGES:  # not as MODES: then Textual would read all styles twice before the first paint
            self.add_mode(stage, partial(_stage_screen, stage))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._ended_by, number)
        if self._first_run:
            self.call_after_refresh(self.watch_run, self._first_run)

    def _ended_by(self, number: int) -> None:
        self.exit(return_code=128 + number)  # leaves the terminal as it was

    def visit(self, stage: str) -> None:
        """Show a stage, or say why there is nothing to show yet."""
        if why := self._why_not(stage):
            self.notify(why, markup=False)
        elif not isinstance(self.screen, StageScreen) or self.screen.stage != stage:
            self.switch_mode(stage)

    def watch_run(self, run_id: str) -> None:
        """Follow this run from now on."""
        from mpiwizard.ui.watch import Watch

        if self._next_look is not None:
            self._next_look.stop()
        self._watch = Watch(self.stages, run_id)
        self._look()

    def action_leave(self) -> None:
        run = self.walk.run
        if run is None or not run.active:
            self.leave_now()
            return
        from mpiwizard.ui.screens.dialogs import Question

        if isinstance(self.screen, Question):
            return
        self.push_screen(
            Question(
                _("A build is running. It goes on without this window."),
                _("`mpiwizard attach` comes back to it, from any terminal."),
                (
                    ("leave", _("Leave it running and quit")),
                    ("stop", _("Stop the build and quit; resume continues it later")),
                    ("", _("Stay here")),
                ),
            ),
            self._leave,
        )

    def leave_now(self) -> None:
        """Quit without a question; a running build goes on."""
        self.exit(last_words(self.walk.run), exit_code(self.walk.run))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        for number, stage in enumerate(STAGES, 1):
            yield SystemCommand(
                _("Go to {number} {stage}").format(number=number, stage=stage_title(stage)),
                self._why_not(stage) or _("Show what this stage found or does"),
                partial(self.visit, stage),
            )
        if isinstance(screen, StageScreen):
            for binding in type(screen).BINDINGS:
                if isinstance(binding, Binding) and screen.offers(binding.action):
                    yield SystemCommand(
                        _("Here: {what}").format(what=binding.tooltip or binding.description),
                        _("Key {key}").format(key=binding.key_display or binding.key),
                        partial(self.run_action, binding.action, screen),
                    )
            yield SystemCommand(_("Help"), _("Keys and signs of this screen"), screen.action_help)
        yield SystemCommand(_("Colours"), _("Choose another theme"), self.action_change_theme)
        yield SystemCommand(_("Quit"), _("A running build goes on"), self.action_leave)

    def _leave(self, answer: str | None) -> None:
        if answer == "leave":
            self.leave_now()
        elif answer == "stop" and self.walk.run is not None:
            self.run_worker(self._stop_and_exit, thread=True)

    def _stop_and_exit(self) -> None:
        try:
            if self.walk.run is not None:
                self.stages.stop(self.walk.run.id)
        except WizardError as error:
            self.call_later(self.notify, str(error), markup=False)
        else:
            self.call_later(self.exit)

    def _why_not(self, stage: str) -> str:
        walk = self.walk
        if stage in ("choose", "configure") and walk.machine is None:
            return {
                "waiting": _("This window has not looked at the machine; 1 does."),
                "done": _("The sources of Open MPI have to answer first."),
                "failed": _("This machine could not be looked at; r on Detect tries again."),
            }.get(walk.state("detect"), _("Detection has to finish first."))
        if stage == "configure" and walk.choice is None:
            return _("Choose a way first: Enter on Choose.")
        if stage in ("build", "tune", "validate") and walk.run is None and self._watch is None:
            return _("Nothing is being built yet: Enter on Configure starts it.")
        return ""

    def _look(self) -> None:
        if (watch := self._watch) is not None:
            self.run_worker(lambda: self._look_in_thread(watch), thread=True, group="look")

    def _look_in_thread(self, watch: Watch) -> None:
        try:
            view = watch.look()
        except Exception as error:
            self.call_later(self._lost, watch, as_sentence(error))
        else:
            self.call_later(self._seen, watch, view)

    def _seen(self, watch: Watch, view: View) -> None:
        if watch is not self._watch:
            return
        self._next_look = self.set_timer(_LOOK_EVERY if view.run.active else _LOOK_AT_ENDED_EVERY, self._look)
        if view is self.view:
            return
        self.view = view
        self.walk.runs(view.run)
        for screen in (self.screen, *self.screen_stack):
            if isinstance(screen, StageScreen):
                screen.refresh_rail()
                screen.run_changed(view)
                break

    def _lost(self, watch: Watch, sentence: str) -> None:
        if watch is not self._watch:
            return
        self._watch = self.view = None
        self.walk.lost_run()
        for screen in (self.screen, *self.screen_stack):
            if isinstance(screen, StageScreen):
                screen.refresh_rail()
                screen.run_lost(sentence)
                break


def exit_code(run: RunState | None) -> int:
    """The exit status that tells how the watched run ended; 0 when there was none or it goes on."""
    return ExitCode.STEP_FAILED if run is not None and run.state == "failed" else ExitCode.DONE


def last_words(run: RunState | None) -> str:
    """What the shell says after the interface: how to come back to a build, or how to use what it made."""
    if run is not None and run.active:
        return _("The build goes on. Come back with: mpiwizard attach {run}").format(run=run.id)
    return how_to_use(run.plan) if run is not None and run.state == "done" else ""


def run_to_show(stages: Stages) -> str | None:
    """The run a person finds on starting: one that is active, else the newest if it can be resumed."""
    runs = stages.runs()
    active = next((run.id for run in runs if run.active), None)
    return active or next((run.id for run in runs[:1] if run.state in RESUMABLE), None)


def run(context: Context, wishes: Wishes, run_id: str | None = None, *, mouse: bool = True) -> int:
    """Show the interface until the person leaves it; the exit status of the command."""
    from mpiwizard.ui.stages import RealStages

    stages = RealStages(context, wishes)
    remote = "SSH_CONNECTION" in os.environ
    app = WizardApp(
        stages,
        run_id or run_to_show(stages),
        no_colour="NO_COLOR" in os.environ,
        animations=not remote,
        hertz=10.0 if remote else 30.0,
    )
    if words := app.run(mouse=mouse):
        print(words, file=sys.stderr)  # not by Textual, which would break a long path into lines
    return app.return_code or 0
