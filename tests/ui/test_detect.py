"""The first screen: facts as they come, their evidence, what a person overrules, and the sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.ui.fixed import FACTS, MACHINE, NOTHING_REACHABLE, RUN, FixedStages, run_at
from tests.ui.pilot import screen, until
from tests.ui.test_wizard import shown, stage

from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.detect.facts import labels
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.frontend import Frontend
from mpiwizard.core.host import RealHost
from mpiwizard.core.session import Session, save_session
from mpiwizard.ui.app import WizardApp
from mpiwizard.ui.screens.detect import DetectScreen
from mpiwizard.ui.stages import RealStages
from mpiwizard.ui.widgets.evidence import Evidence
from mpiwizard.ui.widgets.rows import Rows

INSTANCE = Fact("platform.instance", "platform", "Type of instance", None, "not known", "unknown")
ON_AWS = Session(wishes=Wishes(assume=(("provider", "aws"),)))


class Scattered(FixedStages):
    """Facts come in another order than they are shown; the last of them when `go_on` is set."""

    def detect(self, listener: Frontend, wishes: Wishes) -> Machine:
        facts = [fact for fact in self.machine.facts if fact.group != "sources"]
        early = facts[8:][::-1]
        for fact in early:
            listener.fact(fact)
        self.go_on.wait(timeout=20)
        for fact in facts[:8]:
            listener.fact(fact)
        return replace(self.machine, facts=tuple(facts))


def machine_with(*changed: Fact) -> Machine:
    """The fixed machine with these facts in place of its own."""
    by_id = {fact.id: fact for fact in changed}
    return replace(MACHINE, facts=tuple(by_id.get(fact.id, fact) for fact in FACTS))


def fact_of(fact_id: str) -> Fact:
    return next(fact for fact in FACTS if fact.id == fact_id)


def rows_of(app: WizardApp) -> Rows:
    return app.screen.query_one(Rows)


def marked_line(app: WizardApp) -> int:
    """The line of the screen with the highlighted row."""
    return next(number for number, line in enumerate(screen(app).splitlines()) if line.startswith("▸"))


def row_ids(app: Any) -> list[str]:
    return [option.id for option in rows_of(app).options if option.id]


async def go_to(pilot: Any, row_id: str) -> None:
    """Move the highlight to a row, as keys do, but at once."""
    rows = rows_of(pilot.app)
    rows.highlighted = rows.get_option_index(row_id)
    label = next(fact.label for fact in (*FACTS, INSTANCE) if fact.id == row_id)
    await until(pilot, lambda: label in pilot.app.screen.query_one(Evidence).text)


async def overrule(pilot: Any, row_id: str, *keys: str) -> None:
    """Answer the question about a row with these keys."""
    await go_to(pilot, row_id)
    await pilot.press("o")
    await shown(pilot, "What you say counts in every")
    await pilot.press(*keys)


# --- facts as they come ----------------------------------------------------------------------------


async def test_facts_appear_while_others_are_still_looked_for() -> None:
    stages = FixedStages(detecting_stops_at=4)
    app = WizardApp(stages)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, FACTS[0].text, FACTS[3].text)
        assert FACTS[4].label not in screen(app)
        stages.go_on.set()
        await shown(pilot, "Found in")


async def test_a_fact_takes_its_place_whenever_it_comes() -> None:
    stages = Scattered()
    app = WizardApp(stages)
    async with app.run_test(size=(120, 60), notifications=True) as pilot:
        await shown(pilot, "MEMORY", "perl 5.34.0", "Language setting")
        assert "PLATFORM" not in screen(app)
        stages.go_on.set()
        await until(pilot, lambda: "sources.any" in row_ids(app))
        rest = [fact.id for fact in FACTS if fact.state not in ("attention", "problem")]
        assert row_ids(app) == ["path.windows", "storage.build", *rest]
        titles = ("LOOK AT THIS", "PLATFORM", "CPU", "MEMORY", "NETWORK", "TOOLS", "MPI ALREADY", "HAZARDS", "SOURCES")
        places = [screen(app).index(f"  {title}") for title in titles]
        assert places == sorted(places)


async def test_the_row_a_person_went_to_stays_on_its_line_while_others_come_above_it() -> None:
    stages = Scattered()
    app = WizardApp(stages)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "MEMORY", "Available")
        await go_to(pilot, "tool.perl")
        line = marked_line(app)
        stages.go_on.set()
        await shown(pilot, "Found in")
        await until(pilot, lambda: marked_line(app) == line)
        assert rows_of(app).row_id == "tool.perl"
        assert "perl 5.34.0" in screen(app).splitlines()[line]


async def test_a_highlight_that_nobody_moved_stands_on_what_is_most_pressing() -> None:
    stages = FixedStages(NOTHING_REACHABLE, slow_sources=True)
    app = WizardApp(stages)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        assert rows_of(app).row_id == "path.windows"
        stages.sources_go_on.set()
        await until(pilot, lambda: rows_of(app).row_id == "sources.any")
        await shown(pilot, "1 thing stops a build.", "--archive FILE")


@pytest.mark.parametrize("key", ["e", "tab"])
async def test_what_a_person_reads_is_not_taken_away(key: str) -> None:
    stages = FixedStages(NOTHING_REACHABLE, slow_sources=True)
    app = WizardApp(stages)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        await pilot.press(key)
        stages.sources_go_on.set()
        await shown(pilot, "1 thing stops a build.")
        assert rows_of(app).row_id == "path.windows"
        assert app.screen.query_one(Evidence).text.startswith("Windows folders in PATH")


async def test_rows_stay_in_place_when_the_headline_and_longer_labels_come() -> None:
    stages = FixedStages(detecting_stops_at=6)
    app = WizardApp(stages)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "6 facts so far")
        before = [(row, line.index("WSL2")) for row, line in enumerate(screen(app).splitlines()) if "WSL2" in line]
        stages.go_on.set()
        await shown(pilot, "Found in", "shared memory with CMA\n")
        after = [(row, line.index("14 e")) for row, line in enumerate(screen(app).splitlines()) if "14 e" in line]
        assert after[0] == before[0]


async def test_a_filter_that_hides_the_highlighted_row_highlights_the_next_one() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "Found in")
        await go_to(pilot, "cpu.usable")
        await pilot.press("slash", *"memory")
        await until(pilot, lambda: rows_of(app).row_id == "memory.available")


async def test_the_highlighted_row_is_in_view_after_a_resize() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await shown(pilot, "Found in", "Open MPI 5.0.8")
        await go_to(pilot, "environment.locale")
        await pilot.resize_terminal(60, 16)
        await until(pilot, lambda: "▸ ✓ Language setting" in screen(app))


# --- what needs a look, and evidence ---------------------------------------------------------------


async def test_what_needs_a_look_stands_first_and_is_highlighted() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        assert rows_of(app).row_id == "path.windows"
        lines = screen(app).splitlines()
        assert next(line for line in lines if line.isupper()).strip() == "LOOK AT THIS"


async def test_an_unknown_fact_says_that_it_is_not_known() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await shown(pilot, "Found in")
        assert "? Shared memory" in screen(app)


async def test_the_filter_leaves_rows_that_match_and_escape_brings_all_back() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await shown(pilot, "Found in")
        await pilot.press("slash", *"perl")
        await until(pilot, lambda: "Kernel" not in screen(app))
        assert "perl 5.34.0" in screen(app)
        await pilot.press("escape")
        await shown(pilot, "Kernel", "perl 5.34.0")


async def test_a_filter_that_was_kept_says_so_until_escape_brings_all_rows_back() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "Found in")
        await pilot.press("slash", *"perl", "enter")
        await shown(pilot, "Only rows with “perl” are shown; Esc shows all.", "Enter Choose")
        assert "Kernel" not in screen(app)
        await pilot.press("escape")
        await shown(pilot, "Found in", "LOOK AT THIS")


async def test_a_row_to_look_at_says_below_what_would_break() -> None:
    app = WizardApp(FixedStages(NOTHING_REACHABLE))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await shown(pilot, "none within reach")
        lines = screen(app).splitlines()
        problem = next(number for number, line in enumerate(lines) if line[2:].startswith("✗ Source of Open MPI"))
        assert "Stops a build. There is nothing to build from." in lines[problem + 1]
        hazard = next(number for number, line in enumerate(lines) if line[2:].startswith("! Windows folders"))
        assert "blanks in folders break some" in lines[hazard + 1]


async def test_what_would_break_takes_two_lines_where_one_is_too_short() -> None:
    meaning = "mpirun counts cores, sees no quota and starts more ranks than can run at a time: the others wait. " * 2
    app = WizardApp(FixedStages(machine_with(replace(fact_of("path.windows"), meaning=meaning))))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "Found in")
        lines = screen(app).splitlines()
        hazard = next(number for number, line in enumerate(lines) if "! Windows folders" in line)
        assert lines[hazard + 1].startswith("    mpirun counts cores") and "…" not in lines[hazard + 1]
        assert "the others wait." in lines[hazard + 2] and lines[hazard + 2].rstrip("▀▁▂▃▄▅▆▇█ ").endswith(" …")


def test_every_label_fits_its_column() -> None:
    column = DetectScreen.columns[0]
    assert [label for label in labels().values() if len(label) > column.limit] == []


async def test_a_box_without_hazards_says_that_there_is_nothing_to_look_at() -> None:
    calm = machine_with(*(replace(fact_of(name), state="ok") for name in ("path.windows", "storage.build")))
    app = WizardApp(FixedStages(calm))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "Nothing to look at before you build. Found in 0.6 s.")


async def test_the_headline_breaks_between_its_parts() -> None:
    app = WizardApp(FixedStages(replace(MACHINE, headline="Docker in AWS EC2 c6i.2xlarge on Ubuntu 22.04 · 4 usable "
                                        "cores (8 threads) · shared memory with CMA · no fast fabric")))  # fmt: skip
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "Found in")
        lines = [line.strip() for line in screen(app).splitlines()[2:4]]
        assert lines == [
            "Docker in AWS EC2 c6i.2xlarge on Ubuntu 22.04 · 4 usable cores (8 threads)",
            "shared memory with CMA · no fast fabric",
        ]


async def test_evidence_that_does_not_fit_says_how_much_more_there_is() -> None:
    raw = "\n".join(f"line {number}" for number in range(9))
    app = WizardApp(FixedStages(machine_with(replace(fact_of("path.windows"), raw=raw))))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "Found in", "more lines: Tab ↓")
        await pilot.press("tab", "end")
        await until(pilot, lambda: "line 8" in screen(app) and "more line" not in screen(app))


async def test_in_a_low_terminal_rows_stand_close() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(size=(60, 16), notifications=True) as pilot:
        await shown(pilot, "Windows folders", "! Place to build")


async def test_evidence_shows_the_text_that_was_read_as_it_is() -> None:
    raw = "[bold]not markup[/bold]\n  two blanks before this\n\x5b/]"
    app = WizardApp(FixedStages(machine_with(replace(fact_of("path.windows"), raw=raw))))
    async with app.run_test(size=(80, 40), notifications=True) as pilot:
        await shown(pilot, "The text that was read", "[bold]not markup[/bold]", "     two blanks before", "[/]")


async def test_evidence_of_a_conclusion_names_its_grounds_and_what_speaks_against_it() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await shown(pilot, "Found in")
        await go_to(pilot, "kernel.single_copy")
        text = app.screen.query_one(Evidence).text
        assert "Rests on: Kernel, Single copy (CMA)" in text
        assert "Speaks against it: The kernel's configuration says" in text
        await shown(pilot, "Speaks against it", "Rests on")


async def test_y_and_shift_y_copy_the_command_and_all_of_the_evidence() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in", "The guide says")
        await pilot.press("y")
        await shown(pilot, "Copied: echo")
        assert app.clipboard == "echo \"$PATH\" | tr ':' '\\n' | grep /mnt"
        await pilot.press("Y")
        await shown(pilot, "Copied: all of the evidence for Windows folders in PATH")
        assert "Read from: $PATH" in app.clipboard
        assert "/mnt/c/Program Files/Git/cmd" in app.clipboard
        assert "The guide says: Keep sources off /mnt/c." in app.clipboard


# --- overruling ------------------------------------------------------------------------------------


async def test_an_overruled_platform_is_looked_at_again_and_remembered() -> None:
    stages = FixedStages()
    app = WizardApp(stages)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "Found in", "o overrule")
        await overrule(pilot, "platform.provider", "down", "down", "enter")
        await shown(pilot, "AWS EC2, as you said")
        assert stages.kept.wishes.assume == (("provider", "aws"),)
        assert [call for call in stages.calls if call[0] == "detect"] == [
            ("detect", {}),
            ("detect", {"provider": "aws"}),
        ]
        assert rows_of(app).row_id == "platform.provider"
        assert stages.called("sources") == 1
        await pilot.press("enter")
        await shown(pilot, "Best for you here")


async def test_as_found_takes_back_what_was_overruled() -> None:
    stages = FixedStages(session=ON_AWS)
    app = WizardApp(stages)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "Found in", "Overruled: Cloud.")
        await overrule(pilot, "platform.provider")
        await shown(pilot, "▸   AWS EC2")
        await pilot.press("home", "enter")
        await until(pilot, lambda: "as you said" not in screen(app))
        await shown(pilot, "none that is known here")
        assert stages.kept.wishes.assume == ()
        assert "Overruled" not in screen(app)


async def test_escape_overrules_nothing() -> None:
    stages = FixedStages(session=ON_AWS)
    app = WizardApp(stages)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "Found in")
        await overrule(pilot, "platform.provider", "down", "escape")
        await until(pilot, lambda: stage(app) == "detect")
        assert stages.kept == ON_AWS
        assert stages.called("detect") == 1


async def test_the_type_of_instance_is_typed_and_an_empty_line_is_as_found() -> None:
    stages = FixedStages(replace(MACHINE, facts=(*FACTS[:3], INSTANCE, *FACTS[3:])))
    app = WizardApp(stages)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "Found in")
        await go_to(pilot, "platform.instance")
        await pilot.press("o")
        await shown(pilot, "An empty line: as found.")
        await pilot.press(*"hpc7a", "enter")
        await shown(pilot, "hpc7a, as you said")
        assert stages.kept.wishes.assume == (("instance", "hpc7a"),)
        await pilot.press("o")
        await shown(pilot, "An empty line: as found.")
        await pilot.press("end", *(["backspace"] * 5), "enter")
        await until(pilot, lambda: stages.kept.wishes.assume == ())


async def test_on_other_rows_o_says_what_can_be_overruled() -> None:
    app = WizardApp(FixedStages())
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Found in")
        await pilot.press("o")
        await shown(pilot, "What can be overruled is the platform: Container or WSL, Virtual", "Type of instance")


async def test_what_rests_on_an_overruled_platform_is_out_of_date(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    app = WizardApp(FixedStages(run=run_at("validate", "done")), RUN)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "built and proven")
        await pilot.press("1")
        await shown(pilot, "Found in")
        await overrule(pilot, "platform.provider", "down", "down", "enter")
        await shown(pilot, "AWS EC2, as you said")
        later = ("choose", "configure", "build", "tune", "validate")
        await until(pilot, lambda: [app.walk.state(name) for name in later] == ["outdated"] * 5)


async def test_what_an_earlier_look_still_says_is_not_heard() -> None:
    class SlowAtFirst(FixedStages):
        def detect(self, listener: Frontend, wishes: Wishes) -> Machine:
            machine = super().detect(listener, wishes)
            if not wishes.assume:
                self.go_on.wait(timeout=20)
                listener.fact(replace(fact_of("cpu.usable"), text="what was so before"))
            return machine

    stages = SlowAtFirst()
    app = WizardApp(stages)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "Looking at this machine", "Windows folders")
        await overrule(pilot, "platform.provider", "down", "down", "enter")
        await shown(pilot, "Found in", "AWS EC2, as you said")
        stages.go_on.set()
        await pilot.pause(0.2)
        assert app.walk.machine is not None
        assert app.walk.machine.value("platform.provider") == "aws"
        assert app.walk.machine.fact("cpu.usable").text == fact_of("cpu.usable").text


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Wishes(), (("provider", "aws"),)),
        (Wishes(prefix="/opt/mpi"), (("provider", "aws"),)),
        (Wishes(assume=(("layer", "docker"),)), (("layer", "docker"),)),
    ],
    ids=["nothing", "another wish", "another overruling"],
)
def test_what_was_overruled_holds_in_the_next_start_until_the_command_line_overrules(
    tmp_path: Path, given: Wishes, expected: tuple[tuple[str, str], ...]
) -> None:
    context = Context(RealHost(), Folders(tmp_path / "state", tmp_path / "cache", tmp_path / "config"), offline=True)
    save_session(context.folders, ON_AWS)
    assert RealStages(context, given).session().wishes == replace(given, assume=expected)


# --- sources ---------------------------------------------------------------------------------------


async def test_detection_is_done_before_the_sources_answer_and_enter_waits_for_them() -> None:
    stages = FixedStages(slow_sources=True)
    app = WizardApp(stages)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "1 Detect ✓ done", "Found in 0.6 s.")
        await pilot.press("end")
        await shown(pilot, "SOURCES OF OPEN MPI", "asking where Open MPI can be had")
        await pilot.press("enter")
        await shown(pilot, "Going on as soon as the sources have answered.")
        await pilot.press("2")
        await shown(pilot, "The sources of Open MPI have to answer first.")
        assert stage(app) == "detect"
        stages.sources_go_on.set()
        await until(pilot, lambda: stage(app) == "choose")
        assert app.walk.machine is not None
        assert app.walk.machine.value("sources.any") is True


async def test_looking_again_asks_the_sources_again_and_keeps_their_rows_meanwhile() -> None:
    stages = FixedStages()
    app = WizardApp(stages)
    async with app.run_test(size=(120, 60), notifications=True) as pilot:
        await shown(pilot, "Open MPI 5.0.8, 30 MB")
        stages.sources_go_on.clear()
        await pilot.press("r")
        await shown(pilot, "asking where Open MPI can be had", "Open MPI 5.0.8, 30 MB")
        assert (stages.called("detect"), stages.called("sources")) == (2, 2)
        await pilot.press("2")
        assert stage(app) == "detect"
        stages.sources_go_on.set()
        await until(pilot, lambda: "asking where" not in screen(app))
        await shown(pilot, "Open MPI 5.0.8, 30 MB")


async def test_overruling_while_the_sources_are_asked_does_not_ask_them_twice() -> None:
    stages = FixedStages(slow_sources=True)
    app = WizardApp(stages)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(pilot, "Found in")
        await overrule(pilot, "platform.provider", "down", "down", "enter")
        await shown(pilot, "Found in", "AWS EC2, as you said")
        stages.sources_go_on.set()
        await until(pilot, lambda: app.walk.machine is not None)
        assert stages.called("sources") == 1
        assert app.walk.machine is not None
        assert app.walk.machine.value("platform.provider") == "aws"
        assert app.walk.machine.value("sources.any") is True


@pytest.mark.parametrize("call", ["detect", "sources"])
async def test_a_failing_look_is_a_sentence_and_can_be_tried_again(call: str) -> None:
    stages = FixedStages(fails={call: "The archive a.tar is not there; name another."})
    app = WizardApp(stages)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "The archive a.tar is not there", "failed", "r looks again")
        await pilot.press("enter", "2")
        await shown(pilot, "This machine could not be looked at")
        assert stage(app) == "detect"
        stages.fails.clear()
        await pilot.press("r")
        await shown(pilot, "Found in")
        await until(pilot, lambda: app.walk.machine is not None)


async def test_a_failure_of_the_sources_keeps_its_sentence_above_the_facts() -> None:
    app = WizardApp(FixedStages(fails={"sources": "The archive is not there; give another."}))
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "Windows folders", "failed")
        await pilot.pause(0.2)
        await shown(pilot, "The archive is not there", "r looks again", "Windows folders")
