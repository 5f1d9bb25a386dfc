"""Probe programs are compiled and run with the MPI under test, and whatever happens becomes a result."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.fakes import machine_with

from mpiwizard.core.errors import WizardError
from mpiwizard.core.host import RealHost
from mpiwizard.core.installation import Installation
from mpiwizard.core.probes import Probes, read_records, usable_ranks
from mpiwizard.core.recipes import recipes_root

SHARED_MEMORY = {"btl": "self,sm"}  # spares the wheel a second of looking for fast fabrics
PROBES = ("bench", "check", "start", "stream")


@pytest.fixture
def probes(installation: Installation, tmp_path: Path) -> Probes:
    machine = machine_with(
        cpu_usable=len(os.sched_getaffinity(0)), platform_user={"uid": os.getuid(), "root": os.getuid() == 0}
    )
    return Probes(RealHost(), machine, installation, tmp_path / "work with blanks")


@pytest.mark.parametrize("name", PROBES)
def test_every_probe_compiles_without_a_warning(installation: Installation, tmp_path: Path, name: str) -> None:
    host = RealHost()
    command = [installation.mpicc, "-std=c99", "-Wall", "-Wextra", "-Werror", "-O3", "-o", str(tmp_path / name)]
    result = host.run([*command, str(recipes_root() / "probes" / f"{name}.c")], timeout=60)
    assert (result.status, result.errors) == (0, "")


def test_there_is_a_test_for_every_probe() -> None:
    sources = {source.name for source in (recipes_root() / "probes").iterdir() if source.name.endswith(".c")}
    assert sources == {f"{name}.c" for name in PROBES}


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_a_right_mpi_passes_every_check(probes: Probes, ranks: int) -> None:
    run = probes.run(ranks, [str(probes.compile("check"))], SHARED_MEMORY)
    assert run.failure == ""
    assert [record["rank"] for record in run.records if "rank" in record] == list(range(ranks))
    checks = {record["check"]: record["passed"] for record in run.records if "check" in record}
    assert all(checks.values()) and {"hello", "ring", "allreduce of double, sum"} <= checks.keys()


def test_a_wrong_result_of_the_mpi_is_found(probes: Probes, tmp_path: Path) -> None:
    program = probes.compile("check")
    source, library = tmp_path / "wrong.c", tmp_path / "wrong.so"
    source.write_text(
        "#include <mpi.h>\n"
        "int MPI_Allreduce(const void *in, void *out, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)\n"
        "{ int e = PMPI_Allreduce(in, out, n, t, o, c); ((char *)out)[5] ^= 1; return e; }\n"
    )
    command = [probes.installation.mpicc, "-shared", "-fPIC", "-o", str(library), str(source)]
    assert RealHost().run(command, timeout=60).succeeded
    run = probes.run(2, ["/usr/bin/env", f"LD_PRELOAD={library}", str(program)], SHARED_MEMORY)
    assert "Check allreduce of int, sum failed" in run.failure
    passed = {record["check"]: record["passed"] for record in run.records if "check" in record}
    assert passed["ring"] and not passed["allreduce of int, sum"]


def test_bench_measures_every_size_several_times(probes: Probes) -> None:
    program = [str(probes.compile("bench")), "--max", "1024", "--repeats", "3", "--milliseconds", "1"]
    run = probes.run(2, program, SHARED_MEMORY)
    assert run.failure == ""
    latency = [record for record in run.records if record["test"] == "latency"]
    assert [record["size"] for record in latency] == [0, *(2**power for power in range(11))]
    assert all(len(record["samples"]) == 3 and min(record["samples"]) > 0 for record in run.records)
    assert {record["unit"] for record in run.records} == {"us", "MB/s"}


def test_bench_refuses_one_rank_in_one_sentence(probes: Probes) -> None:
    assert "needs two ranks" in probes.run(1, [str(probes.compile("bench"))], SHARED_MEMORY).failure


def test_stream_measures_all_ranks_together(probes: Probes) -> None:
    program = [str(probes.compile("stream")), "--bytes", "8000000", "--repeats", "2"]
    run = probes.run(2, program, SHARED_MEMORY)
    (record,) = run.records
    assert (record["test"], record["ranks"], record["bytes"]) == ("triad", 2, 8_000_000)
    assert len(record["samples"]) == 2 and min(record["samples"]) > 0


def test_start_tells_the_time_of_mpi_init(probes: Probes) -> None:
    run = probes.run(2, [str(probes.compile("start"))], SHARED_MEMORY)
    (record,) = run.records
    assert 0 < record["samples"][0] < 1000 * run.seconds


def test_a_hang_is_a_result_and_leaves_nothing_running(probes: Probes) -> None:
    probes.folder.mkdir(parents=True)
    begin = time.monotonic()
    run = probes.run(2, ["/bin/sleep", "612.25"], SHARED_MEMORY, deadline=1)
    assert run.failure == "hung after 1 s"
    while any(b"612.25" in command for command in running_commands()):
        assert time.monotonic() - begin < 10
        time.sleep(0.05)


def running_commands() -> list[bytes]:
    return [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]


def test_a_program_that_dies_is_a_result(probes: Probes) -> None:
    probes.folder.mkdir(parents=True)
    assert "status 3" in probes.run(1, ["/bin/sh", "-c", "exit 3"], SHARED_MEMORY).failure


def test_a_compiler_that_fails_is_told_by_its_first_error_line(probes: Probes) -> None:
    broken = Installation(probes.installation.prefix, "5.0.11", "/bin/false", probes.installation.mpirun)
    with pytest.raises(WizardError, match="/bin/false cannot compile"):
        Probes(RealHost(), machine_with(), broken, probes.folder).compile("check")
    shutil.move(f"{probes.installation.prefix}/include/mpi.h", f"{probes.installation.prefix}/include/hidden.h")
    try:
        with pytest.raises(WizardError, match=r"mpi\.h"):
            probes.compile("start")
    finally:
        shutil.move(f"{probes.installation.prefix}/include/hidden.h", f"{probes.installation.prefix}/include/mpi.h")


def test_ranks_are_limited_by_processors_and_by_cores() -> None:
    assert usable_ranks(machine_with(cpu_usable=8, cpu_cores=4)) == 4
    assert usable_ranks(machine_with(cpu_usable=1, cpu_cores=16)) == 1
    assert usable_ranks(machine_with()) == 1


def test_more_ranks_than_cores_are_oversubscribed_and_yield(installation: Installation, tmp_path: Path) -> None:
    probes = Probes(RealHost(), machine_with(cpu_usable=1), installation, tmp_path)
    crowded = " ".join(probes.command(2, ["true"], {}))
    assert ":OVERSUBSCRIBE" in crowded and "mpi_yield_when_idle 1" in crowded
    assert "OVERSUBSCRIBE" not in " ".join(probes.command(1, ["true"], {}))


def test_ranks_yield_where_a_quota_is_smaller_than_the_cores(installation: Installation, tmp_path: Path) -> None:
    probes = Probes(RealHost(), machine_with(cpu_usable=2, cpu_quota=1.5), installation, tmp_path)
    throttled = " ".join(probes.command(2, ["true"], {}))
    assert "mpi_yield_when_idle 1" in throttled and "OVERSUBSCRIBE" not in throttled
    assert "yield" not in " ".join(probes.command(1, ["true"], {}))


def test_lines_that_are_not_json_are_skipped() -> None:
    output = '[node:1] some notice\r\n{"size": 8}\r\n{"size": inf}\n{broken\n  {"size": 16}\n'
    assert read_records(output) == ({"size": 8}, {"size": 16})


@given(st.text())
def test_any_output_can_be_read(output: str) -> None:
    assert all(isinstance(record, dict) for record in read_records(output))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_ranks_stay_inside_an_affinity_mask_that_mpirun_does_not_see(
    installation: Installation, tmp_path: Path
) -> None:
    allowed = max(os.sched_getaffinity(0))
    slots = {"4": 2, "5": 2}
    machine = machine_with(cpu_usable=1, cpu_cores=1, cpu_slots=slots, platform_user={"root": os.getuid() == 0})
    probes = Probes(RealHost(), machine, installation, tmp_path)
    probes.folder.mkdir(parents=True)
    where = "import json, os; print(json.dumps({'on': sorted(os.sched_getaffinity(0))}))"
    command = probes.command(1, [sys.executable, "-c", where], SHARED_MEMORY)
    run = probes.run_command(["taskset", "-c", str(allowed), *command])
    assert run.failure == ""
    assert run.records == ({"on": [allowed]},)
