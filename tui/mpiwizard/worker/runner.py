"""The worker: takes the locks, goes to the background, runs the steps of a plan one after the other."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from mpiwizard.core.build.environment import step_environment
from mpiwizard.core.build.journal import Journal, read_journal
from mpiwizard.core.build.manifest import begin_manifest, write_manifest
from mpiwizard.core.build.model import RunState
from mpiwizard.core.build.resume import CLEAN, CONTINUE, FIRST, KEEP, Decision, decide, remove_torn
from mpiwizard.core.build.runs import fold, read_plan
from mpiwizard.core.build.summary import summarize
from mpiwizard.core.configure.model import Plan, Step
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.i18n import _
from mpiwizard.core.locks import prefix_lock, take_lock

_POLL = 0.1  # seconds between looks at the running command
_GRACE = 5.0  # seconds between SIGTERM and SIGKILL: make removes half-written targets


class StepResult(msgspec.Struct, frozen=True):
    """What one of our own steps leaves in `<step>.result.json`: one line about what it did."""

    detail: str = ""


def run(folder: Path) -> int:
    """Drive the run in this folder to its end, in the background. 75 when another worker has it.

    Returns in the process that called, as soon as the locks are held and the journal says so.
    """
    plan = read_plan(folder)
    Journal(folder / "journal.jsonl", time.time).close()  # one that cannot be written must be told now
    locks = [take_lock(folder / "worker.lock"), take_lock(folder / "lock")]
    state = folder.parent.parent
    for prefix in dict.fromkeys((plan.prefix, plan.fallback.prefix if plan.fallback else plan.prefix)):
        locks.append(take_lock(prefix_lock(state, prefix)))
    if None in locks:
        return ExitCode.LOCKED
    if os.fork():
        os._exit(0)  # the interface reaps this half at once; no zombie later
    # exec renews the environment that /proc shows, so that `stop` finds the worker by its mark.
    os.environ["MPIWIZARD_WORKER"] = str(folder)
    inherited = [lock for lock in locks if lock is not None]
    for lock in inherited:
        os.set_inheritable(lock, True)
    numbers = ",".join(map(str, inherited))
    os.execv(sys.executable, [sys.executable, "-m", "mpiwizard.worker.runner", str(folder), numbers])


class _Worker:
    def __init__(self, folder: Path, locks: list[int]) -> None:
        self._folder = folder
        # Every command inherits all locks but the worker's own, the first.
        self._command_locks = locks[1:]
        self._journal = Journal(folder / "journal.jsonl", time.time)
        self._stop_wanted = False

    def drive(self) -> int:
        """Run what is to be run; exit status. When the worker itself cannot go on, stderr has the reason."""
        signal.signal(signal.SIGTERM, self._want_stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return self._drive()
        except (OSError, WizardError) as error:  # no room for the journal, a folder that was removed
            print(_complaint(error), file=sys.stderr)
            return ExitCode.STEP_FAILED

    def _drive(self) -> int:
        before = self._state()
        decisions = decide(before)
        self._journal.write("run-started", pid=os.getpid())
        plan = before.plan
        outcome, text = self._steps(plan, decisions)
        root = read_plan(self._folder)
        if outcome == "failed" and root.fallback is not None and plan == root and self._source_failed(plan):
            self._journal.write("plan-changed", text=text)
            outcome, text = self._steps(root.fallback, decide(self._state()))
        self._journal.write("run-finished", outcome=outcome, text=text)
        return 0 if outcome == "done" else 1

    def _state(self) -> RunState:
        events = read_journal(self._folder / "journal.jsonl")
        return fold(read_plan(self._folder), events, self._folder, worker=False, commands=False)

    def _source_failed(self, plan: Plan) -> bool:
        return any(step.state == "failed" and step.id in ("fetch", "verify") for step in self._state().steps)

    def _steps(self, plan: Plan, decisions: tuple[Decision, ...]) -> tuple[str, str]:
        """Run the steps; outcome and, unless done, the sentence that says why."""
        for step, decision in zip(plan.steps, decisions, strict=True):
            if self._stop_wanted:
                return "stopped", _("Stopped on request before {step}.").format(step=step.id)
            if decision.action == KEEP:
                self._journal.write("step-kept", step=step.id, text=decision.why)
                continue
            outcome, text = self._step(plan, step, decision)
            if outcome != "done":
                return outcome, text
        return "done", ""

    def _step(self, plan: Plan, step: Step, decision: Decision) -> tuple[str, str]:
        started = time.monotonic()
        try:
            self._prepare(plan, step, decision)
            process, offset = self._start(step)
        except OSError as error:
            status, late = 127, False
            with (self._folder / f"{step.id}.log").open("a", encoding="utf-8") as log:
                log.write(_complaint(error) + "\n")
        else:
            status, late = self._wait(process, step, decision, offset)
        seconds = time.monotonic() - started
        outcome = "done" if status == 0 else "stopped" if self._stop_wanted else "failed"
        detail = self._detail(plan, step, done=status == 0)
        if late:
            detail = _("it did not end within {minutes:.0f} minutes").format(minutes=step.deadline / 60)
        self._journal.write(
            "step-finished", step=step.id, status=status, seconds=seconds, text=detail, outcome=outcome
        )
        if outcome == "stopped":
            return outcome, _("Stopped on request in {step}.").format(step=step.id)
        return outcome, detail or _("{step} ended with exit status {status}.").format(step=step.id, status=status)

    def _prepare(self, plan: Plan, step: Step, decision: Decision) -> None:
        (self._folder / f"{step.id}.result.json").unlink(missing_ok=True)
        if decision.action == CLEAN:
            shutil.rmtree(plan.build_folder, ignore_errors=True)
        if decision.action not in (CONTINUE, FIRST):
            (self._folder / f"{step.id}.log").unlink(missing_ok=True)
        if decision.action == CONTINUE and (torn := remove_torn(Path(step.folder))):
            self._journal.write(
                "note", step=step.id, text=_("{count} unfinished files removed").format(count=len(torn))
            )
        Path(step.folder).mkdir(parents=True, exist_ok=True)
        if step.id == "install":
            # From its first file on the prefix is recognised as ours, should `make install` be cut off.
            begin_manifest(Path(plan.prefix))

    def _start(self, step: Step) -> tuple[subprocess.Popen[bytes], int]:
        """The running command, and where in its log it begins."""
        log = os.open(self._folder / f"{step.id}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            offset = os.fstat(log).st_size
            process = subprocess.Popen(
                step.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=self._command_locks,
                cwd=step.folder,
                env=step_environment(os.environ, step.environment, self._folder),
            )
            return process, offset
        finally:
            os.close(log)

    def _wait(
        self, process: subprocess.Popen[bytes], step: Step, decision: Decision, offset: int
    ) -> tuple[int, bool]:
        """Wait for the step's command to end: exit status, and whether its deadline ended it."""
        try:
            self._journal.write("step-started", step=step.id, pid=process.pid, offset=offset, text=decision.why)
        except OSError:  # what nobody knows of must not go on
            _signal_group(process.pid, signal.SIGKILL)
            raise
        end_of_time = time.monotonic() + step.deadline
        kill_at: float | None = None
        late = False
        while (status := process.poll()) is None:
            now = time.monotonic()
            late = late or now > end_of_time
            if (self._stop_wanted or late) and kill_at is None:
                _signal_group(process.pid, signal.SIGTERM)
                kill_at = now + _GRACE
            elif kill_at is not None and now > kill_at:
                _signal_group(process.pid, signal.SIGKILL)
            time.sleep(_POLL)
        if self._stop_wanted or late:
            _signal_group(process.pid, signal.SIGKILL)
        return status, late

    def _detail(self, plan: Plan, step: Step, *, done: bool) -> str:
        """One line about what the step did: its own, or what its log tells."""
        try:
            content = (self._folder / f"{step.id}.result.json").read_bytes()
            return msgspec.json.decode(content, type=StepResult).detail
        except (OSError, msgspec.DecodeError):
            pass
        if done and step.id == "install":
            return _("{count:,} files").format(count=write_manifest(Path(plan.prefix)))
        return summarize(step.id, self._folder / f"{step.id}.log") if done else ""

    def _want_stop(self, _number: int, _frame: object) -> None:
        if not self._stop_wanted:
            self._stop_wanted = True
            with contextlib.suppress(OSError):
                self._journal.write("stop-requested")


def _complaint(error: OSError | WizardError) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return getattr(error, "strerror", None) or str(error)


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


if __name__ == "__main__":
    raise SystemExit(_Worker(Path(sys.argv[1]), [int(number) for number in sys.argv[2].split(",")]).drive())
