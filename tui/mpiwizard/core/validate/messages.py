"""How fast two ranks of one host talk: latency, bandwidth, and their curves over message size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from mpiwizard.core.format import message_size
from mpiwizard.core.i18n import _
from mpiwizard.core.probes import RUN_DEADLINE, Probes
from mpiwizard.core.validate.measured import Judge, compile_failure, measured_with
from mpiwizard.core.validate.model import Metric

BENCH_RUNS = 3  # jobs, so that the spread holds what differs between jobs
BENCH_REPEATS = 3  # samples of each size in a job
LATENCY_SIZE = 8  # bytes


def message_metrics(probes: Probes, judge: Judge) -> Iterator[Metric]:
    """Latency and bandwidth between two ranks of this machine, with their curves over message size."""
    failure = compile_failure(probes, "bench")
    records: list[dict[str, Any]] = []
    program = [str(probes.folder / "bench"), "--repeats", str(BENCH_REPEATS), "--milliseconds", "4"]
    for _run in range(BENCH_RUNS):
        if not failure:
            run = probes.run(2, program, deadline=2 * RUN_DEADLINE)
            failure, records = run.failure, [*records, *run.records]
    method = _("{runs} jobs, {repeats} samples of each message size in each; data checked.").format(
        runs=BENCH_RUNS, repeats=BENCH_REPEATS
    )
    command = probes.command(2, program, {})
    latency, bandwidth = _by_size(records, "latency"), _by_size(records, "bandwidth")
    best = max(bandwidth, key=lambda size: median(bandwidth[size]), default=0)
    yield judge.metric(
        "latency",
        _("Latency, 2 ranks of one host"),
        "µs",
        _("Half the round trip of a message of 8 bytes between two ranks of this host."),
        measured_with(probes, latency.get(LATENCY_SIZE, ()), method, command, failure, _curve(latency)),
    )
    method += " " + _("Largest at {size} bytes.").format(size=message_size(best))
    yield judge.metric(
        "bandwidth",
        _("Bandwidth, 2 ranks of one host"),
        "MB/s",
        _("The largest rate, over message sizes, of a window of messages from one rank to another."),
        measured_with(probes, bandwidth.get(best, ()), method, command, failure, _curve(bandwidth)),
        better="higher",
        claims=(43,),
    )


def _by_size(records: Sequence[dict[str, Any]], test: str) -> dict[int, list[float]]:
    """All samples of a test by message size."""
    sizes: dict[int, list[float]] = {}
    for record in records:
        if record.get("test") == test:
            sizes.setdefault(record["size"], []).extend(record["samples"])
    return sizes


def _curve(sizes: dict[int, list[float]]) -> tuple[tuple[int, float], ...]:
    return tuple((size, median(samples)) for size, samples in sorted(sizes.items()))
