"""The pieces the screens share."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.ui.fixed import CHOICES, MACHINE, PLAN, plan_for, run_at
from tests.ui.pilot import until
from textual.app import App, ComposeResult

from mpiwizard.ui.signs import STAGES, sign, stage_title, word
from mpiwizard.ui.walk import Walk
from mpiwizard.ui.widgets.chart import curve_chart
from mpiwizard.ui.widgets.log_view import LogView
from mpiwizard.ui.widgets.rows import Column, Row, Rows, heading

curves = st.lists(
    st.tuples(st.integers(min_value=1, max_value=1 << 30), st.floats(allow_nan=False, allow_infinity=False)),
    max_size=40,
)


class LogApp(App[None]):
    def compose(self) -> ComposeResult:
        yield LogView()


@given(curves, st.integers(20, 200), st.integers(3, 40))
def test_a_curve_never_leaves_its_room(points: list[tuple[int, float]], width: int, height: int) -> None:
    lines = curve_chart([point for point in points if point[1] < 1e12], "µs", width, height).splitlines()
    assert len(lines) <= height


def test_a_curve_rises_from_left_to_right_when_its_values_do() -> None:
    picture = curve_chart([(1 << power, float(1 << power)) for power in range(10)], "µs", 60, 8).splitlines()
    assert len(picture) == 8
    assert picture[0].rstrip().endswith("█")
    assert picture[-1].split()[0] == "1"


def test_the_band_of_an_expectation_is_dotted_where_no_bar_is() -> None:
    picture = curve_chart([(8, 1.0), (16, 1000.0)], "µs", 40, 10, (30.0, 300.0))
    assert "·" in picture


def test_a_curve_without_points_is_empty() -> None:
    assert curve_chart([], "µs", 40, 8) == ""


def test_the_rail_of_six_stages_fits_80_columns_in_every_state() -> None:
    states = ("waiting", "ready", "running", "done", "outdated", "stopped", "interrupted", "orphaned", "failed")
    line = " ".join(f"{number} {stage_title(stage)} ✓" for number, stage in enumerate(STAGES, 1))
    assert max(cell_len(f"{line} {word(state)}") for state in states) <= 78
    assert len({sign(state) for state in states if state not in ("waiting", "ready")}) >= 5


def test_a_changed_option_outdates_what_was_built_with_the_old_ones() -> None:
    walk = Walk()
    walk.found(MACHINE)
    walk.chose(CHOICES[0])
    walk.planned(PLAN)
    walk.runs(run_at("validate", "done"))
    walk.planned(plan_for(CHOICES[0], switches={"oshmem": False}))
    assert [walk.state(stage) for stage in STAGES] == ["done", "done", "ready", "outdated", "outdated", "outdated"]


def test_a_run_that_goes_on_is_never_called_outdated() -> None:
    walk = Walk()
    walk.runs(run_at("make", "running"))
    walk.chose(CHOICES[1])
    assert walk.state("build") == "running"


async def test_a_log_that_appears_later_and_grows_is_followed_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "make.log"
    app = LogApp()
    async with app.run_test(size=(80, 20)) as pilot:
        log = app.query_one(LogView)
        log.open(path)
        await pilot.pause()
        with path.open("a", encoding="utf-8") as file:
            for burst in range(10):
                file.write("".join(f"line {burst * 1000 + line}\n" for line in range(1000)))
                file.flush()
                await pilot.pause()
        await until(pilot, lambda: log.line_text() == "line 9999")
        assert log.follow


async def test_scrolling_up_stops_following_and_the_end_takes_it_up_again(tmp_path: Path) -> None:
    path = tmp_path / "make.log"
    path.write_text("".join(f"line {line}\n" for line in range(500)), encoding="utf-8")
    app = LogApp()
    async with app.run_test(size=(80, 20)) as pilot:
        log = app.query_one(LogView)
        log.focus()
        log.open(path)
        await until(pilot, lambda: log.line_text() == "line 499")
        await pilot.press("pageup")
        await until(pilot, lambda: not log.follow)
        with path.open("a", encoding="utf-8") as file:
            file.write("one more\n")
        await pilot.pause(0.1)
        assert log.line_text() != "one more"
        await pilot.press("end")
        await until(pilot, lambda: log.follow and log.line_text() == "one more")


async def test_the_last_column_is_legible_when_the_others_are_wide() -> None:
    class TableApp(App[None]):
        def compose(self) -> ComposeResult:
            yield Rows(Column(24), Column(12), Column(12), Column(16), Column())

    app = TableApp()
    async with app.run_test(size=(80, 10)):
        row = Row("one", ("Bandwidth between the ranks", "12–15 GB/s", "25–30 GB/s", "8.8 GB/s (6.6–18)", "no source"))
        app.query_one(Rows).show([heading("WHAT", "GUIDE: WSL2", "GUIDE: CLOUD", "HERE", "VERDICT"), row])
        assert str(app.query_one(Rows).options[1].prompt).rstrip().endswith(" no source")


async def test_the_log_of_the_next_step_is_followed_too(tmp_path: Path) -> None:
    app = LogApp()
    async with app.run_test(size=(80, 20)) as pilot:
        log = app.query_one(LogView)
        for lines in (500, 60, 5, 300, 0, 25):
            path = tmp_path / f"{lines}.log"
            path.write_text("".join(f"line {line} of {lines}\n" for line in range(lines)), encoding="utf-8")
            log.open(path)
            assert log.follow
            await pilot.pause(0.1)
            assert log.follow
            with path.open("a", encoding="utf-8") as file:
                file.write("".join(f"more {line} of {lines}\n" for line in range(40)))
            await until(pilot, lambda lines=lines: log.line_text() == f"more 39 of {lines}")  # type: ignore[misc]
            assert log.follow


async def test_a_log_that_does_not_grow_is_seldom_looked_at(tmp_path: Path) -> None:
    class Counted(LogView):
        looks = 0

        def poll(self) -> bool:
            self.looks += 1
            return super().poll()

    class CountedApp(App[None]):
        def compose(self) -> ComposeResult:
            yield Counted()

    app = CountedApp()
    async with app.run_test() as pilot:
        log = app.query_one(Counted)
        log.open(tmp_path / "make.log")
        await pilot.pause(1.0)
        before = log.looks
        await pilot.pause(1.0)
        assert log.looks - before <= 3
        (tmp_path / "make.log").write_text("first\n", encoding="utf-8")
        await until(pilot, lambda: log.line_text() == "first", seconds=2)


async def test_escape_sequences_of_a_build_never_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "make.log"
    path.write_bytes(b"\x1b]0;title\x07\x1b[2Jfirst\rsecond \x1b[31mred\x1b[0m\n")
    app = LogApp()
    async with app.run_test(size=(80, 20)) as pilot:
        log = app.query_one(LogView)
        log.open(path)
        await until(pilot, lambda: log.line_text() == "second red")
        assert "\x1b" not in "".join(segment.text for segment in log.render_line(0))


@pytest.mark.parametrize("lines", [200_000])
async def test_two_hundred_thousand_lines_leave_the_keys_responsive(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "make.log"
    path.write_text("".join(f"  CC       component_{line}.lo\n" for line in range(lines)), encoding="utf-8")
    app = LogApp()
    async with app.run_test(size=(120, 40)) as pilot:
        log = app.query_one(LogView)
        log.focus()
        log.open(path)
        await until(pilot, lambda: log.line_text().endswith(f"component_{lines - 1}.lo"))
        before = time.monotonic()
        await pilot.press("pageup", "pageup", "pageup")
        assert time.monotonic() - before < 2
        assert not log.follow
