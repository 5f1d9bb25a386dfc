"""What a run does from start to end, stopped, killed, resumed: real processes, a real small build."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.worker.conftest import BUILD_STEPS, MINIATURE, wait, wait_for_end

from mpiwizard import worker
from mpiwizard.core.build.journal import read_journal
from mpiwizard.core.build.resume import decide
from mpiwizard.core.build.runs import load_run
from mpiwizard.core.configure.model import Plan, Step
from mpiwizard.core.context import Context
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.sources.unpack import unpack

Make = Callable[..., Plan]


def in_make(minimum: int) -> Callable[[object], bool]:
    """Holds once make has compiled at least so many files."""

    def holds(run: object) -> bool:
        plan = run.plan  # type: ignore[attr-defined]
        return len(list(Path(plan.build_folder).glob("src/*.o"))) >= minimum

    return holds


def events_of(plan: Plan, context: Context) -> list[tuple[str, str]]:
    journal = context.folders.runs / plan.run / "journal.jsonl"
    return [(event.event, event.step) for event in read_journal(journal)]


def slowed(plan: Plan, folder: Path) -> Plan:
    """The same plan with a compiler that takes 0.15 s longer for each file, so that there is a middle."""
    compiler = folder / "bin" / "gcc"
    compiler.parent.mkdir()
    compiler.write_text('#!/bin/sh\ncase "$*" in *src/part*) sleep 0.15 ;; esac\nexec /usr/bin/gcc "$@"\n')
    compiler.chmod(0o755)
    path = f"{compiler.parent}:{os.environ['PATH']}"
    steps = tuple(
        replace(step, environment={**step.environment, "PATH": path}) if step.id in ("configure", "make") else step
        for step in plan.steps
    )
    return replace(plan, steps=steps)


def test_a_run_builds_and_installs_in_the_background(context: Context, make: Make) -> None:
    plan = make()
    run_id = worker.start(context, plan)
    run = wait_for_end(context, run_id)
    assert (run.state, [step.state for step in run.steps]) == ("done", ["done"] * 6)
    assert Path(plan.prefix, "lib", "libminiature.a").is_file()
    details = {step.id: step.detail for step in run.steps}
    assert details["unpack"].endswith(" files")
    assert details["configure"] == "shared memory with CMA yes"
    assert details["make"] == "40 files compiled, 0 warnings"
    assert details["install"].endswith(" files")
    assert "CC       src/part40.o" in (Path(run.folder) / "make.log").read_text()


def test_the_worker_lives_on_when_all_that_started_it_is_killed(context: Context, make: Make, tmp_path: Path) -> None:
    plan = slowed(make(), tmp_path)
    program = (
        "import sys, msgspec, time; from pathlib import Path\n"
        "from mpiwizard import worker; from mpiwizard.core.context import Context\n"
        "from mpiwizard.core.configure.model import Plan\n"
        "worker.start(Context.of_person(), msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Plan))\n"
        "print('started', flush=True); time.sleep(60)\n"
    )
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode(plan))
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(context.folders.state.parent),
        "XDG_CACHE_HOME": str(context.folders.cache.parent),
        "PYTHONPATH": str(Path(worker.__file__).parents[2]),
    }
    interface = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "plan.json")],
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    assert interface.stdout is not None
    assert interface.stdout.readline() == b"started\n"
    wait(context, plan.run, in_make(2))
    os.killpg(interface.pid, signal.SIGHUP)
    os.killpg(interface.pid, signal.SIGKILL)
    interface.wait()
    assert load_run(context.folders, plan.run).state == "running"
    assert wait_for_end(context, plan.run).state == "done"


def test_stop_ends_all_processes_and_resume_goes_on_without_compiling_again(
    context: Context, make: Make, tmp_path: Path
) -> None:
    plan = slowed(make(), tmp_path)
    run_id = worker.start(context, plan)
    wait(context, run_id, in_make(8))
    stopped = worker.stop(context, run_id)
    assert (stopped.state, stopped.current and stopped.current.id) == ("stopped", "make")
    assert not list(worker._processes_of(stopped, with_commands=True))
    compiled = {path.name: path.stat().st_mtime_ns for path in Path(plan.build_folder).glob("src/*.o")}
    assert [decision.action for decision in decide(stopped)] == ["keep"] * 4 + ["continue", "first"]
    worker.resume(context, run_id)
    assert wait_for_end(context, run_id).state == "done"
    after = {path.name: path.stat().st_mtime_ns for path in Path(plan.build_folder).glob("src/*.o")}
    assert len(after) == 40
    assert {name: after[name] for name in compiled} == compiled


def test_a_killed_worker_leaves_an_orphan_that_can_be_stopped(context: Context, make: Make, tmp_path: Path) -> None:
    plan = slowed(make(), tmp_path)
    run_id = worker.start(context, plan)
    run = wait(context, run_id, in_make(4))
    (pid,) = worker._processes_of(run, with_commands=False)
    os.kill(pid, signal.SIGKILL)
    orphan = wait(context, run_id, lambda run: run.state == "orphaned")
    with pytest.raises(WizardError) as caught:
        worker.resume(context, run_id)
    assert caught.value.exit_code == ExitCode.LOCKED
    assert worker.stop(context, orphan.id).state == "interrupted"


def test_everything_killed_at_once_is_interrupted_and_torn_objects_are_made_again(
    context: Context, make: Make, tmp_path: Path
) -> None:
    plan = slowed(make(), tmp_path)
    run_id = worker.start(context, plan)
    run = wait(context, run_id, in_make(6))
    for pid in worker._processes_of(run, with_commands=True):
        os.kill(pid, signal.SIGKILL)
    run = wait(context, run_id, lambda run: run.state == "interrupted")
    assert run.current is not None
    assert run.current.id == "make"
    torn = sorted(Path(plan.build_folder).glob("src/*.o"))[0]
    whole = torn.read_bytes()
    torn.write_bytes(whole[: len(whole) // 2])
    worker.resume(context, run_id)
    run = wait_for_end(context, run_id)
    assert run.state == "done"
    assert torn.read_bytes()[:4] == b"\x7fELF"
    assert len(torn.read_bytes()) == len(whole)
    assert "1 unfinished files removed" in run.notes


def test_configure_interrupted_is_done_again_in_a_clean_folder(context: Context, make: Make, tmp_path: Path) -> None:
    plan = make()
    run_id = worker.start(context, plan)
    wait(context, run_id, lambda run: run.steps[3].state == "running")
    worker.stop(context, run_id)
    leftover = Path(plan.build_folder) / "leftover"
    leftover.write_text("")
    assert decide(load_run(context.folders, run_id))[3].action == "clean"
    worker.resume(context, run_id)
    assert wait_for_end(context, run_id).state == "done"
    assert not leftover.exists()


@pytest.mark.parametrize("step", BUILD_STEPS)
def test_a_run_cut_off_in_any_step_is_resumed_to_its_end(context: Context, make: Make, step: str) -> None:
    """The worker and its command are killed in the moment the step begins."""
    plan = make()
    whole, held = plan.step(step), ("/bin/sh", "-c", "sleep 60")
    steps = tuple(replace(whole, argv=held) if one.id == step else one for one in plan.steps)
    run_id = worker.start(context, replace(plan, steps=steps))
    run = wait(context, run_id, lambda run: any(one.id == step and one.state == "running" for one in run.steps))
    for pid in worker._processes_of(run, with_commands=True):
        os.kill(pid, signal.SIGKILL)
    wait(context, run_id, lambda run: run.state == "interrupted")
    (Path(run.folder) / "plan.json").write_bytes(msgspec.json.encode(plan))
    worker.resume(context, run_id)
    assert wait_for_end(context, run_id).state == "done"


def test_a_run_of_the_same_name_elsewhere_is_never_touched(context: Context, make: Make, tmp_path: Path) -> None:
    plan = slowed(make(), tmp_path)
    worker.start(context, plan)
    run = wait(context, plan.run, in_make(1))
    elsewhere = replace(run, folder=str(tmp_path / "elsewhere" / plan.run))
    assert list(worker._processes_of(elsewhere, with_commands=True)) == []


def test_two_runs_cannot_build_into_one_prefix(context: Context, make: Make, tmp_path: Path) -> None:
    plan = slowed(make(), tmp_path)
    worker.start(context, plan)
    other = replace(plan, run=plan.run + "-b")
    with pytest.raises(WizardError) as caught:
        worker.start(context, other)
    assert caught.value.exit_code == ExitCode.LOCKED
    assert plan.run in str(caught.value)
    assert not (context.folders.runs / other.run).exists()


def test_a_wrong_checksum_refuses_names_both_sums_and_keeps_the_persons_file(
    context: Context, make: Make, tmp_path: Path
) -> None:
    archive = tmp_path / "openmpi-5.0.11.tar.xz"
    archive.write_bytes(MINIATURE.read_bytes())
    plan = make(archive=archive, sha256="0" * 64)
    run = wait_for_end(context, worker.start(context, plan))
    assert (run.state, run.current and run.current.id) == ("failed", "fetch")
    assert "0" * 64 in run.failure
    assert archive.exists()


def test_a_failed_source_gives_its_reason_and_the_fallback_plan_goes_on(context: Context, make: Make) -> None:
    plan = make()
    broken = replace(plan, wishes=replace(plan.wishes, sha256="0" * 64), fallback=plan)
    run = wait_for_end(context, worker.start(context, broken))
    assert run.state == "done"
    assert "0" * 64 in run.notes[0]


def test_a_compile_error_fails_the_run_and_keeps_the_rest(context: Context, make: Make, tmp_path: Path) -> None:
    plan = make(archive=broken_archive(tmp_path))
    run = wait_for_end(context, worker.start(context, plan))
    assert (run.state, run.current and run.current.id) == ("failed", "make")
    from mpiwizard.core.build.failure import explain_failure

    card = explain_failure(run.steps[4], Path(run.folder) / "make.log")
    assert "part07.c" in card.where
    assert "error:" in card.evidence


def broken_archive(folder: Path) -> Path:
    """The miniature with a mistake in one file."""
    source = folder / "broken"
    unpack(MINIATURE, source)
    with (source / "src" / "part07.c").open("a") as file:
        file.write("int wrong = undeclared_name;\n")
    target = folder / "openmpi-broken.tar.gz"
    with tarfile.open(target, "w:gz") as archive:
        archive.add(source, "openmpi-5.0.11")
    return target


def test_a_step_past_its_deadline_is_killed_even_if_it_ignores_sigterm(context: Context, make: Make) -> None:
    plan = make()
    stubborn = Step(
        id="fetch",
        title="",
        argv=("/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"),
        folder=str(context.folders.runs / plan.run),
        environment={},
        script=(),
        seconds=1.0,
        deadline=0.3,
    )
    started = time.monotonic()
    run = wait_for_end(context, worker.start(context, replace(plan, steps=(stubborn,))))
    assert run.state == "failed"
    assert "did not end" in run.failure
    assert time.monotonic() - started < 20


def test_a_command_that_does_not_exist_is_a_failed_step_not_a_dead_worker(context: Context, make: Make) -> None:
    plan = make()
    missing = replace(plan.steps[0], argv=("/nonexistent/program",))
    run = wait_for_end(context, worker.start(context, replace(plan, steps=(missing,))))
    assert (run.state, run.steps[0].status) == ("failed", 127)
    assert "/nonexistent/program" in (Path(run.folder) / "fetch.log").read_text()


def test_a_journal_that_cannot_be_written_is_told_at_the_start(context: Context, make: Make) -> None:
    plan = make()
    folder = context.folders.runs / plan.run
    (folder / "journal.jsonl").mkdir(parents=True)
    (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    with pytest.raises(WizardError, match=r"did not start: .*journal\.jsonl"):
        worker.resume(context, plan.run)


def test_when_the_journal_finds_no_room_nothing_runs_on_and_the_reason_is_kept(
    context: Context, make: Make, tmp_path: Path
) -> None:
    plan = slowed(make(), tmp_path)
    run_id = worker.start(context, plan)
    wait(context, run_id, in_make(2))
    journal = context.folders.runs / run_id / "journal.jsonl"
    (driver,) = worker._processes_of(load_run(context.folders, run_id), with_commands=False)
    room = journal.stat().st_size + 10  # no event is that short
    resource.prlimit(driver, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    run = wait_for_end(context, run_id)
    assert (run.state, run.current and run.current.id) == ("interrupted", "make")
    assert re.search("room|space|large", run.failure), run.failure
    assert not list(worker._processes_of(run, with_commands=True))
    worker.resume(context, run_id)
    assert wait_for_end(context, run_id).state == "done"


def test_a_prefix_that_became_unwritable_fails_the_install_with_the_reason(context: Context, make: Make) -> None:
    plan = make()
    plan = replace(plan, prefix="/proc/mpi")
    run = wait_for_end(context, worker.start(context, plan))
    assert (run.state, run.current and run.current.id) == ("failed", "install")
    assert "/proc/mpi" in (Path(run.folder) / "install.log").read_text()


def test_a_note_between_steps_that_is_spoiled_fails_the_step_in_one_sentence(context: Context, make: Make) -> None:
    plan = make(steps=("verify",))
    folder = context.folders.runs / plan.run
    folder.mkdir(parents=True)
    (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    (folder / "fetched.json").write_text('{"archive": ')
    worker.resume(context, plan.run)
    run = wait_for_end(context, plan.run)
    assert run.failure.startswith("What was fetched is not known any more")
    assert "Traceback" not in (folder / "verify.log").read_text()
