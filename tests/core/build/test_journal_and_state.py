"""The journal survives a crash at any byte, and the state of a run follows from it alone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mpiwizard.core.build.journal import Event, Journal, read_journal
from mpiwizard.core.build.model import RunState
from mpiwizard.core.build.runs import fold, read_plan
from mpiwizard.core.choose.model import Choice
from mpiwizard.core.configure.model import Plan, Step
from mpiwizard.core.context import Wishes
from mpiwizard.core.errors import WizardError
from mpiwizard.core.locks import is_locked, take_lock


def step(name: str, safe_again: str = "again") -> Step:
    return Step(name, name, ("true",), "/nowhere", {}, (), 1.0, 10.0, safe_again)


PLAN = Plan(
    run="r",
    choice=Choice("generic", "4.1.4", "distro", "Open MPI 4.1.4"),
    wishes=Wishes(),
    prefix="/nowhere/prefix",
    jobs=2,
    source_folder="/nowhere/source",
    build_folder="/nowhere/build",
    options=(),
    steps=(step("fetch"), step("configure", "clean"), step("make", "continue"), step("install")),
    seconds=4.0,
    disk=1,
    disk_kept=1,
    packages={},
)


def state(events: list[Event], *, worker: bool = False, commands: bool = False, plan: Plan = PLAN) -> RunState:
    return fold(plan, tuple(events), Path("/nowhere/r"), worker=worker, commands=commands)


def finished(name: str, status: int = 0) -> Event:
    return Event("step-finished", 2.0, name, status=status, outcome="failed" if status else "done")


def test_what_is_written_can_be_read_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl", lambda: 7.0)
    journal.write("run-started", pid=5)
    journal.write("step-finished", step="make", status=2, seconds=1.5, text="ü", outcome="failed")
    journal.close()
    assert read_journal(tmp_path / "journal.jsonl") == (
        Event("run-started", 7.0, pid=5),
        Event("step-finished", 7.0, "make", status=2, seconds=1.5, text="ü", outcome="failed"),
    )


@given(cut=st.integers(min_value=0, max_value=400))
def test_a_journal_cut_anywhere_keeps_its_whole_lines_and_can_be_continued(
    cut: int, tmp_path_factory: object
) -> None:
    folder = tmp_path_factory.mktemp("journal")  # type: ignore[attr-defined]
    path = folder / "journal.jsonl"
    journal = Journal(path, lambda: 1.0)
    for name in ("fetch", "configure", "make"):
        journal.write("step-started", step=name, pid=9)
    journal.close()
    content = path.read_bytes()[:cut]
    path.write_bytes(content)
    whole = len(read_journal(path))
    assert whole == content.count(b"\n") or whole == content.count(b"\n") + content.endswith(b"}")
    again = Journal(path, lambda: 2.0)
    again.write("run-started")
    again.close()
    events = read_journal(path)
    assert events[-1] == Event("run-started", 2.0)
    assert len(events) == whole + 1


def test_without_a_journal_a_run_is_new() -> None:
    assert state([]).state == "new"


def test_the_locks_tell_who_is_at_work() -> None:
    events = [Event("run-started", 1.0), Event("step-started", 1.0, "fetch", pid=4)]
    assert state(events, worker=True, commands=True).state == "running"
    assert state(events, commands=True).state == "orphaned"
    assert state(events).state == "interrupted"
    assert state(events).steps[0].state == "interrupted"


def test_a_finished_run_has_the_outcome_it_wrote() -> None:
    events = [Event("run-started", 1.0), finished("fetch", 3), Event("run-finished", 3.0, outcome="failed", text="why")]
    run = state(events)
    assert (run.state, run.failure, run.steps[0].status) == ("failed", "why", 3)
    assert run.current == run.steps[0]


def test_a_resumed_run_forgets_its_old_end_but_not_its_finished_steps() -> None:
    events = [
        Event("run-started", 1.0),
        finished("fetch"),
        finished("configure", 1),
        Event("run-finished", 3.0, outcome="failed", text="why"),
        Event("run-started", 4.0),
    ]
    run = state(events, worker=True)
    assert (run.state, run.failure, run.started) == ("running", "", 1.0)
    assert [found.state for found in run.steps] == ["done", "failed", "waiting", "waiting"]


def test_after_a_change_of_plan_the_steps_are_those_of_the_fallback() -> None:
    plan = replace(PLAN, fallback=replace(PLAN, prefix="/other"))
    events = [Event("run-started", 1.0), finished("fetch", 1), Event("plan-changed", 2.0, text="no network")]
    run = state(events, worker=True, plan=plan)
    assert run.plan.prefix == "/other"
    assert run.steps[0].state == "waiting"
    assert run.notes == ("no network",)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["run-started", "step-started", "step-finished", "plan-changed", "run-finished", "note"]),
            st.sampled_from(["fetch", "make", "install", "unheard-of", ""]),
            st.sampled_from(["done", "failed", "stopped"]),
        )
    ),
    st.booleans(),
    st.booleans(),
)
def test_any_order_of_events_gives_a_state(events: list[tuple[str, str, str]], worker: bool, commands: bool) -> None:
    run = state(
        [Event(kind, 1.0, name, outcome=outcome, status=0) for kind, name, outcome in events],
        worker=worker,
        commands=commands,
    )
    assert len(run.steps) == len(PLAN.steps)
    if not run.active:
        assert all(found.state != "running" for found in run.steps)


def test_a_lock_is_held_as_long_as_its_holder_lives(tmp_path: Path) -> None:
    import os

    path = tmp_path / "lock"
    assert not is_locked(path)
    descriptor = take_lock(path)
    assert descriptor is not None
    assert is_locked(path)
    started = time.monotonic()
    assert take_lock(path) is None
    assert time.monotonic() - started < 3
    os.close(descriptor)
    assert not is_locked(path)


def test_an_event_that_found_no_room_does_not_spoil_the_next(tmp_path: Path) -> None:
    """Written in another process: a limit on the size of files stands for a full disk."""
    program = (
        "import resource, sys; from pathlib import Path; from mpiwizard.core.build.journal import Journal\n"
        "journal = Journal(Path(sys.argv[1]), lambda: 1.0); journal.write('run-started')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (Path(sys.argv[1]).stat().st_size + 10, -1))\n"
        "try: journal.write('note', text='lost')\n"
        "except OSError: resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))\n"
        "journal.write('note', text='kept')\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "j")], check=True)
    assert [event.text for event in read_journal(tmp_path / "j")] == ["", "kept"]


def test_a_plan_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode(replace(PLAN, schema=2)))
    with pytest.raises(WizardError, match="another version"):
        read_plan(tmp_path)
