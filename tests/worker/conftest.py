"""Plans that really build the miniature, in folders of the test."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from mpiwizard import worker
from mpiwizard.core.build.model import RunState
from mpiwizard.core.build.runs import load_run
from mpiwizard.core.choose import choose, require_choice
from mpiwizard.core.configure import make_plan
from mpiwizard.core.configure.model import Plan
from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.host import RealHost
from mpiwizard.core.recipes import load_recipes

MINIATURE = Path(__file__).parent.parent / "miniature" / "openmpi-5.0.11.tar.xz"
BUILD_STEPS = ("fetch", "verify", "unpack", "configure", "make", "install")


def machine(archive: Path) -> Machine:
    """A machine of which only what a plan needs is known."""
    offered = {"release": "5.0.11", "file": archive.name, "size": archive.stat().st_size, "sha256": ""}
    values = {"cpu.usable": 2, "memory.available": 8 << 30, "source.archive": offered, "sources.any": True}
    return Machine(tuple(Fact(key, key.partition(".")[0], key, value, "", "info") for key, value in values.items()))


@pytest.fixture
def context(tmp_path: Path) -> Context:
    folders = Folders(tmp_path / "state" / "mpiwizard", tmp_path / "cache" / "mpiwizard", tmp_path / "config")
    return Context(RealHost(), folders, offline=True)


@pytest.fixture
def make(context: Context, tmp_path: Path) -> Callable[..., Plan]:
    """A plan for the miniature; `archive`, `prefix` and `sha256` may be given, `steps` limits it."""

    def plan(
        archive: Path = MINIATURE, prefix: str = "", steps: tuple[str, ...] = BUILD_STEPS, sha256: str = ""
    ) -> Plan:
        recipes = load_recipes(context.folders.config)
        wishes = Wishes(
            source="archive", archive=str(archive), sha256=sha256, prefix=prefix or str(tmp_path / "mpi"), jobs=2
        )
        box = machine(archive)
        made = make_plan(context, box, recipes, require_choice(choose(box, recipes, wishes), wishes), wishes)
        return replace(made, steps=tuple(step for step in made.steps if step.id in steps))

    return plan


def wait(context: Context, run_id: str, until: Callable[[RunState], bool], seconds: float = 60.0) -> RunState:
    """The state of the run as soon as `until` holds for it."""
    give_up = time.monotonic() + seconds
    while not until(run := load_run(context.folders, run_id)):
        if time.monotonic() > give_up:
            raise AssertionError(f"the run stayed {run.state}: {run.steps}")
        time.sleep(0.02)
    return run


def wait_for_end(context: Context, run_id: str) -> RunState:
    return wait(context, run_id, lambda run: not run.active)


@pytest.fixture(autouse=True)
def no_run_is_left(context: Context) -> object:
    """Whatever a test started ends with it."""
    yield
    from mpiwizard.core.build.runs import list_runs

    for run in list_runs(context.folders):
        if run.active:
            worker.stop(context, run.id)
