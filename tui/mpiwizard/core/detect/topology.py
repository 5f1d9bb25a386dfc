"""How the CPUs of a box lie together: threads in cores, cores in sockets, and the memory beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from mpiwizard.core.detect.facts import whole_number
from mpiwizard.core.host import Host

CPUS = "/sys/devices/system/cpu"
NODES = "/sys/devices/system/node"
LARGEST_CPU = 1 << 16  # a number above it is a damaged file, not a CPU
# The same sets as lists and as masks, by the names since Linux 5.3 and by those before (the kernel's cputopology.rst).
_CORE_FILES = ("core_cpus_list", "thread_siblings_list", "core_cpus", "thread_siblings")
_SOCKET_FILES = ("package_cpus_list", "core_siblings_list", "package_cpus", "core_siblings")
# Of Arm itself, those of the Raspberry Pi 1 to 5: ARM1176, Cortex-A7, A53, A72 and A76, all without hardware threads.
_ARM_WITHOUT_THREADS = frozenset({"0xb76", "0xc07", "0xd03", "0xd08", "0xd0b"})

_AROUND = " \t\n\0"  # some kernels end a list with a zero byte

CpuSet = frozenset[int]


class Node(Struct, frozen=True):
    """A NUMA node: memory, and the CPUs that are close to it, if any."""

    number: int
    cpus: CpuSet
    memory: int | None  # bytes


class Topology(Struct, frozen=True):
    """What the kernel tells of a box's CPUs that are online. A group that it does not tell of is empty."""

    threads: CpuSet = frozenset()
    cores: tuple[CpuSet, ...] = ()
    sockets: tuple[CpuSet, ...] = ()
    nodes: tuple[Node, ...] = ()
    core_files: tuple[str, ...] = ()  # where the cores were read
    socket_files: tuple[str, ...] = ()

    def cores_of(self, cpus: CpuSet) -> tuple[CpuSet, ...]:
        """The cores behind these CPUs, each with the threads that belong to them."""
        return tuple(core & cpus for core in self.cores if core & cpus)


def read_topology(host: Host) -> Topology:
    """The topology by /sys; where that shows none, by /proc/cpuinfo. Each group is read once, at its first CPU."""
    listed = frozenset(int(name[3:]) for name in host.list(CPUS) if re.fullmatch(r"cpu[0-9]{1,5}", name))
    threads = online_cpus(host, listed)
    shown = threads & listed
    cores, core_files = _read_groups(host, shown, _CORE_FILES)
    sockets, socket_files = _read_groups(host, shown, _SOCKET_FILES)
    if not cores and not sockets:
        cpuinfo = host.read("/proc/cpuinfo") or ""
        cores, sockets = groups_by_cpuinfo(cpuinfo, threads)
        core_files = socket_files = ("/proc/cpuinfo",)
    elif _threads_are_cores(host, cores):
        cores = tuple(frozenset({cpu}) for cpu in sorted(shown))
    return Topology(threads, cores, sockets, _read_nodes(host, threads, listed), core_files, socket_files)


def online_cpus(host: Host, listed: CpuSet) -> CpuSet:
    """The CPUs that are online; `listed` are those with a folder."""
    online = parse_cpu_list(host.read(f"{CPUS}/online") or "")
    if not online:
        # Before Linux 2.6.26 each CPU had a file of its own; the first often has none, and cannot be switched off.
        online = frozenset(cpu for cpu in listed if (host.read(f"{CPUS}/cpu{cpu}/online") or "1").strip() != "0")
    return online or frozenset(_processors(host.read("/proc/cpuinfo") or ""))


def parse_cpu_list(text: str) -> CpuSet:
    """The kernel's list format, such as `0-3,8`, as numbers; parts of another shape are left out."""
    cpus: set[int] = set()
    for part in text.strip(_AROUND).split(","):
        found = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part.strip())
        if found:
            first, last = int(found[1]), int(found[2] or found[1])
            cpus.update(range(first, min(last, LARGEST_CPU) + 1))
    return frozenset(cpus)


def parse_cpu_mask(text: str) -> CpuSet:
    """The kernel's mask format, such as `00000001,000000ff`: words of 32 bits, the highest first; else nothing."""
    words = text.strip(_AROUND).split(",")
    if len(words) > LARGEST_CPU // 32 or not all(re.fullmatch(r"[0-9a-fA-F]{1,8}", word) for word in words):
        return frozenset()
    mask = int("".join(word.zfill(8) for word in words), 16)
    return frozenset(cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1)


