"""Watch: everything a person wants to know of a run, looked up again and again in a thread."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mpiwizard.core.build.ansi import plain_line
from mpiwizard.core.build.progress import Progress, fraction, remaining
from mpiwizard.ui.signs import RESUMABLE

if TYPE_CHECKING:
    from mpiwizard.core.build.failure import FailureCard
    from mpiwizard.core.build.model import RunState, StepState
    from mpiwizard.core.build.resume import Decision
    from mpiwizard.core.tune.model import Trial, Tuning
    from mpiwizard.core.validate.model import Check, Metric, Report
    from mpiwizard.ui.stages import Stages
    from mpiwizard.worker.usage import Usage

_USAGE_EVERY = 1.0  # seconds; going through all processes costs some milliseconds
_READ_AT_ONCE = 1 << 20
_READ_IN_A_LOOK = 1 << 24  # bytes of each log; more is counted at the next look
_BY_COUNT = "make"  # the step whose share is counted in compilations, not in time


class Counts(NamedTuple):
    """What the logs of a run say so far. `compiled` and `expected` are files."""

    compiled: int = 0
    expected: int = 0
    checks: int = 0
    warnings: int = 0
    errors: int = 0


class View(NamedTuple):
    """One look at a run. `part` is the share of the current step, 0 to 1, None when unknown; times in seconds.

    `elapsed` is the time its steps took, without the time it lay still; `in_step` that of the current one.
    `last` is the last line the current step wrote.
    """

    run: RunState
    elapsed: float
    in_step: float
    left: float
    part: float | None
    counts: Counts
    last: str = ""
    usage: Usage | None = None
    decisions: tuple[Decision, ...] = ()
    failure: FailureCard | None = None
    trials: tuple[Trial, ...] = ()
    tuning: Tuning | None = None
    checks: tuple[Check, ...] = ()
    metrics: tuple[Metric, ...] = ()
    report: Report | None = None


class _Log:
    """The counts of one step's log, fed with what was written since the last look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read = 0
        self.progress = Progress()

    def feed(self) -> bool:
        """Count what was written since the last time; False when there is more than is read in one look."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.read)
                for _part in range(_READ_IN_A_LOOK // _READ_AT_ONCE):
                    if not (chunk := file.read(_READ_AT_ONCE)):
                        return True
                    self.read += len(chunk)
                    self.progress.feed(chunk)
        except OSError:
            return True  # the step has not written anything yet
        return False


class Watch:
    """Follows one run."""

    def __init__(self, stages: Stages, run_id: str) -> None:
        self.run_id = run_id
        self._stages = stages
        self._logs: dict[str, _Log] = {}
        self._expected = 0
        self._usage: Usage | None = None
        self._usage_at = 0.0
        self._last: View | None = None
        self._all_counted = False

    def look(self) -> View:
        """The run as it is now. Raises WizardError when it is gone."""
        run = self._stages.load_run(self.run_id)
        if self._last is not None and not run.active and run == self._last.run and self._all_counted:
            return self._last
        self._last = self._view(run)
        return self._last

    def _view(self, run: RunState) -> View:
        now, current = self._stages.now(), run.current
        counts = self._count(run)
        part = None
        if current is not None and current.id == _BY_COUNT:
            part = fraction(counts.compiled, counts.expected)
        trials, tuning = self._stages.trials(run)
        checks, metrics, report = self._stages.results(run)
        in_step = max(now - current.started, 0.0) if current is not None and current.state == "running" else 0.0
        return View(
            run,
            sum(step.seconds for step in run.steps) + in_step,
            in_step,
            _left(run, current, part, in_step),
            part,
            counts,
            self._last_line(current),
            self._measure(run, now),
            self._stages.decisions(run) if run.state in RESUMABLE else (),
            self._stages.failure(run) if run.state == "failed" else None,
            trials,
            tuning,
            checks,
            metrics,
            report,
        )

    def _count(self, run: RunState) -> Counts:
        begun = [step.id for step in run.steps if step.state != "waiting"]
        for step in begun:
            self._logs.setdefault(step, _Log(Path(run.folder) / f"{step}.log"))
        self._all_counted = all([log.feed() for log in self._logs.values()])
        if _BY_COUNT in self._logs and not self._expected:
            self._expected = self._stages.compilations(run)
        progress = {step: log.progress for step, log in self._logs.items()}
        make = progress.get(_BY_COUNT, Progress())
        return Counts(
            # A resumed make says again what it had begun when it was cut off.
            min(make.compiled, self._expected) if self._expected else make.compiled,
            self._expected,
            sum(one.checks for one in progress.values()),
            sum(one.warnings for one in progress.values()),
            make.errors,  # configure prints errors of its own trials, which mean nothing
        )

    def _last_line(self, current: StepState | None) -> str:
        log = self._logs.get(current.id) if current is not None else None
        return plain_line(log.progress.last) if log is not None else ""

    def _measure(self, run: RunState, now: float) -> Usage | None:
        if not run.active:
            return None
        if now - self._usage_at >= _USAGE_EVERY:
            self._usage, self._usage_at = self._stages.usage(run), now
        return self._usage


def _left(run: RunState, current: StepState | None, part: float | None, in_step: float) -> float:
    """Seconds until the run is done: the current step's own pace, then the estimates of the rest."""
    waiting = sum(run.plan.step(step.id).seconds for step in run.steps if step.state == "waiting")
    if current is None or current.state != "running":
        return waiting
    estimate = run.plan.step(current.id).seconds
    if current.again and part:  # the pace cannot be told: some of the part was done before this step began
        return waiting + estimate * (1 - part)
    return waiting + remaining(in_step, part, estimate)
