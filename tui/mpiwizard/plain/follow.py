"""Following a run from outside: a line when something changes, and now and then how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from pathlib import Path

from mpiwizard.core.build.makefiles import count_compilations
from mpiwizard.core.build.model import RunState, StepState
from mpiwizard.core.build.progress import Progress, fraction, remaining
from mpiwizard.core.build.runs import load_run
from mpiwizard.core.context import Context
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.format import clock, duration
from mpiwizard.core.i18n import _

_LOOK_EVERY = 0.25  # seconds
_TELL_EVERY = 30.0  # seconds


def follow(context: Context, run_id: str, tell: Callable[[str], None]) -> RunState:
    """Tell of a run until it is no longer active; its last state.

    Ctrl-C and SIGTERM end the telling, not the run: WizardError (INTERRUPTED, TERMINATED) says how to come back.
    """
    told: dict[str, str] = {}
    notes = 0
    pace = Pace()
    try:
        while True:
            run = load_run(context.folders, run_id)
            for note in run.notes[notes:]:
                tell(note)
            notes = len(run.notes)
            for step in run.steps:
                _tell_change(step, told, tell)
            if not run.active:
                return run
            if text := pace.look(run):
                tell(text)
            time.sleep(_LOOK_EVERY)
    except (KeyboardInterrupt, SystemExit) as ended:
        raise WizardError(
            _(
                "The run goes on without this window: watch it with `mpiwizard attach {run}`, "
                "stop it with `mpiwizard stop {run}`."
            ).format(run=run_id),
            ExitCode.INTERRUPTED if isinstance(ended, KeyboardInterrupt) else ExitCode.TERMINATED,
        ) from None


def _tell_change(step: StepState, told: dict[str, str], tell: Callable[[str], None]) -> None:
    if step.state == told.get(step.id, "waiting"):
        return
    told[step.id] = step.state
    if step.state == "running":
        tell(f"{step.id}: {step.again}" if step.again else step.id)
    else:
        words = {
            "done": _("done"),
            "failed": _("failed"),
            "stopped": _("stopped"),
            "interrupted": _("interrupted"),
        }
        parts = [words.get(step.state, step.state), duration(step.seconds) if step.seconds else "", step.detail]
        tell(f"{step.id}: " + ", ".join(part for part in parts if part))


class Pace:
    """How far the running step is, told every `tell_every` seconds."""

    def __init__(self, tell_every: float = _TELL_EVERY) -> None:
        self._tell_every = tell_every
        self._step = ""
        self._offset = 0
        self._progress = Progress()
        self._before = 0  # compiled by earlier attempts
        self._total = 0
        self._next = 0.0

    def look(self, run: RunState) -> str:
        """A line to tell, or nothing."""
        step = run.current
        if step is None or step.state != "running" or step.id not in ("configure", "make"):
            return ""
        if step.id != self._step:
            self._begin(run, step)
        if time.monotonic() < self._next:
            return ""
        self._next = time.monotonic() + self._tell_every
        self._read(Path(run.folder) / f"{step.id}.log")
        elapsed = time.time() - step.started
        if step.id == "configure":
            return _("configure: {checks:,} checks, {clock}").format(checks=self._progress.checks, clock=clock(elapsed))
        done = min(self._progress.compiled, self._total or self._progress.compiled)
        to_do = self._total - self._before
        part = fraction(done - self._before, to_do)
        left = remaining(elapsed, part, run.plan.step("make").seconds * to_do / max(self._total, 1))
        return _("make: {done:,} of {total:,} compiled, {clock} so far, about {left} left").format(
            done=done, total=self._total, clock=clock(elapsed), left=duration(left)
        )

    def _begin(self, run: RunState, step: StepState) -> None:
        self._step, self._progress, self._offset = step.id, Progress(), 0
        self._next = time.monotonic() + self._tell_every
        self._total = count_compilations(Path(run.plan.build_folder)) if step.id == "make" else 0
        self._read(Path(run.folder) / f"{step.id}.log", step.log_offset)
        self._before = self._progress.compiled

    def _read(self, log: Path, end: float = inf) -> None:
        """Take in the log up to `end`, in bytes."""
        try:
            with log.open("rb") as file:
                file.seek(self._offset)
                while chunk := file.read(int(min(1 << 20, end - self._offset))):
                    self._offset += len(chunk)
                    self._progress.feed(chunk)
        except OSError:
            return