def as_cpu_list(cpus: Iterable[int]) -> str:
    """CPUs as the kernel lists them, such as `0-3,8`."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def _read_set(host: Host, path: str) -> CpuSet:
    """The CPUs a file names, as a list or as a mask."""
    text = host.read(path) or ""
    return parse_cpu_list(text) if path.endswith("list") else parse_cpu_mask(text)


def _read_groups(host: Host, cpus: CpuSet, names: tuple[str, ...]) -> tuple[tuple[CpuSet, ...], tuple[str, ...]]:
    """The groups these CPUs form, and the files that told."""
    groups: list[CpuSet] = []
    files: list[str] = []
    left = set(cpus)
    for cpu in sorted(cpus):
        if cpu not in left:
            continue
        for name in names:
            path = f"{CPUS}/cpu{cpu}/topology/{name}"
            if told := _read_set(host, path):
                group = frozenset(told & left | {cpu})
                groups.append(group)
                files.append(path)
                left -= group
                names = (name, *(other for other in names if other != name))  # a kernel has the same for all
                break
    return tuple(groups), tuple(files)


def _threads_are_cores(host: Host, cores: tuple[CpuSet, ...]) -> bool:
    """Whether what the kernel calls threads of a core are cores: two of AMD's Bulldozer family share a module.

    They have the numbers of different cores, which true threads have not.
    """
    pair = next((sorted(core) for core in cores if len(core) > 1), None)
    if pair is None or not re.search(r"^vendor_id\s*:\s*AuthenticAMD", host.read("/proc/cpuinfo") or "", re.MULTILINE):
        return False
    numbers = [whole_number(host.read(f"{CPUS}/cpu{cpu}/topology/core_id")) for cpu in pair[:2]]
    return None not in numbers and numbers[0] != numbers[1]


def _processors(cpuinfo: str) -> dict[int, dict[str, str]]:
    """The entries of /proc/cpuinfo by the number of the processor they stand below; s390 has one line for each."""
    processors: dict[int, dict[str, str]] = {}
    entries: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        if found := re.match(r"processor\s*(?::\s*|\s)([0-9]{1,5})\b", line):
            entries = processors.setdefault(int(found[1]), {})
        else:
            name, colon, value = line.partition(":")
            if colon:
                entries[name.strip()] = value.strip()
    return processors


def parts_of(cpuinfo: str) -> dict[int, tuple[str, str]]:
    """Who made each Arm processor and its model, both as hexadecimal numbers, of cpuinfo; empty for others."""
    return {
        cpu: (entries.get("CPU implementer", "").lower(), entries["CPU part"].lower())
        for cpu, entries in _processors(cpuinfo).items()
        if "CPU part" in entries
    }


def groups_by_cpuinfo(cpuinfo: str, cpus: CpuSet) -> tuple[tuple[CpuSet, ...], tuple[CpuSet, ...]]:
    """Cores and sockets of these CPUs by /proc/cpuinfo; both empty unless it tells of all of them."""
    cores: dict[tuple[str, str], set[int]] = {}
    sockets: dict[str, set[int]] = {}
    processors = _processors(cpuinfo)
    for cpu in cpus:
        entries = processors.get(cpu, {})
        socket, core = entries.get("physical id"), entries.get("core id")
        if socket is None or core is None:
            return _cores_without_threads(cpuinfo, cpus), ()
        cores.setdefault((socket, core), set()).add(cpu)
        sockets.setdefault(socket, set()).add(cpu)
    return tuple(map(frozenset, cores.values())), tuple(map(frozenset, sockets.values()))


def _cores_without_threads(cpuinfo: str, cpus: CpuSet) -> tuple[CpuSet, ...]:
    parts = parts_of(cpuinfo)
    if all(parts.get(cpu, ("", ""))[0] == "0x41" and parts[cpu][1] in _ARM_WITHOUT_THREADS for cpu in cpus):
        return tuple(frozenset({cpu}) for cpu in sorted(cpus))
    return ()


def _read_nodes(host: Host, threads: CpuSet, listed: CpuSet) -> tuple[Node, ...]:
    """The NUMA nodes. A kernel without them has all memory in one; a box whose /sys is not there tells nothing.

    A node whose CPUs are in another too is a mistake of the firmware, and left out. So is the memory of a
    graphics card: Nvidia's driver says which nodes these are.
    """
    numbers = sorted(int(name[4:]) for name in host.list(NODES) if re.fullmatch(r"node[0-9]{1,5}", name))
    if not numbers:
        return (Node(0, threads, _total(host.read("/proc/meminfo"))),) if listed else ()
    cards = _nodes_of_cards(host) if len(numbers) > 1 else frozenset()
    nodes: list[Node] = []
    taken: set[int] = set()
    for number in numbers:
        folder = f"{NODES}/node{number}"
        path = next((f"{folder}/{name}" for name in ("cpulist", "cpumap") if host.exists(f"{folder}/{name}")), "")
        if not path or number in cards:
            continue
        cpus = _read_set(host, path) & threads
        if not cpus & taken:
            nodes.append(Node(number, cpus, _total(host.read(f"{folder}/meminfo"))))
            taken |= cpus
    return tuple(nodes)


def _nodes_of_cards(host: Host) -> CpuSet:
    folder = "/proc/driver/nvidia/gpus"
    texts = (host.read(f"{folder}/{card}/numa_status") or "" for card in host.list(folder))
    return frozenset(int(number) for text in texts for number in re.findall(r"^Node:\s*([0-9]{1,5})\b", text, re.M))


def _total(text: str | None) -> int | None:
    found = re.search(r"\bMemTotal:\s*([0-9]{1,15}) kB", text or "")
    return int(found[1]) * 1024 if found else None
