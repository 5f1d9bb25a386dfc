"""Cores of different kinds in one processor: fast ones and slow ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from mpiwizard.core.detect.cpu import allowed_cpus, texts_of
from mpiwizard.core.detect.facts import Probe, Survey, lines_with, make_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.detect.topology import CPUS, CpuSet, Topology, as_cpu_list, parse_cpu_list, parts_of, read_topology
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

# The counters of Intel's hybrid processors, a device for each kind of core (the kernel's perf, since Linux 5.13).
_INTEL = {"performance": "/sys/devices/cpu_core/cpus", "efficient": "/sys/devices/cpu_atom/cpus"}


class Kinds(Struct, frozen=True):
    """CPUs by the kind of their core; the fastest first, where `ordered`."""

    cpus: dict[str, CpuSet]
    read_from: str
    raw: str
    ordered: bool = True


def kinds_of_cores(host: Host, cpus: CpuSet) -> Kinds:
    """The kinds among these CPUs: none where nothing tells of different ones."""
    intel = {kind: parse_cpu_list(host.read(path) or "") & cpus for kind, path in _INTEL.items()}
    if all(host.exists(path) for path in _INTEL.values()):
        intel["other"] = cpus - frozenset().union(*intel.values())
        return Kinds(_present(intel), "/sys/devices/cpu_*/cpus", texts_of(host, _INTEL.values()))
    files = {cpu: f"{CPUS}/cpu{cpu}/cpu_capacity" for cpu in sorted(cpus)}
    if files and host.exists(next(iter(files.values()))):
        texts = {cpu: (host.read(path) or "").strip() for cpu, path in files.items()}
        numbers = {cpu: int(text) for cpu, text in texts.items() if re.fullmatch("[0-9]{1,9}", text)}
        return Kinds(_by_capacity(numbers), f"{CPUS}/cpu*/cpu_capacity", texts_of(host, files.values()))
    cpuinfo = host.read("/proc/cpuinfo") or ""
    parts = {cpu: part for cpu, (_maker, part) in parts_of(cpuinfo).items() if cpu in cpus}
    by_part = {f"part {name}": frozenset(cpu for cpu, part in parts.items() if part == name) for name in parts.values()}
    return Kinds(by_part, "/proc/cpuinfo", lines_with(r"^(processor|CPU part)\b", cpuinfo), ordered=False)


def _by_capacity(capacities: dict[int, int]) -> dict[str, CpuSet]:
    """CPUs by what they can do (1024 is the most), those within a tenth of each other as one kind."""
    kinds: dict[str, CpuSet] = {}
    best = -1
    for cpu, capacity in sorted(capacities.items(), key=lambda entry: (-entry[1], entry[0])):
        if best < 0 or capacity < 0.9 * best:
            best = capacity
        name = f"capacity {best}"
        kinds[name] = kinds.get(name, frozenset()) | {cpu}
    return kinds


def _present(kinds: dict[str, CpuSet]) -> dict[str, CpuSet]:
    return {kind: cpus for kind, cpus in kinds.items() if cpus}


def read_hybrid(survey: Survey) -> Iterator[Fact]:
    topology = read_topology(survey.host)
    allowed = allowed_cpus(survey.host)[0] & topology.threads or topology.threads
    kinds = kinds_of_cores(survey.host, allowed)
    see = "lscpu --extended=CPU,CORE,MAXMHZ"
    if len(kinds.cpus) < 2:
        yield make_fact(
            "cpu.hybrid", None, _("one, as far as it can be seen"), read_from=kinds.read_from, see_yourself=see
        )
        return
    cores = {kind: len(topology.cores_of(cpus)) or len(cpus) for kind, cpus in kinds.cpus.items()}
    each = (
        _("{count} {kind} ({cpus})").format(count=cores[kind], kind=kind, cpus=as_cpu_list(cpus))
        for kind, cpus in kinds.cpus.items()
    )
    yield make_fact(
        "cpu.hybrid",
        [{"kind": kind, "cpus": as_cpu_list(cpus)} for kind, cpus in kinds.cpus.items()],
        ", ".join(each),
        "attention",
        read_from=kinds.read_from,
        raw=kinds.raw,
        see_yourself=see,
        meaning=_("Ranks on slow cores hold up those on fast ones wherever they wait for each other."),
        action=_only_the_fast(kinds, topology),
    )


def _only_the_fast(kinds: Kinds, topology: Topology) -> str:
    """The command that leaves the slow cores idle: mpirun fills cores from the lowest number on."""
    fast, *slow = kinds.cpus.values()
    if not kinds.ordered or max(fast) > min(min(cpus) for cpus in slow):
        return ""
    return f"mpirun -n {len(topology.cores_of(fast)) or len(fast)} --map-by core ./program"


PROBES = (Probe(("cpu.hybrid",), read_hybrid),)
