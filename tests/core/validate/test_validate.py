"""An installation is proven right, measured, and told apart from a broken one."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from tests.core.fakes import context_in, machine_with, scripted_mpi, write_program

from mpiwizard.core.frontend import Frontend
from mpiwizard.core.host import RealHost
from mpiwizard.core.installation import Installation
from mpiwizard.core.probes import Probes
from mpiwizard.core.recipes import load_recipes
from mpiwizard.core.recordings import RecordedHost
from mpiwizard.core.tune.block import remove_block, write_block
from mpiwizard.core.tune.model import Tuning
from mpiwizard.core.validate import summary_rows, validate
from mpiwizard.core.validate.checks import all_checks
from mpiwizard.core.validate.measured import Judge
from mpiwizard.core.validate.memory import array_size, last_level_cache
from mpiwizard.core.validate.metrics import single_copy_metric
from mpiwizard.core.validate.model import Check, Metric, Report

ROOT = {"uid": os.getuid(), "root": os.getuid() == 0}
USABLE = min(2, len(os.sched_getaffinity(0)))
BOX = machine_with(cpu_usable=USABLE, memory_available=96 << 20, kernel_cma="works", platform_user=ROOT)
MEASURED = {
    "fork-exec-time", "launcher-time", "init-time", "whole-job-time", "latency", "bandwidth",
    "memory-bandwidth", *(["memory-bandwidth-one-rank"] if USABLE > 1 else []),
}  # fmt: skip


class Listener(Frontend):
    def __init__(self) -> None:
        self.rows: list[Check | Metric] = []

    def check(self, check: Check) -> None:
        self.rows.append(check)

    def metric(self, metric: Metric) -> None:
        self.rows.append(metric)


def validated(installation: Installation, folder: Path) -> Report:
    return validate(context_in(folder), BOX, load_recipes(), installation, folder / "work")


def failed(report: Report) -> list[str]:
    return [check.id for check in report.checks if not check.passed]


def test_a_good_open_mpi_passes_and_is_measured(installation: Installation, tmp_path: Path) -> None:
    listener = Listener()
    report = validate(context_in(tmp_path), BOX, load_recipes(), installation, tmp_path / "work", listener)

    assert failed(report) == []
    assert f"works on this machine: {len(report.checks)} of {len(report.checks)} checks" in report.headline
    assert {"hello-1", "ring-2", "allreduce-of-double-sum-2"} <= {check.id for check in report.checks}
    assert listener.rows == [*report.checks, *report.metrics]

    metrics = {metric.id: metric for metric in report.metrics}
    assert {id for id, metric in metrics.items() if metric.value is not None} == MEASURED
    for id in MEASURED:
        low, high = metrics[id].spread or (0, 0)
        assert 0 < low <= (metrics[id].value or 0) <= high
        assert metrics[id].samples >= 5 and metrics[id].unit
    assert all(metric.definition and metric.method and metric.verdict for metric in report.metrics)
    assert metrics["latency-between-hosts"].word == "none"
    assert metrics["single-copy"].text == "CMA"
    assert [size for size, _value in metrics["latency"].curve][-1] == 4 << 20
    assert (metrics["launcher-time"].value or 0) < (metrics["whole-job-time"].value or 0)

    kept = Path(installation.prefix, "share", "mpiwizard", "report.json").read_bytes()
    assert msgspec.json.decode(kept, type=Report) == report

    rows = {row.metric: row for row in summary_rows(report)}
    assert (rows["launcher-time"].wsl2, rows["launcher-time"].cloud) == ("50–100 ms", "5–10 ms")
    assert rows["latency-between-hosts"].here == "–"
    assert rows["latency"].here == metrics["latency"].shown != "–"


@pytest.mark.parametrize("in_file", [True, False])
def test_a_tuned_setting_must_reach_a_job(installation: Installation, tmp_path: Path, in_file: bool) -> None:
    probes = Probes(RealHost(), BOX, installation, tmp_path)
    planned = {"smsc": "^cma"}
    tuning = Tuning(installation.prefix, installation.release, (), planned, ())
    write_block(Path(installation.parameter_file), planned if in_file else {"smsc": "cma"}, {})
    *_others, check = all_checks(probes, planned)
    copy = single_copy_metric(probes, Judge(load_recipes(), BOX), BOX, tuning)
    remove_block(Path(installation.parameter_file))
    assert (check.id, check.passed) == ("parameter-file", in_file), check.detail
    assert (copy.word, copy.text) == (("ok", "two copies") if in_file else ("info", "CMA"))


def test_a_crashing_job_is_a_failed_check_and_nothing_is_measured(tmp_path: Path) -> None:
    installation = scripted_mpi(tmp_path / "prefix", "4.1.4", "*) echo '-----'; echo 'no network' >&2; exit 14;;")
    report = validated(installation, tmp_path)
    assert {"file-mpi", "file-libmpi", "version", "job-1"} == set(failed(report))
    assert report.checks[-1].detail == "ended with status 14: no network"
    assert report.metrics == () and not report.passed
    assert "fails 4 of" in report.headline


def test_a_wrong_answer_is_a_failed_check_that_names_it(tmp_path: Path) -> None:
    answer = '{"check":"ring","passed":false,"detail":"10 laps gave 9, expected 10"}'
    installation = scripted_mpi(tmp_path / "prefix", "4.1.4", f"*probes/check*) echo '{answer}'; exit 1;;\n*) exit 1;;")
    report = validated(installation, tmp_path)
    assert {"ring-1", "ring-2"} <= set(failed(report))
    assert {metric.word for metric in report.metrics if metric.id in MEASURED} == {"none", "info"}


def test_a_compiler_that_fails_is_told_and_no_job_is_tried(tmp_path: Path) -> None:
    installation = scripted_mpi(tmp_path / "prefix", "4.1.4", "*) exit 1;;", mpicc="echo 'error: no cc' >&2; exit 1")
    report = validated(installation, tmp_path)
    assert "error: no cc" in next(check.detail for check in report.checks if check.id == "compile")
    assert not any(check.id.endswith("-1") for check in report.checks)


def test_two_mixed_installations_are_noticed(tmp_path: Path) -> None:
    installation = scripted_mpi(tmp_path / "prefix", "4.1.4", "*) exit 1;;")
    write_program(tmp_path / "prefix" / "bin" / "ompi_info", "echo 'Open MPI v4.1.8'")
    (check,) = (check for check in validated(installation, tmp_path).checks if check.id == "version")
    assert not check.passed and check.detail == "Open MPI v4.1.8"


@pytest.mark.skipif(os.getuid() == 0, reason="user 0 may write everywhere")
def test_a_prefix_that_cannot_be_written_does_not_stop_the_report(tmp_path: Path) -> None:
    installation = scripted_mpi(tmp_path / "prefix", "4.1.4", "*) exit 1;;")
    (tmp_path / "prefix").chmod(0o555)
    assert validated(installation, tmp_path).prefix == installation.prefix


def test_all_last_level_caches_count(tmp_path: Path) -> None:
    for cpu, shared in enumerate(["0-1", "0-1", "2-3", "2-3"]):
        for index, (level, size) in enumerate([("1", "48K"), ("2", "2048K"), ("3", "32M")]):
            folder = tmp_path / "root/sys/devices/system/cpu" / f"cpu{cpu}" / "cache" / f"index{index}"
            folder.mkdir(parents=True)
            (folder / "level").write_text(level + "\n")
            (folder / "size").write_text(size + "\n")
            (folder / "shared_cpu_list").write_text((shared if level == "3" else str(cpu)) + "\n")
    assert last_level_cache(RecordedHost(tmp_path)) == 64 << 20
    assert last_level_cache(RecordedHost(tmp_path / "nowhere")) == 0


def test_arrays_are_larger_than_the_caches_but_leave_memory_to_others() -> None:
    assert array_size(32 << 20, 16 << 30, 2) == 128 << 20
    assert array_size(300 << 20, 64 << 30, 4) == 1 << 30
    assert array_size(1536 << 20, 448 << 30, 120) == 6 << 30
    assert array_size(300 << 20, 600 << 20, 2) == 50 << 20
    assert array_size(0, 16 << 30, 2) == 128 << 20
