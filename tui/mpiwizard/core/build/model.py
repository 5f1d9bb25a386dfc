"""Run and its state, as told by the journal."""

from __future__ import annotations

from msgspec import Struct

from mpiwizard.core.configure.model import Plan


class StepState(Struct, frozen=True, omit_defaults=True):
    """How a step of a run stands. `state`: waiting, running, done, failed, stopped or interrupted."""

    id: str
    title: str
    state: str
    started: float = 0.0  # seconds since the epoch
    seconds: float = 0.0  # time it took; while it runs, 0
    status: int | None = None
    detail: str = ""  # one line about what it did
    pid: int = 0
    log_offset: int = 0  # where the latest attempt begins in the step's log, in bytes
    again: str = ""  # after an interruption: why it was or will be done again


class RunState(Struct, frozen=True):
    """A run, folded from its journal.

    `state`: new, running (a worker drives it), orphaned (its commands live, the worker does not),
    interrupted (neither lives and it did not finish), stopped, failed or done.
    """

    id: str
    folder: str
    plan: Plan
    state: str
    steps: tuple[StepState, ...]
    started: float
    finished: float
    failure: str = ""  # the sentence to show when it failed
    notes: tuple[str, ...] = ()  # such as why a source was given up

    @property
    def active(self) -> bool:
        return self.state in ("running", "orphaned")

    @property
    def current(self) -> StepState | None:
        """The step that runs, failed, or was interrupted; None when there is none."""
        for step in self.steps:
            if step.state in ("running", "failed", "stopped", "interrupted"):
                return step
        return None
