"""The environment a step runs in: what the plan sets, over the few variables that are kept.

A build that depends on a forgotten CFLAGS or LD_LIBRARY_PATH of one shell cannot be repeated. What
is kept either cannot change the result, or is needed to reach the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mpiwizard.core.configure.steps import KEPT


def step_environment(surroundings: Mapping[str, str], planned: Mapping[str, str], run: Path) -> dict[str, str]:
    """The whole environment of a step of the run in folder `run`, by which each of its processes can be found."""
    kept = {name: surroundings[name] for name in KEPT if name in surroundings}
    return {**kept, **planned, "MPIWIZARD_RUN": str(run)}
