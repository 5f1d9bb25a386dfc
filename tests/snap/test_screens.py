"""Every stage in its important states, at the design size and in a large terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Compare
from tests.ui.fixed import (
    CONFLICT,
    NOTHING_REACHABLE,
    OPTIONS,
    RUN,
    FixedStages,
    run_at,
    write_make_log,
)
from tests.ui.pilot import screen, until

from mpiwizard.core.context import Wishes
from mpiwizard.core.session import Session
from mpiwizard.ui.app import WizardApp

SMALL, LARGE = (80, 24), (120, 40)
both_sizes = pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x40"])
Size = tuple[int, int]


@pytest.fixture(autouse=True)
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run's folder whose path is the same in every picture."""
    monkeypatch.chdir(tmp_path)
    folder = Path("runs") / RUN
    write_make_log(folder)
    return folder


def shows(*texts: str) -> Any:
    """Waits until all these texts are on the screen."""

    async def wait(pilot: Any) -> None:
        await until(pilot, lambda: all(text in screen(pilot.app) for text in texts))

    return wait


def walk_to(*stops: tuple[str, str]) -> Any:
    """Waits for a text, then presses a key, again and again."""

    async def walk(pilot: Any) -> None:
        for text, key in stops:
            await until(pilot, lambda text=text: text in screen(pilot.app))  # type: ignore[misc]
            if key:
                await pilot.press(key)

    return walk


FOUND = ("Found in", "enter")
RANKED = ("Best for you here", "enter")


@both_sizes
async def test_detecting(snap_compare: Compare, size: Size) -> None:
    stages = FixedStages(detecting_stops_at=5)
    app = WizardApp(stages)

    async def half_way(pilot: Any) -> None:
        await until(pilot, lambda: "5 facts so far" in screen(app))

    try:
        await snap_compare(app, size=size, before=half_way)
    finally:
        stages.go_on.set()


@both_sizes
async def test_found(snap_compare: Compare, size: Size) -> None:
    await snap_compare(WizardApp(FixedStages()), size=size, before=shows("Found in", "The guide says"))


@both_sizes
async def test_nothing_reachable(snap_compare: Compare, size: Size) -> None:
    app = WizardApp(FixedStages(NOTHING_REACHABLE))
    await snap_compare(app, size=size, before=shows("stops a build", "none within reach"))


async def test_filter(snap_compare: Compare) -> None:
    await snap_compare(WizardApp(FixedStages()), before=walk_to(("Found in", "slash")), press=("c", "m", "a"))


@both_sizes
async def test_sources_asked(snap_compare: Compare, size: Size) -> None:
    stages = FixedStages(slow_sources=True)
    try:
        await snap_compare(WizardApp(stages), size=size, before=shows("Found in", "The guide says"), press=("end",))
    finally:
        stages.sources_go_on.set()


async def test_evidence(snap_compare: Compare) -> None:
    """A conclusion with what it rests on and what speaks against it, in full."""
    app = WizardApp(FixedStages())
    await snap_compare(app, before=walk_to(("Found in", ""), ("The guide says", "e")), press=("down",) * 8)


@both_sizes
async def test_overrule(snap_compare: Compare, size: Size) -> None:
    before = walk_to(("Found in", "down"), ("Place to build", "down"), ("WSL2", "o"), ("as found", ""))
    await snap_compare(WizardApp(FixedStages()), size=size, before=before)


async def test_overruled(snap_compare: Compare) -> None:
    app = WizardApp(FixedStages(session=Session(wishes=Wishes(assume=(("provider", "aws"),)))))
    await snap_compare(app, before=shows("Found in", "The guide says"), press=("down",) * 4)


async def test_help(snap_compare: Compare) -> None:
    await snap_compare(WizardApp(FixedStages()), before=walk_to(("Found in", "question_mark")))


@both_sizes
async def test_choose(snap_compare: Compare, size: Size) -> None:
    await snap_compare(WizardApp(FixedStages()), size=size, before=walk_to(FOUND, ("WHAT YOU GET", "")))


