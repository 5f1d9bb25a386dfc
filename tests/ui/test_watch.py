"""What a look at a run tells, from its state and its logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.ui.fixed import RUN, START, FixedStages, run_at, write_make_log

from mpiwizard.core.build.model import RunState
from mpiwizard.ui.watch import Watch


def resumed(folder: Path) -> RunState:
    """A run whose make was cut off, and goes on a day later."""
    run = run_at("make", "running", folder)
    steps = tuple(
        replace(step, started=START + 260, again="991 files are compiled") if step.id == "make" else step
        for step in run.steps
    )
    return replace(run, steps=steps, started=START - 86_400)


def test_the_time_a_run_lay_still_is_not_counted(tmp_path: Path) -> None:
    write_make_log(tmp_path)
    view = Watch(FixedStages(run=resumed(tmp_path)), RUN).look()
    assert view.in_step == 10
    assert view.elapsed == pytest.approx(87.1)


def test_the_pace_of_a_resumed_step_is_not_taken_from_what_was_done_before(tmp_path: Path) -> None:
    write_make_log(tmp_path)
    view = Watch(FixedStages(run=resumed(tmp_path)), RUN).look()
    later = 20 + 30 + 40  # install, tune and validate, as planned
    assert view.left == pytest.approx(later + 260 * (1 - 991 / 1599))


def test_files_that_are_begun_again_are_not_counted_beyond_all_there_are(tmp_path: Path) -> None:
    write_make_log(tmp_path, compiled=1650)
    assert Watch(FixedStages(run=resumed(tmp_path)), RUN).look().counts.compiled == 1599


def test_a_long_log_is_counted_over_several_looks(tmp_path: Path) -> None:
    run = run_at("make", "failed", tmp_path)
    line = b"x.c:1:1: warning: unused\n"
    lines = (3 << 24) // len(line)
    (tmp_path / "make.log").write_bytes(line * lines)
    watch = Watch(FixedStages(run=run), RUN)
    assert 0 < watch.look().counts.warnings < lines
    views = [watch.look() for _look in range(4)]
    assert views[-1].counts.warnings == lines
    assert views[-1] is views[-2]  # nothing more to do
