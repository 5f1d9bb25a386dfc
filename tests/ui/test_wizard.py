"""How the interface behaves: keys, the way through the stages, failures, and what a person is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.ui.fixed import (
    CHOICES,
    CONFLICT,
    METRICS,
    NOTHING_REACHABLE,
    OPTIONS,
    PREFIX,
    RUN,
    FixedStages,
    run_at,
    write_make_log,
)
from tests.ui.pilot import screen, until
from textual import events
from textual.keys import _character_to_key

from mpiwizard.core.build.failure import FailureCard
from mpiwizard.core.build.model import RunState
from mpiwizard.core.configure.model import Plan
from mpiwizard.core.context import Wishes
from mpiwizard.core.recipes import Expectation
from mpiwizard.core.session import Session
from mpiwizard.ui.app import WizardApp, exit_code, run_to_show
from mpiwizard.ui.screens.detect import DetectScreen
from mpiwizard.ui.screens.stage import StageScreen
from mpiwizard.ui.screens.validate import verdict_word
from mpiwizard.ui.walk import Walk
from mpiwizard.ui.widgets.entry import Entry
from mpiwizard.ui.widgets.log_view import LogView
from mpiwizard.ui.widgets.rows import Column, Row, Rows


@pytest.fixture(autouse=True)
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = Path("runs") / RUN
    write_make_log(folder)
    return folder


def stage(app: WizardApp) -> str:
    return app.screen.stage if isinstance(app.screen, StageScreen) else type(app.screen).__name__


async def shown(pilot: Any, *texts: str) -> None:
    def all_there() -> bool:
        seen = screen(pilot.app)
        return all(text in seen for text in texts)

    await until(pilot, all_there)


async def to_configure(pilot: Any) -> None:
    await shown(pilot, "Found in")
    await pilot.press("enter")
    await shown(pilot, "Best for you here")
    await pilot.press("enter")
    await shown(pilot, "OPTIONS")


async def test_three_times_enter_leads_from_the_start_to_a_running_build() -> None:
    stages = FixedStages()
    app = WizardApp(stages)
    async with app.run_test(size=(80, 24)) as pilot:
        await to_configure(pilot)
        await pilot.press("enter")
        await shown(pilot, "make 62 %")
        assert stages.called("start") == 1
        assert stages.kept.choice == CHOICES[0].id
        assert stages.kept.run == RUN


async def test_enter_before_all_facts_are_known_goes_on_when_they_are() -> None:
    stages = FixedStages(detecting_stops_at=3)
    app = WizardApp(stages)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "3 facts so far")
        await pilot.press("enter")
        await shown(pilot, "Going on as soon as")
        assert stage(app) == "detect"
        stages.go_on.set()
        await until(pilot, lambda: stage(app) == "choose")


async def test_a_fault_of_our_own_is_a_sentence_too() -> None:
    class Broken(FixedStages):
        def choose(self, machine: Any, wishes: Any) -> Any:
            raise ZeroDivisionError("division by zero")

    app = WizardApp(Broken())
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        await pilot.press("enter")
        await shown(pilot, "a fault of its own", "ZeroDivisionError")
        assert "Traceback" not in screen(app)


async def test_numbers_answer_what_matters_and_rank_anew() -> None:
    stages = FixedStages()
    app = WizardApp(stages)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        await pilot.press("enter")
        await shown(pilot, "[1 run soon]")
        await pilot.press("2")
        await shown(pilot, "[2 best speed]", "Best for you here: Open MPI 5.0.8")
        assert stages.kept.wishes.matters == "speed"


async def test_a_way_that_is_closed_says_why_and_is_not_taken() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await shown(pilot, "Found in")
        await pilot.press("enter")
        await shown(pilot, "Best for you here")
        await pilot.press("end", "enter")
        await until(pilot, lambda: screen(app).count("There is no fast network device") == 2)
        assert stage(app) == "choose"


async def test_with_nothing_reachable_choose_says_that_no_way_is_open() -> None:
    closed = tuple(replace(choice, available=False, why_not="nothing is reachable") for choice in CHOICES)
    app = WizardApp(FixedStages(NOTHING_REACHABLE, choices=closed))
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        await pilot.press("enter")
        await shown(pilot, "No way to an MPI is open")


async def test_the_choice_of_an_earlier_start_is_highlighted() -> None:
    app = WizardApp(FixedStages(session=Session(choice=CHOICES[2].id)))
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        await pilot.press("enter")
        await shown(pilot, "Best for you here")
        assert app.screen.query_one(Rows).row_id == CHOICES[2].id


async def test_space_switches_an_option_and_the_command_follows() -> None:
    stages = FixedStages()
    app = WizardApp(stages)
    async with app.run_test(notifications=True) as pilot:
        await to_configure(pilot)
        await until(pilot, lambda: "--with-cma --disable-oshmem" in re.sub(r"\s+", " ", screen(app)))
        await pilot.press("down", "down", "space")
        await until(pilot, lambda: "--with-cma --enable-mpi" in re.sub(r"\s+", " ", screen(app)))
        assert stages.kept.switches == {"oshmem": False}


async def test_a_fixed_option_is_not_switched_and_says_why() -> None:
    stages = FixedStages()
    app = WizardApp(stages)
    async with app.run_test(notifications=True) as pilot:
        await to_configure(pilot)
        await pilot.press("space")
        await shown(pilot, "is fixed")
        assert stages.kept.switches == {}


async def test_an_option_that_is_off_says_what_there_is_without_it_and_a_fixed_one_that_it_is_fixed() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await to_configure(pilot)
        await shown(pilot, "fixed: a folder of its own", "nobody asked for OpenSHMEM")
        await pilot.press("down", "down", "space")
        await shown(pilot, "[ ] off --disable-oshmem", "keeps OpenSHMEM programs")
        (row,) = (line for line in screen(app).splitlines() if "off --disable-oshmem" in line)
        assert "nobody asked" not in row.partition("│")[0]


async def test_the_prefix_can_be_changed() -> None:
    stages = FixedStages()
    app = WizardApp(stages)
    async with app.run_test(notifications=True) as pilot:
        await to_configure(pilot)
        await pilot.press("p")
        await shown(pilot, "Where shall Open MPI be installed")
        await pilot.press("home", *(["delete"] * len(PREFIX)), *"/opt/mpi", "enter")
        await shown(pilot, "Open MPI 4.1.4 in /opt/mpi")
        assert stages.kept.wishes == Wishes(prefix="/opt/mpi")


async def test_a_build_over_an_installation_is_announced_before_enter() -> None:
    replaces = f"{PREFIX} holds an installation already; this build replaces it."

    class Again(FixedStages):
        def plan(self, *wanted: Any) -> Plan:
            return replace(super().plan(*wanted), replaces=replaces)

    async with WizardApp(Again()).run_test(notifications=True) as pilot:
        await to_configure(pilot)
        await shown(pilot, f"! {replaces}", "Never asks for root")


async def test_a_note_is_read_in_full_where_its_row_is_highlighted() -> None:
    async with WizardApp(FixedStages()).run_test(notifications=True) as pilot:
        await to_configure(pilot)
        await pilot.press("end")
        await shown(pilot, "NOTES", "Windows takes back no memory", "gives all of it back")


async def test_a_failing_preflight_is_the_headline_and_nothing_starts() -> None:
    stages = FixedStages(fails={"check": "There is no C compiler; apt install gcc brings one."})
    app = WizardApp(stages)
    async with app.run_test(notifications=True) as pilot:
        await to_configure(pilot)
        await shown(pilot, "There is no C compiler", "Enter checks again")
        await pilot.press("enter")
        await until(pilot, lambda: stages.called("check") == 2)
        assert stages.called("start") == 0
        await shown(pilot, "There is no C compiler")
        stages.fails.clear()  # the person did what the sentence says
        await pilot.press("enter")
        await shown(pilot, "Never asks for root")
        assert stages.called("start") == 0


async def test_a_conflict_keeps_the_build_from_starting() -> None:
    stages = FixedStages(options=(OPTIONS[0], CONFLICT))
    app = WizardApp(stages)
    async with app.run_test(notifications=True) as pilot:
        await to_configure(pilot)
        await pilot.press("enter")
        await pilot.pause()
        assert stages.called("start") == 0


async def test_a_start_that_fails_says_so_and_can_be_tried_again() -> None:
    stages = FixedStages(fails={"start": "Another run is at work on this prefix."})
    app = WizardApp(stages)
    async with app.run_test(notifications=True) as pilot:
        await to_configure(pilot)
        await pilot.press("enter")
        await shown(pilot, "Another run is at work")
        stages.fails.clear()
        await pilot.press("enter")
        await shown(pilot, "make 62 %")


async def test_a_stage_that_has_nothing_to_show_says_what_comes_first() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        await pilot.press("6")
        await shown(pilot, "Nothing is being built yet")
        assert stage(app) == "detect"


async def test_a_window_that_came_to_a_run_says_how_to_look_at_the_machine() -> None:
    app = WizardApp(FixedStages(run=run_at("make", "running")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 62 %")
        await pilot.press("left")
        await shown(pilot, "This window has not looked at the machine; 1 does.")
        await pilot.press("1")
        await shown(pilot, "Found in")
        await pilot.press("left")  # to Validate, round the corner
        await until(pilot, lambda: stage(app) == "validate")


async def test_arrows_go_back_to_what_was_found_without_looking_again() -> None:
    stages = FixedStages()
    app = WizardApp(stages)
    async with app.run_test(notifications=True) as pilot:
        await to_configure(pilot)
        await pilot.press("left", "left")
        await shown(pilot, "Found in")
        assert stages.called("detect") == 1
        await pilot.press("right", "right")
        await shown(pilot, "OPTIONS")
        assert stages.called("plan") == 1


async def test_another_choice_marks_what_rests_on_the_old_one_as_outdated() -> None:
    app = WizardApp(FixedStages(run=run_at("validate", "done")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "built and proven")
        await pilot.press("1")
        await shown(pilot, "Found in")
        await pilot.press("enter")
        await shown(pilot, "Best for you here")
        await pilot.press("down", "enter")
        await shown(pilot, "OPTIONS")
        assert [app.walk.state(name) for name in ("build", "tune", "validate")] == ["outdated"] * 3


async def test_the_same_choice_again_outdates_nothing() -> None:
    app = WizardApp(FixedStages(run=run_at("validate", "done")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "built and proven")
        await pilot.press("1")
        await shown(pilot, "Found in")
        await pilot.press("enter")
        await shown(pilot, "Best for you here")
        await pilot.press("enter")
        await shown(pilot, "OPTIONS")
        assert app.walk.state("validate") == "done"


async def test_no_second_build_is_started_while_one_runs() -> None:
    stages = FixedStages(run=run_at("make", "running"))
    app = WizardApp(stages, RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 62 %")
        await pilot.press("1")
        await to_configure(pilot)
        await pilot.press("enter")
        await shown(pilot, "A build is running already")
        assert stages.called("start") == 0


@pytest.mark.parametrize("state", ["running", "interrupted", "stopped", "failed"])
def test_a_start_shows_the_run_that_goes_on_or_can_be_resumed(state: str) -> None:
    assert run_to_show(FixedStages(run=run_at("make", state))) == RUN


def test_a_start_shows_no_run_that_is_done() -> None:
    assert run_to_show(FixedStages(run=run_at("validate", "done"))) is None
    assert run_to_show(FixedStages()) is None


@pytest.mark.parametrize(("state", "says"), [("stopped", "You stopped this build"), ("failed", "fatal error")])
async def test_instead_of_resuming_n_walks_from_the_start_to_a_new_build(state: str, says: str) -> None:
    class Anew(FixedStages):
        def start(self, plan: Plan) -> str:
            self.run = None
            return super().start(plan)

    stages = Anew(run=run_at("make", state))
    app = WizardApp(stages, RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, says, "r resume", "n new build")
        await pilot.press("n")
        await to_configure(pilot)
        await pilot.press("enter")
        await shown(pilot, "make 62 %")
        assert stages.called("start") == 1


async def test_a_run_that_was_cut_off_says_what_stays_and_resumes_with_r() -> None:
    stages = FixedStages(run=run_at("make", "interrupted"))
    app = WizardApp(stages, RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "cut off in make", "kept", "991 of 1,599 files are compiled")
        await pilot.press("r")
        await shown(pilot, "make 62 %")
        assert stages.called("resume") == 1


async def test_a_run_that_was_cut_off_can_be_left_for_a_new_one() -> None:
    app = WizardApp(FixedStages(run=run_at("make", "interrupted")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "cut off in make")
        await pilot.press("n")
        await shown(pilot, "Found in")


async def test_a_failed_step_shows_what_broke_where_and_one_thing_to_try() -> None:
    app = WizardApp(FixedStages(run=run_at("make", "failed")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "fatal error: xpmem.h", "btl_vader_xpmem.c, line 23", "Try")
        await pilot.press("v")
        await shown(pilot, "btl_vader_0990.lo")


async def test_stopping_asks_first() -> None:
    stages = FixedStages(run=run_at("make", "running"))
    app = WizardApp(stages, RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 62 %")
        await pilot.press("s")
        await shown(pilot, "Stop this build?")
        await pilot.press("enter")  # the first answer is the harmless one
        assert stages.called("stop") == 0
        await pilot.press("s")
        await shown(pilot, "Stop this build?")
        await pilot.press("down", "enter")
        await shown(pilot, "You stopped this build")


async def test_leaving_a_running_build_says_how_to_come_back() -> None:
    app = WizardApp(FixedStages(run=run_at("make", "running")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 62 %")
        await pilot.press("q")
        await pilot.pause()
    assert app.return_code == 0
    assert app.return_value == f"The build goes on. Come back with: mpiwizard attach {RUN}"


async def test_the_line_of_keys_says_what_q_does_to_a_build_that_runs_or_has_ended() -> None:
    stages = FixedStages(run=run_at("make", "running"))
    app = WizardApp(stages, RUN)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "make 62 %", "q leave it running")
        stages.run = run_at("validate", "done")
        await pilot.press("4")
        await shown(pilot, "built and proven", "q quit")
        await pilot.press("q")
        await pilot.pause()
    assert app.return_code == 0


@pytest.mark.parametrize("leave", ["q", "ctrl+q", "enter"])
async def test_a_finished_run_says_how_to_use_what_was_built_here_and_in_the_shell(leave: str) -> None:
    use = f"Use it: . {PREFIX}/share/mpiwizard/environment.sh"
    app = WizardApp(FixedStages(run=run_at("validate", "done")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "built and proven")
        await pilot.press("6")
        await shown(pilot, use)
        await pilot.press(leave)
        await pilot.pause()
    assert app.return_value == use


async def test_a_value_whose_samples_lie_far_apart_is_not_cut_in_its_column() -> None:
    class Restless(FixedStages):
        def results(self, run: RunState) -> Any:
            return (), (replace(METRICS[2], value=11.2, spread=(0.5, 13.1)),), None

    app = WizardApp(Restless(run=run_at("validate", "done")), RUN)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "built and proven")
        await pilot.press("6")
        await shown(pilot, " 11 GB/s  ok", "0.50 GB/s to 13.1 GB/s")


def test_without_a_verdict_the_word_tells_whether_there_is_something_to_compare_with() -> None:
    published = Expectation("job-time", "a vendor", "100 ms", "ms", 100, 100, source="a vendor's page")
    without = replace(METRICS[1], expectations=(replace(published, source=""),))
    assert verdict_word(METRICS[1]) == "no source"
    assert verdict_word(without) == "no source"
    assert verdict_word(replace(METRICS[1], expectations=(published,))) == "compare"


async def test_leaving_without_a_run_says_nothing_in_the_shell() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        await pilot.press("q")
        await pilot.pause()
    assert not app.return_value


async def test_control_q_asks_while_a_build_runs_and_escape_stays() -> None:
    app = WizardApp(FixedStages(run=run_at("make", "running")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 62 %")
        await pilot.press("ctrl+q")
        await shown(pilot, "It goes on without this window")
        await pilot.press("escape")
        await until(pilot, lambda: stage(app) == "build")
        assert app.return_code is None


async def test_quitting_after_a_failed_run_ends_with_its_status() -> None:
    app = WizardApp(FixedStages(run=run_at("make", "failed")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "fatal error")
        await pilot.press("ctrl+q")
    assert app.return_code == 1
    assert exit_code(None) == 0


async def test_the_screen_follows_the_run_from_build_to_tune_to_validate() -> None:
    stages = FixedStages(run=run_at("make", "running"))
    app = WizardApp(stages, RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 62 %")
        stages.run = run_at("tune", "running")
        await until(pilot, lambda: stage(app) == "tune")
        stages.run = run_at("validate", "running")
        await until(pilot, lambda: stage(app) == "validate")
        stages.run = run_at("validate", "done")
        await shown(pilot, "works on this machine", "GUIDE: CLOUD")


async def test_a_person_who_looks_elsewhere_is_not_moved() -> None:
    stages = FixedStages(run=run_at("make", "running"))
    app = WizardApp(stages, RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 62 %")
        await pilot.press("home")  # to the row of the first step
        stages.run = run_at("tune", "running")
        await shown(pilot, "Tuning Open MPI")
        assert stage(app) == "build"


async def test_a_run_that_vanishes_is_a_sentence() -> None:
    stages = FixedStages(run=run_at("make", "running"), fails={"load_run": "There is no run of that name."})
    app = WizardApp(stages, RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "There is no run of that name.")


@pytest.mark.parametrize("size", [(20, 5), (59, 24), (80, 15)], ids=str)
async def test_a_terminal_that_is_too_small_gets_one_sentence_and_no_key_acts_unseen(size: tuple[int, int]) -> None:
    stages = FixedStages()
    app = WizardApp(stages)
    async with app.run_test(size=size) as pilot:
        await shown(pilot, "Enlarge")
        await until(pilot, lambda: app.walk.machine is not None)
        await pilot.press("enter", "enter", "enter")
        assert stage(app) == "detect"
        await pilot.resize_terminal(80, 24)
        await shown(pilot, "Found in")


async def test_a_resize_reaches_a_stage_that_was_not_on_screen() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot, "Found in")
        await pilot.press("enter")
        await shown(pilot, "Best for you here")
        await pilot.resize_terminal(120, 40)
        await pilot.press("left")
        await shown(pilot, "Found in", "│")


async def test_the_cursor_of_the_terminal_follows_the_highlighted_row() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        await until(pilot, lambda: "▸" in screen(app).splitlines()[app.cursor_position.y])
        await pilot.press("down", "down", "down")
        await until(pilot, lambda: "▸" in screen(app).splitlines()[app.cursor_position.y])


async def test_the_palette_goes_to_every_stage() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        names = [command.title for command in app.get_system_commands(app.screen)]
        assert sum(name.startswith("Go to") for name in names) == 6
        assert "Here: look again" in names


async def test_the_palette_does_what_the_keys_of_the_stage_do() -> None:
    stages = FixedStages(run=run_at("make", "running"))
    app = WizardApp(stages, RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 62 %")
        await pilot.press("ctrl+p", *"stop")
        await shown(pilot, "Here: stop")
        await pilot.press("down", "enter")
        await shown(pilot, "Stop this build?")


async def test_the_line_of_keys_names_help_at_every_stage() -> None:
    app = WizardApp(FixedStages(run=run_at("validate", "done")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "built and proven")
        for number in "123456":
            if number in "23":
                continue
            await pilot.press(number)
            await shown(pilot, "? help")


async def test_a_log_is_searched_and_the_line_marked(run_folder: Path) -> None:
    app = WizardApp(FixedStages(run=run_at("make", "running")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 62 %", "0990.lo")
        await pilot.press("slash", *"vader_0123", "enter")
        await shown(pilot, "btl_vader_0123.lo")
        assert app.screen.query_one(LogView).line_text().endswith("btl_vader_0123.lo")
        assert not app.screen.query_one(LogView).follow
        await pilot.press("f")
        await shown(pilot, "0990.lo")


def press_at_once(app: WizardApp, *keys: str) -> None:
    """What a slow line delivers: all keys before the first is acted on."""
    for key in keys:
        app.post_message(events.Key(_character_to_key(key), key))


async def test_keys_that_come_in_one_burst_with_the_slash_are_typed_and_no_commands() -> None:
    app = WizardApp(FixedStages(run=run_at("make", "running")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 62 %", "0990.lo")
        press_at_once(app, *"/stop/nq")
        await until(pilot, lambda: app.screen.query_one(Entry).value == "stop/nq")
        assert stage(app) == "build"
        await pilot.press("enter")
        await shown(pilot, "“stop/nq” is not in this log")
        press_at_once(app, *"/vader_0123")
        await until(pilot, lambda: app.screen.query_one(Entry).value == "vader_0123")


async def test_a_burst_filters_the_facts_too_and_a_second_replaces_what_was_kept() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        press_at_once(app, *"/cm")
        await shown(pilot, "rows with “cm” are")
        await pilot.press("enter")
        press_at_once(app, *"/perl")
        await shown(pilot, "rows with “perl” are")


async def test_the_next_warning_is_found_from_anywhere() -> None:
    app = WizardApp(FixedStages(run=run_at("make", "running")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 62 %", "0990.lo")
        await pilot.press("w")
        await until(pilot, lambda: "warning: " in app.screen.query_one(LogView).line_text())


async def test_what_is_not_in_the_log_is_said() -> None:
    app = WizardApp(FixedStages(run=run_at("make", "running")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 62 %")
        await pilot.press("slash", *"nowhere[", "enter")
        await shown(pilot, "“nowhere[” is not in this log")


async def test_a_stop_that_fails_is_said_and_stays_readable() -> None:
    stages = FixedStages(run=run_at("make", "running"), fails={"stop": "The run does not end; look for its processes."})
    app = WizardApp(stages, RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 62 %")
        await pilot.press("s")
        await shown(pilot, "Stop this build?")
        await pilot.press("down", "enter")
        await shown(pilot, "The run does not end", "make 62 %")


async def test_a_decision_that_cannot_be_kept_does_not_end_the_wizard() -> None:
    class ReadOnly(FixedStages):
        def remember(self, session: Session) -> None:
            raise PermissionError(13, "Permission denied")

    app = WizardApp(ReadOnly())
    async with app.run_test(notifications=True) as pilot:
        await to_configure(pilot)
        await shown(pilot, "not kept for the next start")


async def test_a_run_that_vanishes_while_it_is_watched_is_no_longer_called_running() -> None:
    stages = FixedStages(run=run_at("make", "running"))
    app = WizardApp(stages, RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 62 %")
        stages.fails["load_run"] = "There is no run of that name."
        await shown(pilot, "There is no run of that name.", "n new build")
        await pilot.press("s")
        await shown(pilot, "Nothing runs that could be stopped")
        assert "62 %" not in screen(app)
        assert "●" not in screen(app)
        await pilot.press("n")
        await shown(pilot, "Found in")


async def test_a_run_that_has_ended_is_looked_at_seldom() -> None:
    stages = FixedStages(run=run_at("validate", "done"))
    app = WizardApp(stages, RUN)
    async with app.run_test() as pilot:
        await shown(pilot, "built and proven")
        await pilot.pause(1.0)
        assert stages.called("load_run") <= 2


async def test_the_next_error_and_the_copied_line_are_what_the_person_sees() -> None:
    app = WizardApp(FixedStages(run=run_at("make", "failed")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "fatal error: xpmem.h", "v log")
        await pilot.press("y")
        assert app.clipboard.startswith("btl_vader_xpmem.c:23:10: fatal error")
        await pilot.press("w")
        await shown(pilot, "unused variable 'prev'")


async def test_the_folder_of_the_source_takes_no_room_in_log_and_card(run_folder: Path) -> None:
    run = run_at("make", "failed")
    source = run.plan.source_folder

    class FarAway(FixedStages):
        def failure(self, run: RunState) -> FailureCard | None:
            return FailureCard("make ended.", f"{source}/src/a.c, line 3", 1, f"{source}/src/a.c:3: error: no", "Try")

    (run_folder / "make.log").write_text(f"{source}/src/a.c:3: error: no\n")
    app = WizardApp(FarAway(run=run), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, " src/a.c, line 3", " src/a.c:3: error: no")
        await pilot.press("v")
        await shown(pilot, "\n src/a.c:3: error: no")


async def test_after_a_resume_the_highlight_goes_along_again() -> None:
    app = WizardApp(FixedStages(run=run_at("make", "interrupted")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "r resumes")
        await pilot.press("home", "r")
        await shown(pilot, "make 62 %")
        await until(pilot, lambda: app.screen.query_one(Rows).row_id == "make")


@pytest.mark.parametrize("stop", range(1, 7))
async def test_the_rail_names_all_six_stages_in_60_columns(stop: int) -> None:
    app = WizardApp(FixedStages(run=run_at("validate", "done")), RUN)
    async with app.run_test(size=(60, 16), notifications=True) as pilot:
        await shown(pilot, "built and proven")
        await pilot.press(str(stop))
        rail = screen(app).splitlines()[0]
        assert all(str(number) in rail for number in range(1, 7))


async def test_in_a_low_terminal_the_evidence_leaves_room_for_the_rows() -> None:
    app = WizardApp(FixedStages(run=run_at("validate", "done")), RUN)
    async with app.run_test(size=(60, 16), notifications=True) as pilot:
        await shown(pilot, "built and proven")
        await pilot.press("6")
        await until(pilot, lambda: stage(app) == "validate" and app.screen.query_one(Rows).size.height >= 3)


async def test_a_question_is_legible_before_its_first_layout() -> None:
    rows = Rows(Column())
    rows._rows = (Row("leave", ("Leave it running and quit",)),)
    assert "Leave it running and quit" in rows._prompts()[0].plain


async def test_help_begins_with_the_keys_of_the_stage() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        await pilot.press("question_mark")
        await shown(pilot, "Esc closes this")
        text = screen(app)
        assert text.index("Enter   Choose") < text.index("/       filter") < text.index("e       more")


async def test_enter_pressed_at_the_first_paint_is_not_lost() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        app.walk = Walk()
        first = DetectScreen()
        first.call_after_refresh(first.action_go_on)  # queued before the look that follows the first paint
        await app.push_screen(first)
        await shown(pilot, "Best for you here")


async def test_a_log_without_a_warning_says_so_in_words(run_folder: Path) -> None:
    (run_folder / "make.log").write_text("  CC       one.lo\n")
    app = WizardApp(FixedStages(run=run_at("make", "running")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "make 0 %", "one.lo")
        await pilot.press("w")
        await shown(pilot, "no warning and no error")


async def test_evidence_that_has_no_room_is_scrolled_by_keys() -> None:
    app = WizardApp(FixedStages(run=run_at("validate", "done")), RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "built and proven")
        await pilot.press("6")
        await shown(pilot, "GUIDE: CLOUD")
        assert "Guide, cloud" not in screen(app)
        await pilot.press("tab", "end")
        await shown(pilot, "Guide, cloud")
        await pilot.press("left")
        assert stage(app) == "tune"


async def test_a_look_between_two_steps_does_not_end_the_following() -> None:
    stages = FixedStages(run=run_at("install", "running"))
    app = WizardApp(stages, RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "· install ·")
        stages.run = run_at("install", "done", run_state="running")
        await shown(pilot, f"into {PREFIX}")
        stages.run = run_at("tune", "running")
        await until(pilot, lambda: stage(app) == "tune")
