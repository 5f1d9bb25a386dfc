"""Detection on the box the tests run on, with real commands and real processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.detect import ask_sources, cma, detect
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.frontend import Frontend
from mpiwizard.core.host import RealHost


def context_in(folder: Path, environment: dict[str, str] | None = None) -> Context:
    folders = Folders(folder / "state", folder / "cache", folder / "config")
    return Context(RealHost(environment), folders, offline=True)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return detect(context_in(tmp_path_factory.mktemp("box")), Wishes())


def test_usable_cpus_are_no_more_than_the_scheduler_allows(machine: Machine) -> None:
    allowed = len(os.sched_getaffinity(0))
    assert machine.value("cpu.affinity") == allowed
    assert 1 <= machine.value("cpu.usable") <= allowed


def test_kernel_and_architecture_are_those_of_uname(machine: Machine) -> None:
    uname = os.uname()
    assert machine.value("kernel.release") == uname.release
    assert machine.value("cpu.architecture") == uname.machine


def test_memory_and_disk_agree_with_the_system(machine: Machine, tmp_path: Path) -> None:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert machine.value("memory.total") == pytest.approx(pages, rel=0.02)
    statistics = os.statvfs(tmp_path)
    free = statistics.f_bavail * statistics.f_frsize
    assert machine.value("storage.build")["free"] == pytest.approx(free, rel=0.2)


def test_detection_is_quick_without_the_network(machine: Machine) -> None:
    assert machine.seconds < 3  # 0.2 s on an idle box


def usable_cpus_after(preparation: str, folder: Path) -> int:
    """What detection says in a process of its own that first ran the Python code `preparation`."""
    code = f"""
import os, sys
from pathlib import Path
from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.detect import detect
from mpiwizard.core.host import RealHost
{preparation}
folder = Path(sys.argv[1])
machine = detect(Context(RealHost(), Folders(folder, folder, folder), offline=True), Wishes())
print(machine.value("cpu.usable"))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(cma.__file__).parents[3])}
    command = [sys.executable, "-c", code, str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment)
    return int(result.stdout)


def test_an_affinity_mask_is_honoured(tmp_path: Path) -> None:
    one = min(os.sched_getaffinity(0))
    assert usable_cpus_after(f"os.sched_setaffinity(0, {{{one}}})", tmp_path) == 1


@pytest.fixture
def half_a_cpu() -> Iterator[Path]:
    """A control group that may use half a CPU; only root can make one, and not everywhere."""
    for root, name, value in (("cpu", "cpu.cfs_quota_us", "50000"), ("", "cpu.max", "50000 100000")):
        group = Path("/sys/fs/cgroup") / root / f"mpiwizard-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / name).write_text(value)
            yield group
            return
        except OSError:
            continue
        finally:
            group.rmdir()
    pytest.skip("control groups cannot be made here")


def test_a_quota_is_honoured(half_a_cpu: Path, tmp_path: Path) -> None:
    join = f"Path({str(half_a_cpu / 'cgroup.procs')!r}).write_text(str(os.getpid()))"
    assert usable_cpus_after(join, tmp_path) == 1


def test_cma_was_tried_between_two_real_processes(machine: Machine) -> None:
    fact = machine.fact("kernel.cma")
    assert fact.value in ("works", "works-with-permission", "refused")
    trial = json.loads(subprocess.run([sys.executable, "-I", cma.__file__], capture_output=True, check=True).stdout)
    assert set(trial) == {"plain", "permitted", "kcmp"}
    assert (trial["permitted"] == 0) == (fact.value != "refused")


def test_reading_a_process_that_does_not_exist_is_refused_with_its_errno() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert cma.read_from(process.pid, 4096) == 3  # ESRCH


