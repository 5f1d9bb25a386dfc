"""Debian's Open MPI, built from source end to end by `mpiwizard run --yes`, killed once and resumed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.real.conftest import RealRun

pytestmark = pytest.mark.real

PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks, sum %d\\n", size, sum);
    MPI_Finalize();
    return 0;
}
"""


def test_the_killed_run_was_recognised_and_said_what_goes_on(real_run: RealRun) -> None:
    assert real_run.killed.state == "interrupted"
    assert real_run.killed.current is not None
    assert real_run.killed.current.id == "make"
    assert "make" in real_run.talk
    assert "continues" in real_run.talk


def test_the_resumed_run_ends_well(real_run: RealRun) -> None:
    assert real_run.status == 0, real_run.talk
    assert real_run.finished.state == "done"


def test_nothing_that_was_compiled_was_compiled_again(real_run: RealRun) -> None:
    """But for the few files that were being written in the moment of the kill."""
    before = real_run.compiled_before_the_kill
    again = [path for path, stamp in before.items() if Path(path).stat().st_mtime_ns != stamp]
    assert len(before) > 300
    assert len(again) <= real_run.finished.plan.jobs


def test_a_program_compiled_with_the_new_mpicc_runs_under_the_new_mpirun(real_run: RealRun, tmp_path: Path) -> None:
    (tmp_path / "sum.c").write_text(PROGRAM)
    subprocess.run([real_run.prefix / "bin" / "mpicc", "-o", "sum", "sum.c"], check=True, cwd=tmp_path, timeout=60)
    result = subprocess.run(
        [real_run.prefix / "bin" / "mpirun", "-n", "2", "--oversubscribe", "./sum"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
        env={
            **real_run.environment(),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        },
    )
    assert (result.returncode, result.stdout) == (0, "2 ranks, sum 1\n"), result.stderr


def test_the_report_holds_every_metric_with_unit_spread_and_method(real_run: RealRun) -> None:
    report = json.loads(real_run.output)
    assert report["schema"] == 1
    metrics = {metric["id"]: metric for metric in report["metrics"]}
    assert set(metrics) >= {
        "launcher-time", "whole-job-time", "init-time", "fork-exec-time", "latency", "bandwidth",
        "memory-bandwidth", "latency-between-hosts", "single-copy",
    }  # fmt: skip
    for metric in metrics.values():
        assert metric["method"], metric["id"]
        if metric["value"] is not None and metric["unit"]:
            assert metric["spread"] is not None, metric["id"]
    assert all(check["passed"] for check in report["checks"])


def test_the_parameter_file_holds_our_block_and_its_value_is_in_force(real_run: RealRun) -> None:
    text = (real_run.prefix / "etc" / "openmpi-mca-params.conf").read_text()
    assert text.count("# >>> mpiwizard") == 1
    assert "btl_vader_single_copy_mechanism" in text


def test_uninstall_leaves_nothing_behind(real_run: RealRun) -> None:
    """The last test of this file: it removes what the others use."""
    import sys

    result = subprocess.run(
        [sys.executable, "-m", "mpiwizard", "uninstall", "--prefix", str(real_run.prefix), "--yes"],
        capture_output=True,
        text=True,
        env=real_run.environment(),
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert not real_run.prefix.exists()