@both_sizes
async def test_configure(snap_compare: Compare, size: Size) -> None:
    app = WizardApp(FixedStages())
    await snap_compare(app, size=size, before=walk_to(FOUND, RANKED, ("OPTIONS", "down")))


@both_sizes
async def test_configure_conflict(snap_compare: Compare, size: Size) -> None:
    app = WizardApp(
        FixedStages(
            options=(OPTIONS[0], CONFLICT, *OPTIONS[2:]),
            fails={"check": "The disk of /home/ada has 0.9 GB free and the build needs 1.4 GB; make room there."},
        )
    )
    await snap_compare(app, size=size, before=walk_to(FOUND, RANKED, ("OPTIONS", "down")))


@both_sizes
async def test_building(snap_compare: Compare, size: Size) -> None:
    app = WizardApp(FixedStages(run=run_at("make", "running")), RUN)
    await snap_compare(app, size=size, before=shows("make 62 %", "0990.lo"))


@both_sizes
async def test_failed(snap_compare: Compare, size: Size) -> None:
    app = WizardApp(FixedStages(run=run_at("make", "failed")), RUN)
    await snap_compare(app, size=size, before=shows("fatal error"))


@both_sizes
async def test_interrupted(snap_compare: Compare, size: Size) -> None:
    app = WizardApp(FixedStages(run=run_at("make", "interrupted")), RUN)
    await snap_compare(app, size=size, before=shows("r resumes", "0990.lo"))


@both_sizes
async def test_done(snap_compare: Compare, size: Size) -> None:
    app = WizardApp(FixedStages(run=run_at("validate", "done")), RUN)
    await snap_compare(app, size=size, before=shows("built and proven"))


@both_sizes
async def test_tune(snap_compare: Compare, size: Size) -> None:
    app = WizardApp(FixedStages(run=run_at("validate", "done")), RUN)
    await snap_compare(app, size=size, before=walk_to(("built and proven", "5"), ("WRITTEN", "")))


async def test_tuning(snap_compare: Compare) -> None:
    app = WizardApp(FixedStages(run=run_at("tune", "running")), RUN)
    await snap_compare(app, before=shows("turn by turn", "Single copy"))


@both_sizes
async def test_validate(snap_compare: Compare, size: Size) -> None:
    app = WizardApp(FixedStages(run=run_at("validate", "done")), RUN)
    await snap_compare(app, size=size, before=walk_to(("built and proven", "6"), ("GUIDE: CLOUD", "")))


async def test_validate_curve(snap_compare: Compare) -> None:
    app = WizardApp(FixedStages(run=run_at("validate", "done")), RUN)
    before = walk_to(("built and proven", "6"), ("GUIDE: CLOUD", ""))
    await snap_compare(app, size=LARGE, before=before, press=("down", "down", "down"))


async def test_quit_question(snap_compare: Compare) -> None:
    app = WizardApp(FixedStages(run=run_at("make", "running")), RUN)
    await snap_compare(app, before=walk_to(("0990.lo", "ctrl+q"), ("Stay here", "")))


async def test_outdated(snap_compare: Compare) -> None:
    """A finished run, then another way: what rests on the former one says so."""
    app = WizardApp(FixedStages(run=run_at("validate", "done")), RUN)
    before = walk_to(("built and proven", "1"), FOUND, ("WHAT YOU GET", "down"), ("newest coll", "enter"))
    await snap_compare(app, before=before, press=())


async def test_too_small(snap_compare: Compare) -> None:
    await snap_compare(WizardApp(FixedStages()), size=(59, 15), before=shows("Enlarge"))


async def test_no_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = WizardApp(FixedStages(), no_colour=True)
    await snap_compare(app, before=shows("Found in"))


@pytest.mark.parametrize("size", [(20, 5), (60, 16), (200, 60)], ids=str)
async def test_no_size_crashes(size: Size) -> None:
    app = WizardApp(FixedStages(run=run_at("validate", "done")), RUN)
    async with app.run_test(size=size) as pilot:
        for key in ("1", "2", "3", "4", "5", "6", "question_mark", "escape", "ctrl+q"):
            await pilot.press(key)
