"""How fast the ranks of one host read and write memory, with arrays that are larger than the caches."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpiwizard.core.detect.model import Machine
from mpiwizard.core.format import memory
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _, ngettext
from mpiwizard.core.probes import RUN_DEADLINE, Probes
from mpiwizard.core.validate.measured import Judge, Measured, compile_failure, measured_with
from mpiwizard.core.validate.model import Metric

STREAM_REPEATS = 5
LARGEST_ARRAY = 1 << 30  # bytes, all ranks together: keeps the measurement to a few seconds …
LARGEST_SHARE = 64 << 20  # … but many ranks may have more: that much each, as memory grows with them


def memory_metrics(probes: Probes, judge: Judge, machine: Machine) -> Iterator[Metric]:
    """Memory bandwidth (triad) of all usable ranks together, and of one."""
    missing = compile_failure(probes, "stream")
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
    array = array_size(cache, int(machine.value("memory.available", 1 << 30)), ranks)
    program = [str(probes.folder / "stream"), "--repeats", str(STREAM_REPEATS), "--bytes", str(array // ranks)]
    run = probes.run(ranks, program, deadline=2 * RUN_DEADLINE)
    method = _("{repeats} samples over three arrays of {size}, divided among the ranks; last cache {cache}.").format(
        repeats=STREAM_REPEATS, size=memory(array), cache=memory(cache) if cache else _("not known")
    )
    if array < 4 * cache:
        method += " " + _("Less than four times the cache, so a part may come from it.")
    samples = [rate / 1000 for record in run.records for rate in record.get("samples", ())]
    return measured_with(probes, samples, method, run.command, run.failure)


def array_size(cache: int, available: int, ranks: int) -> int:
    """Bytes of one of the three arrays, all ranks together.

    Four times the last caches, as STREAM's rules want it; but the three arrays take at most a quarter of
    the available memory, and an array is at least 8 MiB, at most LARGEST_ARRAY or LARGEST_SHARE of each rank.
    """
    return max(min(4 * (cache or 32 << 20), max(LARGEST_ARRAY, ranks * LARGEST_SHARE), available // 12), 8 << 20)


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
