"""The detached process that runs a plan, and the way to start, resume and stop it.

The worker outlives the interface that started it. All it does is in the run's folder: plan.json,
journal.jsonl, one log per step, two locks.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from mpiwizard.core.build.model import RunState
from mpiwizard.core.build.runs import WORKER_ERRORS, last_words, list_runs, load_run
from mpiwizard.core.configure.model import Plan
from mpiwizard.core.context import Context, Folders
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.files import replace_file
from mpiwizard.core.i18n import _
from mpiwizard.core.locks import is_locked

_START_SECONDS = 30.0
STOP_SECONDS = 15.0  # the worker ends a step within 10 s, then itself


def start(context: Context, plan: Plan) -> str:
    """Start the plan's run in the background; its id. Raises WizardError when the prefix is taken."""
    folder = context.folders.runs / plan.run
    try:
        folder.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        message = _("Run {run} was started in this very second; give the same command again.")
        raise WizardError(message.format(run=plan.run), ExitCode.LOCKED) from None
    try:
        replace_file(folder / "plan.json", msgspec.json.format(msgspec.json.encode(plan), indent=2), 0o600)
        _spawn(context, folder, plan)
    except (WizardError, OSError):
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return plan.run


def resume(context: Context, run_id: str) -> str:
    """Go on with a run that is not active; its id. Raises WizardError when it is finished or active."""
    run = load_run(context.folders, run_id)
    if run.active:
        raise WizardError(
            _("Run {run} is at work; watch it with `mpiwizard attach {run}`.").format(run=run_id),
            ExitCode.LOCKED,
        )
    if run.state == "done":
        raise WizardError(
            _("Run {run} is finished; nothing is left to resume.").format(run=run_id), ExitCode.USAGE
        )
    _spawn(context, Path(run.folder), run.plan)
    return run_id


def _spawn(context: Context, folder: Path, plan: Plan) -> None:
    with (folder / WORKER_ERRORS).open("ab") as errors:
        errors.truncate(0)
        try:
            result = subprocess.run(
                [sys.executable, "-m", "mpiwizard.worker", "run", str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env=_environment(context.folders),
                start_new_session=True,
                timeout=_START_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            message = _("The worker did not start within {seconds:.0f} s; try again when this box is less busy.")
            raise WizardError(message.format(seconds=_START_SECONDS)) from None
    if result.returncode == ExitCode.LOCKED:
        other = _builder_of(context.folders, plan)
        raise WizardError(
            _(
                "Another run{other} is at work on {prefix}; watch it with `mpiwizard attach`, stop it with "
                "`mpiwizard stop`, or choose another --prefix."
            ).format(other=f" ({other})" if other else "", prefix=plan.prefix),
            ExitCode.LOCKED,
        )
    if result.returncode != 0:
        raise WizardError(
            _("The worker did not start: {reason}").format(reason=last_words(folder) or result.returncode)
        )


def _environment(folders: Folders) -> dict[str, str]:
    """The worker finds the same folders and the same mpiwizard, wherever it was started from."""
    here = str(Path(__file__).resolve().parents[2])
    path = [here, *(part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part)]
    return {
        **os.environ,
        "XDG_STATE_HOME": str(folders.state.parent),
        "XDG_CACHE_HOME": str(folders.cache.parent),
        "XDG_CONFIG_HOME": str(folders.config.parent),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(path)),
    }


def _builder_of(folders: Folders, plan: Plan) -> str:
    for run in list_runs(folders):
        if run.active and run.id != plan.run and os.path.realpath(run.plan.prefix) == os.path.realpath(plan.prefix):
            return run.id
    return ""


def stop(context: Context, run_id: str) -> RunState:
    """Stop a run and all its commands; its state afterwards. What was compiled stays for a resume.

    Raises WizardError when the run is not active, or does not end.
    """
    run = load_run(context.folders, run_id)
    if not run.active:
        raise WizardError(
            _("Run {run} is not at work (it is {state}); there is nothing to stop.").format(
                run=run_id, state=run.state
            ),
            ExitCode.USAGE,
        )
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in _processes_of(run, with_commands=run.state == "orphaned" or number == signal.SIGKILL):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
        if _ended(Path(run.folder)):
            return load_run(context.folders, run_id)
    raise WizardError(
        _("Run {run} does not end; look for its processes with `ps -ef` and end them.").format(run=run_id)
    )


def _ended(folder: Path) -> bool:
    give_up = time.monotonic() + STOP_SECONDS
    while time.monotonic() < give_up:
        if not is_locked(folder / "lock") and not is_locked(folder / "worker.lock"):
            return True
        time.sleep(0.05)
    return False


def _processes_of(run: RunState, *, with_commands: bool) -> Iterator[int]:
    """Process ids of the worker, and of the run's commands, found by the mark in their environment.

    The mark also finds a process that left its group and its session.
    """
    worker = f"MPIWIZARD_WORKER={run.folder}".encode()
    command = f"MPIWIZARD_RUN={run.folder}".encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            environment = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if worker in environment or (with_commands and command in environment):
            yield int(entry)
