"""What the interface asks of the stages: one protocol, and the real thing behind it.

The screens know nothing else of mpiwizard. Everything here may take its time and is called in
threads; every failure is a WizardError with a sentence for the person.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from mpiwizard.core.build.failure import FailureCard
    from mpiwizard.core.build.model import RunState
    from mpiwizard.core.build.resume import Decision
    from mpiwizard.core.choose.model import Choice
    from mpiwizard.core.configure.model import Plan
    from mpiwizard.core.context import Context, Wishes
    from mpiwizard.core.detect.model import Machine
    from mpiwizard.core.frontend import Frontend
    from mpiwizard.core.recipes import Claim, Recipes
    from mpiwizard.core.session import Session
    from mpiwizard.core.tune.model import Trial, Tuning
    from mpiwizard.core.validate.model import Check, Metric, Report
    from mpiwizard.worker.usage import Usage, UsageMeter

_Value = TypeVar("_Value")


class Stages(Protocol):
    """The six stages and the runs, as the interface sees them."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def session(self) -> Session: ...

    def remember(self, session: Session) -> None: ...

    def detect(self, listener: Frontend, wishes: Wishes) -> Machine:
        """The box, without its sources: nothing is asked of the network."""
        ...

    def sources(self, machine: Machine, listener: Frontend) -> Machine:
        """The machine with what its sources of Open MPI answered. Raises WizardError for an archive of no use."""
        ...

    def axes(self) -> dict[str, dict[str, str]]:
        """What of the platform can be overruled: names of the values by value, by axis; none where any text is one."""
        ...

    def choose(self, machine: Machine, wishes: Wishes) -> tuple[Choice, ...]: ...

    def plan(self, machine: Machine, choice: Choice, wishes: Wishes, switches: Mapping[str, bool]) -> Plan: ...

    def check(self, machine: Machine, plan: Plan) -> None:
        """Raises WizardError when the plan cannot work here."""
        ...

    def start(self, plan: Plan) -> str:
        """Start a worker; the id of the run."""
        ...

    def runs(self) -> tuple[RunState, ...]: ...

    def load_run(self, run_id: str) -> RunState: ...

    def stop(self, run_id: str) -> None: ...

    def resume(self, run_id: str) -> None: ...

    def decisions(self, run: RunState) -> tuple[Decision, ...]:
        """What a resume would keep and repeat."""
        ...

    def failure(self, run: RunState) -> FailureCard | None: ...

    def usage(self, run: RunState) -> Usage | None:
        """What the build takes of the box at this moment."""
        ...

    def compilations(self, run: RunState) -> int:
        """How many files make will compile; 0 when unknown."""
        ...

    def trials(self, run: RunState) -> tuple[tuple[Trial, ...], Tuning | None]: ...

    def results(self, run: RunState) -> tuple[tuple[Check, ...], tuple[Metric, ...], Report | None]: ...

    def claims(self, numbers: tuple[int, ...]) -> tuple[Claim, ...]: ...