def test_every_fact_is_heard_once_as_it_is_found(tmp_path: Path) -> None:
    class Listener(Frontend):
        heard: list[Fact]

        def fact(self, fact: Fact) -> None:
            self.heard.append(fact)

    listener = Listener()
    listener.heard = []
    machine = detect(context_in(tmp_path), Wishes(), listener)
    assert sorted(fact.id for fact in listener.heard) == sorted(fact.id for fact in machine.facts)
    assert set(map(id, listener.heard)) == set(map(id, machine.facts))


def test_detection_leaves_nothing_behind(tmp_path: Path) -> None:
    detect(context_in(tmp_path), Wishes())
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_is_not_there_is_told_to_the_person(tmp_path: Path) -> None:
    with pytest.raises(WizardError) as caught:
        ask_sources(Machine(()), context_in(tmp_path), Wishes(archive=str(tmp_path / "openmpi.tar.gz")))
    assert caught.value.exit_code == ExitCode.USAGE


def test_without_network_and_archive_there_is_no_source_and_the_action_says_what_to_do(
    machine: Machine, tmp_path: Path
) -> None:
    fact = ask_sources(machine, context_in(tmp_path), Wishes()).fact("sources.any")
    assert (fact.value, fact.state) == (False, "problem")
    assert "--archive" in fact.action


def test_asking_the_sources_again_replaces_what_they_said_before(machine: Machine, tmp_path: Path) -> None:
    once = ask_sources(machine, context_in(tmp_path), Wishes())
    assert ask_sources(once, context_in(tmp_path), Wishes()) == once


# --- programs on PATH, as scripts -------------------------------------------------------------------


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def environment_with(path: Path, **variables: str) -> dict[str, str]:
    return {"PATH": str(path), "HOME": str(path.parent / "home"), **variables}


def test_a_box_without_tools_gets_one_command_for_all_of_them(tmp_path: Path) -> None:
    machine = detect(context_in(tmp_path, environment_with(tmp_path / "bin")), Wishes())
    facts = [machine.fact(f"tool.{tool}") for tool in ("cc", "make", "perl")]
    assert {fact.state for fact in facts} == {"problem"}
    assert len({fact.action for fact in facts}) == 1
    assert {"gcc", "make", "perl"} <= set(facts[0].action.replace("'", " ").split())


def test_a_compiler_without_headers_is_a_problem(tmp_path: Path) -> None:
    error = "fatal error: stdio.h: No such file or directory"
    program(
        tmp_path / "bin", "gcc", f'case $1 in --version) echo "gcc (GCC) 13.1.0";; *) echo "{error}" >&2; exit 1;; esac'
    )
    fact = detect(context_in(tmp_path, environment_with(tmp_path / "bin")), Wishes()).fact("tool.cc")
    assert (fact.state, fact.value["version"]) == ("problem", "13.1.0")
    assert fact.action


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler")
def test_a_compiler_named_by_its_variable_is_taken(tmp_path: Path) -> None:
    gcc = shutil.which("gcc")
    fact = detect(context_in(tmp_path, {**os.environ, "CC": f"{gcc} -O1"}), Wishes()).fact("tool.cc")
    assert (fact.state, fact.value["path"], fact.read_from) == ("ok", gcc, "$CC")


def test_a_launcher_that_hangs_does_not_hold_up_detection(tmp_path: Path) -> None:
    program(tmp_path / "bin", "mpirun", "trap '' TERM; exec /bin/sleep 60")
    machine = detect(context_in(tmp_path, environment_with(tmp_path / "bin")), Wishes())
    assert machine.seconds < 15
    assert {"prefix": str(tmp_path), "kind": "other", "release": ""} in machine.value("mpi.installations")


# --- file systems of our own ------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB; only root can have one."""
    folder = tmp_path / "a small disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("file systems cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_too_small_is_a_problem(small_disk: Path) -> None:
    machine = detect(context_in(small_disk), Wishes(prefix=str(small_disk / "new" / "prefix")))
    for fact_id in ("storage.prefix", "storage.build"):
        fact = machine.fact(fact_id)
        assert (fact.state, fact.value["type"]) == ("problem", "tmpfs"), fact_id
        assert fact.value["free"] <= 8 << 20
