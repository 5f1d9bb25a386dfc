"""Walk: what has been found and decided on the way through the stages, and how each stage stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiwizard.ui.signs import STAGES

if TYPE_CHECKING:
    from mpiwizard.core.build.model import RunState
    from mpiwizard.core.choose.model import Choice
    from mpiwizard.core.configure.model import Plan
    from mpiwizard.core.detect.model import Machine

_STEPS_AFTER_BUILD = ("tune", "validate")
_KIND_OF_BOX = ("platform.layer", "platform.virtualisation", "platform.provider", "platform.instance")


class Walk:
    """The results so far. A change upstream marks what rests on it as out of date and keeps it."""

    def __init__(self) -> None:
        self.machine: Machine | None = None  # with its sources: what Choose needs
        self._before: Machine | None = None  # what was known when detection began anew
        self.choice: Choice | None = None
        self.plan: Plan | None = None
        self.run: RunState | None = None
        self._states = dict.fromkeys(STAGES, "waiting")

    def state(self, stage: str) -> str:
        """waiting, ready, running, done, outdated, stopped, interrupted, orphaned or failed."""
        return self._states[stage]

    def mark(self, stage: str, state: str) -> None:
        """Say how a stage stands."""
        self._states[stage] = state

    def looks(self) -> None:
        """Detection begins, for the first time or again: what was found before counts no more."""
        self._before, self.machine = self.machine or self._before, None
        self._states["detect"] = "running"

    def found(self, machine: Machine) -> None:
        """Detection finished, and the sources have answered."""
        before = self.machine or self._before
        self._settle("detect", before is not None and _basis(machine) != _basis(before))
        self.machine = machine

    def chose(self, choice: Choice) -> None:
        """The person took a way."""
        self._settle("choose", self.choice is not None and choice != self.choice)
        self.choice = choice

    def planned(self, plan: Plan) -> None:
        """The plan was made, or made anew with other options."""
        before = self.plan
        same = before is not None and (before.configure_line, before.prefix) == (
            plan.configure_line,
            plan.prefix,
        )
        self.plan = plan
        if before is not None and not same:
            self._outdate_after("configure")
        if self._states["configure"] != "done" or not same:
            self._states["configure"] = "ready"

    def runs(self, run: RunState) -> None:
        """A run was started, or went on."""
        if self.run is None or self.run.id != run.id:
            self._states.update(dict.fromkeys(STAGES[3:], "waiting"))
            self._states.update(dict.fromkeys(("choose", "configure"), "done"))
            self.choice, self.plan = run.plan.choice, run.plan
        if self.run is None or self.run != run:
            self._follow(run)
        self.run = run

    def lost_run(self) -> None:
        """The run cannot be read any more."""
        self.run = None
        self._states.update(dict.fromkeys(STAGES[3:], "waiting"))

    def _follow(self, run: RunState) -> None:
        steps = {step.id: step.state for step in run.steps}
        build = [state for step, state in steps.items() if step not in _STEPS_AFTER_BUILD]
        self._states["build"] = _together(build, run.state)
        for stage in _STEPS_AFTER_BUILD:
            if stage in steps:
                self._states[stage] = steps[stage]

    def _settle(self, stage: str, changed: bool) -> None:
        self._states[stage] = "done"
        if changed:
            self._outdate_after(stage)

    def _outdate_after(self, stage: str) -> None:
        for later in STAGES[STAGES.index(stage) + 1 :]:
            if self._states[later] not in ("waiting", "running", "orphaned"):
                self._states[later] = "outdated"


def _basis(machine: Machine) -> dict[str, object]:
    """What a later stage rests on; free memory and the like differ at every look and do not count."""
    return {fact.id: (fact.state, fact.value if fact.id in _KIND_OF_BOX else None) for fact in machine.facts}


def _together(states: list[str], run: str) -> str:
    """The state of several steps as one; the run's own word where the steps leave it open."""
    for state in ("failed", "stopped", "interrupted", "running"):
        if state in states:
            return "orphaned" if state == "running" and run == "orphaned" else state
    if all(state == "done" for state in states):
        return "done"
    return "running" if run == "new" else run