class RealStages:
    """The stages of core and the worker, on the box and folders of a context."""

    def __init__(self, context: Context, wishes: Wishes) -> None:
        self._context = context
        self._wishes = wishes
        self._recipes: Recipes | None = None
        self._meter: UsageMeter | None = None

    def now(self) -> float:
        return self._context.clock()

    def session(self) -> Session:
        """The remembered session; wishes of the command line go before remembered ones.

        What was overruled tells of the box, and holds until the command line overrules it.
        """
        from msgspec.structs import replace

        from mpiwizard.core.context import Wishes
        from mpiwizard.core.session import load_session

        session = load_session(self._context.folders)
        if self._wishes == Wishes():
            return session
        assume = self._wishes.assume or session.wishes.assume
        return replace(session, wishes=replace(self._wishes, assume=assume), choice="")

    def remember(self, session: Session) -> None:
        from mpiwizard.core.session import save_session

        save_session(self._context.folders, session)

    def detect(self, listener: Frontend, wishes: Wishes) -> Machine:
        from mpiwizard.core.detect import detect

        return detect(self._context, wishes, listener)

    def sources(self, machine: Machine, listener: Frontend) -> Machine:
        from mpiwizard.core.detect import ask_sources

        return ask_sources(machine, self._context, self._wishes, listener)

    def axes(self) -> dict[str, dict[str, str]]:
        from mpiwizard.core.detect.platform import axes

        return axes()

    def choose(self, machine: Machine, wishes: Wishes) -> tuple[Choice, ...]:
        from mpiwizard.core.choose import choose

        return choose(machine, self._all_recipes(), wishes)

    def plan(self, machine: Machine, choice: Choice, wishes: Wishes, switches: Mapping[str, bool]) -> Plan:
        from mpiwizard.core.choose import choose, fallback_choice
        from mpiwizard.core.configure import make_plan

        recipes = self._all_recipes()
        fallback = fallback_choice(choose(machine, recipes, wishes), choice, wishes)
        return make_plan(self._context, machine, recipes, choice, wishes, switches, fallback)

    def check(self, machine: Machine, plan: Plan) -> None:
        from mpiwizard.core.configure import check_plan

        check_plan(self._context, machine, plan)

    def start(self, plan: Plan) -> str:
        from mpiwizard.worker import start

        return start(self._context, plan)

    def runs(self) -> tuple[RunState, ...]:
        if not self._context.folders.runs.is_dir():
            return ()
        from mpiwizard.core.build.runs import list_runs

        return list_runs(self._context.folders)

    def load_run(self, run_id: str) -> RunState:
        from mpiwizard.core.build.runs import load_run

        return load_run(self._context.folders, run_id)

    def stop(self, run_id: str) -> None:
        from mpiwizard.worker import stop

        stop(self._context, run_id)

    def resume(self, run_id: str) -> None:
        from mpiwizard.worker import resume

        resume(self._context, run_id)

    def decisions(self, run: RunState) -> tuple[Decision, ...]:
        from mpiwizard.core.build.resume import decide

        return decide(run)

    def failure(self, run: RunState) -> FailureCard | None:
        from mpiwizard.core.build.failure import explain_failure

        step = next((step for step in run.steps if step.state == "failed"), None)
        return explain_failure(step, Path(run.folder) / f"{step.id}.log") if step else None

    def usage(self, run: RunState) -> Usage | None:
        from mpiwizard.worker.usage import UsageMeter

        step = run.current
        if step is None or not step.pid:
            return None
        if self._meter is None or self._meter.pid != step.pid:
            self._meter = UsageMeter(step.pid)
        return self._meter.look()

    def compilations(self, run: RunState) -> int:
        from mpiwizard.core.build.makefiles import count_compilations

        return count_compilations(Path(run.plan.build_folder))

    def trials(self, run: RunState) -> tuple[tuple[Trial, ...], Tuning | None]:
        from mpiwizard.core.tune.model import Trial, Tuning

        folder = Path(run.folder)
        return _lines(folder / "tune.results.jsonl", Trial), _value(folder / "tuning.json", Tuning)

    def results(self, run: RunState) -> tuple[tuple[Check, ...], tuple[Metric, ...], Report | None]:
        from mpiwizard.core.validate.model import Check, Metric, Report

        folder = Path(run.folder)
        if (report := _value(folder / "report.json", Report)) is not None:
            return report.checks, report.metrics, report
        found = folder / "validate.results.jsonl"
        return _lines(found, Check), _lines(found, Metric), None

    def claims(self, numbers: tuple[int, ...]) -> tuple[Claim, ...]:
        claims = self._all_recipes().claims
        return tuple(claims[number] for number in numbers if number in claims)

    def _all_recipes(self) -> Recipes:
        if self._recipes is None:
            from mpiwizard.core.recipes import load_recipes

            self._recipes = load_recipes(self._context.folders.config)
        return self._recipes


def _lines(path: Path, kind: type[_Value]) -> tuple[_Value, ...]:
    """The lines of a results file that are of this kind; the last line may be half written."""
    import msgspec

    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return ()
    values = []
    for line in lines:
        try:
            values.append(msgspec.json.decode(line, type=kind))
        except msgspec.DecodeError:
            continue
    return tuple(values)


def _value(path: Path, kind: type[_Value]) -> _Value | None:
    import msgspec

    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None
