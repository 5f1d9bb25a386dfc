"""Runs on disk: their folders, and their state as the journal and the locks tell it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mpiwizard.core.build.journal import Event, read_journal
from mpiwizard.core.build.model import RunState, StepState
from mpiwizard.core.configure.model import Plan
from mpiwizard.core.context import Folders
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.i18n import _
from mpiwizard.core.locks import is_locked

WORKER_ERRORS = "worker.err"  # in the run's folder: what the worker of the last start complained of


def read_plan(folder: Path) -> Plan:
    """The plan of a run. Raises WizardError when it is missing or not ours."""
    try:
        plan = msgspec.json.decode((folder / "plan.json").read_bytes(), type=Plan)
    except OSError:
        raise WizardError(
            _("There is no run {run}; `mpiwizard runs` lists them.").format(run=folder.name), ExitCode.USAGE
        ) from None
    except msgspec.DecodeError as error:
        raise WizardError(
            _("The plan of run {run} cannot be read ({reason}); start a new one with `mpiwizard`.").format(
                run=folder.name, reason=error
            )
        ) from None
    if plan.schema != 1:
        message = _("Run {run} was made by another version of mpiwizard (schema {schema}); go on with that one.")
        raise WizardError(message.format(run=folder.name, schema=plan.schema))
    return plan


def load_run(folders: Folders, run_id: str) -> RunState:
    """The state of a run. Raises WizardError when there is none of that name."""
    if not run_id or "/" in run_id or run_id.startswith("."):
        raise WizardError(
            _("{run} is not the name of a run; `mpiwizard runs` lists them.").format(run=run_id or "''"),
            ExitCode.USAGE,
        )
    folder = folders.runs / run_id
    plan = read_plan(folder)
    # The locks are asked first: a run that ends in between is then read as finished, never as lost.
    worker, commands = is_locked(folder / "worker.lock"), is_locked(folder / "lock")
    run = fold(plan, read_journal(folder / "journal.jsonl"), folder, worker=worker, commands=commands)
    if run.state in ("interrupted", "new"):
        return msgspec.structs.replace(run, failure=last_words(folder))
    return run


def last_words(folder: Path) -> str:
    """What the worker of a run said before it gave up; empty when it was killed, and while all is well."""
    try:
        said = (folder / WORKER_ERRORS).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    return said.rpartition("\n")[2]


def list_runs(folders: Folders) -> tuple[RunState, ...]:
    """All runs that can be read, newest first."""
    try:
        names = sorted((entry.name for entry in folders.runs.iterdir() if entry.is_dir()), reverse=True)
    except OSError:
        return ()
    runs = []
    for name in names:
        try:
            runs.append(load_run(folders, name))
        except WizardError:
            continue
    return tuple(runs)


def newest_run(folders: Folders) -> RunState:
    """The run a person means who names none: an active one, else the newest. WizardError when there is none."""
    runs = list_runs(folders)
    if not runs:
        raise WizardError(_("There is no run yet; start one with `mpiwizard`."), ExitCode.USAGE)
    return next((run for run in runs if run.active), runs[0])


def fold(plan: Plan, events: tuple[Event, ...], folder: Path, *, worker: bool, commands: bool) -> RunState:
    """The state of a run from its events and its two locks."""
    steps = _waiting(plan)
    started = finished = 0.0
    outcome = failure = ""
    notes: list[str] = []
    for event in events:
        if event.event == "run-started":
            started = started or event.time
            finished, outcome, failure = 0.0, "", ""
            steps = {name: _no_longer_running(step) for name, step in steps.items()}
        elif event.event == "plan-changed" and plan.fallback is not None:
            plan = plan.fallback
            steps = _waiting(plan)
            notes.append(event.text)
        elif event.event == "note":
            notes.append(event.text)
        elif event.event == "run-finished":
            finished, outcome, failure = event.time, event.outcome, event.text
        elif event.step in steps:
            steps[event.step] = _after(steps[event.step], event)
    state = _state(outcome, bool(events), worker=worker, commands=commands)
    if state not in ("running", "orphaned"):
        steps = {name: _no_longer_running(step) for name, step in steps.items()}
    return RunState(
        plan.run, str(folder), plan, state, tuple(steps.values()), started, finished, failure, tuple(notes)
    )


def _waiting(plan: Plan) -> dict[str, StepState]:
    return {step.id: StepState(step.id, step.title, "waiting") for step in plan.steps}


def _after(step: StepState, event: Event) -> StepState:
    replace = msgspec.structs.replace
    if event.event == "step-started":
        return replace(
            step, state="running", started=event.time, seconds=0.0, pid=event.pid, status=None,
            log_offset=event.offset, detail="", again=event.text,
        )  # fmt: skip
    if event.event == "step-finished":
        return replace(
            step, state=event.outcome, seconds=event.seconds, status=event.status, detail=event.text, pid=0
        )
    return step  # step-kept tells the person why nothing was done; the step stays as it was


def _no_longer_running(step: StepState) -> StepState:
    return msgspec.structs.replace(step, state="interrupted", pid=0) if step.state == "running" else step


def _state(outcome: str, has_events: bool, *, worker: bool, commands: bool) -> str:
    if worker:
        return "running"
    if outcome:
        return outcome
    if commands:
        return "orphaned"
    return "interrupted" if has_events else "new"
