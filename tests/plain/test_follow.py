"""How far a run is, told from its log."""

from __future__ import annotations

import time
from pathlib import Path

from msgspec.structs import replace
from tests.core.build.test_journal_and_state import PLAN

from mpiwizard.core.build.model import RunState, StepState
from mpiwizard.plain.follow import Pace

MAKE = replace(PLAN.step("make"), seconds=100.0)


def running(folder: Path, earlier: int, now: int, seconds: float) -> RunState:
    """A make of 100 files, `earlier` of them compiled before it was resumed `seconds` ago."""
    objects = " ".join(f"{number}.o" for number in range(100))
    (folder / "Makefile").write_text(f"PROGRAMS = a\na_OBJECTS = {objects}\n")
    before, since = "  CC       x.o\n" * earlier, "  CC       y.o\n" * now
    (folder / "make.log").write_text(before + since)
    step = StepState("make", "", "running", started=time.time() - seconds, log_offset=len(before))
    plan = replace(PLAN, build_folder=str(folder), steps=(MAKE,))
    return RunState("r", str(folder), plan, "running", (step,), 0.0, 0.0)


def test_the_time_left_of_a_resumed_make_is_from_its_own_pace(tmp_path: Path) -> None:
    told = Pace(tell_every=0.0).look(running(tmp_path, earlier=60, now=20, seconds=10.0))
    assert told == "make: 80 of 100 compiled, 0:10 so far, about 10 s left"


def test_at_the_start_the_time_left_is_the_estimate(tmp_path: Path) -> None:
    told = Pace(tell_every=0.0).look(running(tmp_path, earlier=0, now=0, seconds=5.0))
    assert told.endswith("about 1 min 35 s left")


def test_between_two_tellings_nothing_is_said(tmp_path: Path) -> None:
    assert Pace(tell_every=60.0).look(running(tmp_path, earlier=0, now=10, seconds=5.0)) == ""
