"""Plan, Step and Option: what will be done, exactly, before anything is done."""

from __future__ import annotations

from msgspec import Struct

from mpiwizard.core.choose.model import Choice
from mpiwizard.core.context import Wishes


class Option(Struct, frozen=True, omit_defaults=True):
    """One configure option of the plan. `fixed` options cannot be switched by the person."""

    id: str
    argument: str  # as it goes to configure, such as --disable-oshmem
    enabled: bool
    reason: str
    effect: str = ""
    lost: str = ""
    conflict: str = ""  # why this option cannot be used like this; empty when it can
    fixed: bool = False
    claims: tuple[int, ...] = ()


class Step(Struct, frozen=True, omit_defaults=True):
    """One command of a run. `script` is the same in shell, for `plan --script`."""

    id: str  # fetch, verify, unpack, configure, make, install, tune, validate
    title: str
    argv: tuple[str, ...]
    folder: str  # where it runs
    environment: dict[str, str]  # set by the plan, over the few variables kept (build/environment.py)
    script: tuple[str, ...]
    seconds: float  # estimate on this machine
    deadline: float  # seconds after which it is ended
    safe_again: str = "again"  # after an interruption: again, clean (build folder made anew) or continue


class Plan(Struct, frozen=True):
    """All that will happen, in order. Written to the run's folder and never changed after the start."""

    run: str  # id of the run, the name of its folder
    choice: Choice
    wishes: Wishes
    prefix: str
    jobs: int
    source_folder: str
    build_folder: str
    options: tuple[Option, ...]
    steps: tuple[Step, ...]
    seconds: float  # estimate for all steps
    disk: int  # bytes needed while building
    disk_kept: int  # bytes of the installation
    packages: dict[str, str]  # what may be installed beforehand, program -> command
    notes: tuple[str, ...] = ()
    replaces: str = ""  # a sentence when the prefix holds an installation already; also the first note
    fallback: Plan | None = None  # what the worker goes on with when the source cannot be fetched
    schema: int = 1

    def step(self, step_id: str) -> Step:
        """The step with this id. Raises KeyError."""
        for step in self.steps:
            if step.id == step_id:
                return step
        raise KeyError(step_id)

    @property
    def configure_line(self) -> str:
        """The configure command as a person would type it; empty when there is no such step."""
        import shlex

        for step in self.steps:
            if step.id == "configure":
                return shlex.join(step.argv)
        return ""
