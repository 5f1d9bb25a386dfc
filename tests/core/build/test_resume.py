"""What counts as done after an interruption, and what a torn file looks like."""

from __future__ import annotations

import subprocess
from pathlib import Path

from msgspec.structs import replace
from tests.core.build.test_journal_and_state import PLAN, finished, state

from mpiwizard.core.build.journal import Event
from mpiwizard.core.build.model import RunState
from mpiwizard.core.build.resume import decide, elf_extent, remove_torn


def actions(run: RunState) -> list[str]:
    return [decision.action for decision in decide(run)]


def built(tmp_path: Path) -> RunState:
    """A run that was interrupted in make, with the products of configure on disk."""
    build = tmp_path / "build"
    build.mkdir()
    (build / "Makefile").write_text("")
    (build / "config.status").write_text("")
    plan = replace(PLAN, build_folder=str(build))
    events = [Event("run-started", 1.0), finished("fetch"), finished("configure"), Event("step-started", 2.0, "make")]
    return state(events, plan=plan)


def test_finished_steps_stay_make_continues_and_the_rest_is_first(tmp_path: Path) -> None:
    assert actions(built(tmp_path)) == ["keep", "keep", "continue", "first"]


def test_a_lost_product_repeats_its_step_and_all_that_rest_on_it(tmp_path: Path) -> None:
    run = built(tmp_path)
    (tmp_path / "build" / "config.status").unlink()
    assert actions(run) == ["keep", "clean", "again", "first"]
    assert "config.status is gone" in decide(run)[1].why


def test_the_reason_to_continue_make_names_what_is_compiled(tmp_path: Path) -> None:
    run = built(tmp_path)
    build = tmp_path / "build"
    (build / "Makefile").write_text("PROGRAMS = a$(EXEEXT)\na_OBJECTS = one.$(OBJEXT) two.lo\nOBJEXT = o\n")
    (build / "two.lo").write_text("# libtool")
    (build / "two.o").write_text("")
    assert decide(run)[2].why == "1 of 2 files are compiled"


def compile_object(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "file.c"
    source.write_text("int number(void) { return 4; }\n")
    target = folder / "file.o"
    subprocess.run(["cc", "-c", "-o", str(target), str(source)], check=True)
    return target


def test_only_torn_files_are_removed(tmp_path: Path) -> None:
    whole = compile_object(tmp_path / "whole")
    torn = compile_object(tmp_path / "torn")
    torn.write_bytes(torn.read_bytes()[:-1])
    empty = tmp_path / "empty.lo"
    empty.write_bytes(b"")
    text = tmp_path / "text.la"
    text.write_text("# a libtool library file\n")
    assert remove_torn(tmp_path) == tuple(sorted((str(torn), str(empty))))
    assert whole.exists()
    assert text.exists()


def test_a_torn_object_of_libtool_takes_its_lo_file_along(tmp_path: Path) -> None:
    torn = compile_object(tmp_path / ".libs")
    torn.write_bytes(torn.read_bytes()[:100])
    promise = tmp_path / "file.lo"
    promise.write_text("# libtool")
    remove_torn(tmp_path)
    assert not promise.exists()


def test_the_extent_of_an_object_is_within_its_size(tmp_path: Path) -> None:
    content = compile_object(tmp_path).read_bytes()
    assert 64 < elf_extent(content[:64]) <= len(content)
