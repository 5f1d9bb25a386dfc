"""What is measured, each with its definition, unit, spread and method.

Starting a process is four different things (the operating system alone, the launcher, MPI_Init, a whole
job), so all four are measured, turn by turn, and shown apart.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from msgspec import Struct

from mpiwizard.core.detect.model import Machine
from mpiwizard.core.errors import WizardError
from mpiwizard.core.format import memory, message_size
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _, ngettext
from mpiwizard.core.probes import RUN_DEADLINE, ProbeRun, Probes
from mpiwizard.core.recipes import Expectation, Recipes
from mpiwizard.core.tune.model import Tuning
from mpiwizard.core.tune.trial import single_copy
from mpiwizard.core.validate.checks import settings_in_a_job
from mpiwizard.core.validate.judge import judge
from mpiwizard.core.validate.model import Metric

TURNS = 7  # of the four kinds of start
BENCH_RUNS = 3  # jobs, so that the spread holds what differs between jobs
BENCH_REPEATS = 3  # samples of each size in a job
LATENCY_SIZE = 8  # bytes
STREAM_REPEATS = 5
LARGEST_ARRAY = 1 << 30  # bytes, all ranks together: keeps the measurement to a few seconds


class Measured(Struct, frozen=True):
    """Samples of one quantity, how they were taken, and why there are none."""

    samples: tuple[float, ...] = ()
    method: str = ""
    failure: str = ""
    curve: tuple[tuple[int, float], ...] = ()


class Judge:
    """Turns what was measured into metrics: joins the expectations and says the word."""

    def __init__(self, recipes: Recipes, machine: Machine) -> None:
        self._machine = machine
        self._expectations = recipes.expectations

    def expectations_of(self, metric: str) -> tuple[Expectation, ...]:
        return tuple(one for one in self._expectations if one.metric == metric)

    def metric(
        self,
        id: str,
        label: str,
        unit: str,
        definition: str,
        measured: Measured,
        better: str = "lower",
        claims: tuple[int, ...] = (),
    ) -> Metric:
        """The median of the samples beside the expectations; word `none` when there are no samples."""
        expectations = self.expectations_of(id)
        if not measured.samples:
            return Metric(
                id, label, unit, None, None, 0, definition, measured.method, "none", measured.failure,
                expectations, better=better, claims=claims,
            )  # fmt: skip
        value = median(measured.samples)
        word, verdict = judge(value, unit, expectations, self._machine)
        return Metric(
            id, label, unit, value, (min(measured.samples), max(measured.samples)), len(measured.samples),
            definition, measured.method, word, verdict, expectations, measured.curve, better, claims,
        )  # fmt: skip


def all_metrics(probes: Probes, machine: Machine, recipes: Recipes, tuning: Tuning | None) -> Iterator[Metric]:
    """Every metric in the order it is shown. A probe that does not compile leaves its metrics empty."""
    judge = Judge(recipes, machine)
    yield from start_metrics(probes, judge)
    yield from bench_metrics(probes, judge)
    yield from memory_metrics(probes, judge, machine)
    yield _between_hosts(judge)
    yield single_copy_metric(probes, judge, machine, tuning)


def start_metrics(probes: Probes, judge: Judge) -> Iterator[Metric]:
    """The four kinds of start. MPI_Init tells its own time in the runs of the whole job."""
    true = probes.host.which("true") or "/bin/true"
    missing = _compile_failure(probes, "start")
    whole_job = probes.command(2, [str(probes.folder / "start")], {})
    commands = {"fork-exec-time": [true], "launcher-time": probes.command(1, [true], {})}
    if not missing:
        commands["whole-job-time"] = whole_job
    runs = _in_turn(probes, commands)
    commands |= {"whole-job-time": whole_job, "init-time": whole_job}
    for name, label, definition in _kinds_of_start():
        of_job = runs.get("whole-job-time" if name == "init-time" else name, [])
        if name == "init-time":
            samples = [ms for run in of_job for record in run.records for ms in record["samples"]]
        else:
            samples = [1000 * run.seconds for run in of_job]
        failure = next((run.failure for run in of_job if run.failure), "" if of_job else missing)
        method = _("{turns} turns after one to warm up, all kinds of start in each.").format(turns=TURNS)
        measured = _measured(probes, samples, method, commands[name], failure)
        yield judge.metric(name, label, "ms", definition, measured, claims=(45,))


def _in_turn(probes: Probes, commands: Mapping[str, Sequence[str]]) -> dict[str, list[ProbeRun]]:
    """Run the commands turn by turn, so that all see the same state of the machine.

    A command that fails is not run again; its failure is then its only run.
    """
    runs: dict[str, list[ProbeRun]] = {name: [] for name in commands}
    for turn in range(-1, TURNS):
        for name, command in commands.items():
            if not any(run.failure for run in runs[name]):
                run = probes.run_command(command)
                if run.failure:
                    runs[name] = [run]
                elif turn >= 0:
                    runs[name].append(run)
    return runs


def _kinds_of_start() -> tuple[tuple[str, str, str], ...]:
    """Id, label and definition."""
    return (
        (
            "fork-exec-time",
            _("Process start, system alone"),
            _("The time to start /bin/true without MPI and to see it end."),
        ),
        (
            "launcher-time",
            _("Process start, launcher"),
            _("The time of a whole mpirun of /bin/true on one rank: the launcher without any MPI."),
        ),
        (
            "init-time",
            _("MPI_Init, 2 ranks"),
            _("The time MPI_Init takes in rank 0 of a job with two ranks."),
        ),
        (
            "whole-job-time",
            _("Whole job, 2 ranks"),
            _("The time of a whole mpirun of two ranks that only call MPI_Init and MPI_Finalize."),
        ),
    )


def bench_metrics(probes: Probes, judge: Judge) -> Iterator[Metric]:
    """Latency and bandwidth between two ranks of this machine, with their curves over message size."""
    failure = _compile_failure(probes, "bench")
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
        _measured(probes, latency.get(LATENCY_SIZE, ()), method, command, failure, _curve(latency)),
    )
    method += " " + _("Largest at {size} bytes.").format(size=message_size(best))
    yield judge.metric(
        "bandwidth",
        _("Bandwidth, 2 ranks of one host"),
        "MB/s",
        _("The largest rate, over message sizes, of a window of messages from one rank to another."),
        _measured(probes, bandwidth.get(best, ()), method, command, failure, _curve(bandwidth)),
        better="higher",
        claims=(43,),
    )


def memory_metrics(probes: Probes, judge: Judge, machine: Machine) -> Iterator[Metric]:
    """Memory bandwidth (triad) of all usable ranks together, and of one."""
    missing = _compile_failure(probes, "stream")
    label = ngettext("Memory bandwidth, {ranks} rank", "Memory bandwidth, {ranks} ranks", probes.cores)
    rows = [("memory-bandwidth", label.format(ranks=probes.cores), probes.cores)]
    if probes.cores > 1:
        rows.append(("memory-bandwidth-one-rank", _("Memory bandwidth, 1 rank"), 1))
    for id, label, ranks in rows:
        yield judge.metric(
            id,
            label,
            "GB/s",
            _("The bytes that a = b + 3 c reads and writes per second, on all ranks at the same time."),
            Measured(failure=missing) if missing else _triad(probes, machine, ranks),
            better="higher",
            claims=(46,),
        )


def _triad(probes: Probes, machine: Machine, ranks: int) -> Measured:
    cache = last_level_cache(probes.host)
    array = array_size(cache, int(machine.value("memory.available", 1 << 30)))
    program = [
        str(probes.folder / "stream"), "--only", "triad", "--repeats", str(STREAM_REPEATS),
        "--bytes", str(array // ranks),
    ]  # fmt: skip
    run = probes.run(ranks, program, deadline=2 * RUN_DEADLINE)
    method = _("{repeats} samples over three arrays of {size}, divided among the ranks; last cache {cache}.").format(
        repeats=STREAM_REPEATS, size=memory(array), cache=memory(cache) if cache else _("not known")
    )
    if array < 4 * cache:
        method += " " + _("Less than four times the cache, so a part may come from it.")
    samples = [rate / 1000 for record in run.records for rate in record["samples"]]
    return _measured(probes, samples, method, run.command, run.failure)


def array_size(cache: int, available: int) -> int:
    """Bytes of one of the three arrays, all ranks together.

    Four times the last caches, as STREAM's rules want it; but the three arrays take at most a quarter of
    the available memory, and an array is at most LARGEST_ARRAY and at least 8 MiB.
    """
    return max(min(4 * (cache or 32 << 20), LARGEST_ARRAY, available // 12), 8 << 20)


def last_level_cache(host: Host) -> int:
    """Bytes of all last-level caches of the box together; 0 when the kernel does not tell."""
    caches: dict[tuple[int, str], int] = {}
    base = "/sys/devices/system/cpu"
    for cpu in host.list(base):
        if not re.fullmatch(r"cpu\d+", cpu):
            continue
        for index in host.list(f"{base}/{cpu}/cache"):
            folder = f"{base}/{cpu}/cache/{index}"
            level, size = (host.read(f"{folder}/{name}") or "" for name in ("level", "size"))
            if level.strip().isdigit() and (number := re.match(r"(\d+)([KM])", size)):
                shared = (host.read(f"{folder}/shared_cpu_list") or cpu).strip()
                caches[int(level), shared] = int(number[1]) << (10 if number[2] == "K" else 20)
    last = max((level for level, _shared in caches), default=0)
    return sum(size for (level, _shared), size in caches.items() if level == last)


def _between_hosts(judge: Judge) -> Metric:
    return judge.metric(
        "latency-between-hosts",
        _("Latency between hosts"),
        "µs",
        _("Half the round trip of a small message between ranks of two hosts."),
        Measured(
            method=_("A ping-pong between two hosts; there is one here."),
            failure=_("Not measurable on one host: it takes two that reach each other."),
        ),
        claims=(47, 48),
    )


def single_copy_metric(probes: Probes, judge: Judge, machine: Machine, tuning: Tuning | None) -> Metric:
    """The mechanism a job is set to: the parameter as a rank sees it, and what the machine allows."""
    candidate = single_copy(probes.installation)
    value, source = settings_in_a_job(probes).get(candidate.parameter, ("", _("nothing")))
    off = value == candidate.off or machine.value("kernel.cma") == "refused"
    planned = tuning.parameters.get(candidate.parameter) if tuning else None
    if planned is None:
        word, verdict = "info", _("Left to Open MPI.")
    elif planned == value:
        word, verdict = "ok", _("As planned.")
    else:
        word, verdict = "info", _("Planned was {planned}; {value} is in effect.").format(planned=planned, value=value)
    return Metric(
        id="single-copy",
        label=_("Single copy"),
        unit="",
        value=None,
        spread=None,
        samples=0,
        definition=_("How a large message gets from one rank's memory to another's on this host."),
        method=_("{name} = {value}, from {source}, as a rank of a job sees it. Messages are not traced.").format(
            name=candidate.parameter, value=value or _("(empty)"), source=source
        ),
        word=word,
        verdict=verdict,
        expectations=judge.expectations_of("single-copy"),
        claims=(28, 50),
        text=_("two copies") if off else (value.upper() or "CMA"),
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


def _compile_failure(probes: Probes, name: str) -> str:
    try:
        probes.compile(name)
    except WizardError as error:
        return str(error)
    return ""


def _measured(
    probes: Probes,
    samples: Sequence[float],
    method: str,
    command: Sequence[str],
    failure: str,
    curve: tuple[tuple[int, float], ...] = (),
) -> Measured:
    """Samples with their method: also the state of the machine and the command. A failure voids them."""
    load = (probes.host.read("/proc/loadavg") or "").partition(" ")[0]
    parts = [method, _("Load {load}, usable cores {cores}.").format(load=load or "–", cores=probes.cores)]
    if probes.cores == 1:
        parts.append(_("Two ranks share one processor here."))
    parts.append(_("Command: {command}").format(command=shlex.join(command)))
    return Measured(() if failure else tuple(samples), " ".join(parts), failure, curve)
