"""Sockets, NUMA nodes, cores and threads as hwloc has them, on the machines its authors recorded.

The captures and the reference outputs come with Debian's source package of hwloc; nothing of them is kept.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, cast
from xml.etree import ElementTree

import pytest
from msgspec import Struct
from tests.real.debian import fetch_source

from mpiwizard.core.detect.cgroups import cpuset_for_hwloc
from mpiwizard.core.detect.topology import CpuSet, parse_cpu_mask, read_topology
from mpiwizard.core.recordings import RecordedHost

pytestmark = pytest.mark.real

# Where our reader and the reference output differ, and why.
EXCEPTIONS = {
    "16amd64-4n4c-cgroup-distance-merge": "lstopo was asked to leave out cores that add no structure",
    "16em64t-4s2ca2c-cpusetreorder-merge": "lstopo was asked to leave out cores that add no structure",
    "4em64t-2c2t-ignore-reorder": "lstopo was asked to leave out cores and packages",
    "40intel64-4n10c+pci-conflicts": "a PCI device claims CPUs across sockets, and hwloc gives up the fourth socket",
    "fakeheterocpunuma": "made up, with nodes that share CPUs, which hwloc drops too unless a debugging switch is set",
    "nvidiagpunumanodes.kept": "hwloc was asked to keep the memory of graphics cards, which we leave out as it does",
}

READ = re.compile(  # the files of a capture that our reader may ask for: unpacking all takes minutes
    r"^[\w.+-]+/((proc|cgroup|dev|sys/fs/cgroup)/(?!.*\.\.)"
    r"|sys/devices/system/(cpu/(online$|cpu\d+/(online$|topology/))|node/node\d+/\w+$))"
)


class Seen(Struct, frozen=True):
    """What there is of a machine; NUMA nodes by their number."""

    threads: CpuSet
    cores: frozenset[CpuSet]
    sockets: frozenset[CpuSet]
    nodes: dict[int, CpuSet]


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the reference outputs, the captures beside them."""
    unpacked = fetch_source("hwloc", tmp_path_factory.mktemp("apt") / "hwloc")
    return next(unpacked.glob("**/tests/hwloc/linux"))


def our_view(host: RecordedHost, everything: bool) -> Seen:
    """What our reader makes of a capture, without what its cpuset forbids, as hwloc leaves it out."""
    topology = read_topology(host)
    cpus, nodes = (None if everything else cpuset_for_hwloc(host, resource) for resource in ("cpus", "mems"))
    threads = topology.threads & cpus[0] if cpus else topology.threads
    return Seen(
        threads,
        frozenset(topology.cores_of(threads)),
        frozenset(socket & threads for socket in topology.sockets if socket & threads),
        {node.number: node.cpus & threads for node in topology.nodes if not nodes or node.number in nodes[0]},
    )


def agree(ours: Seen, theirs: Seen) -> bool:
    """Whether both are the same. For memory without CPUs hwloc finds out which are closest: we do not."""
    if ours.nodes.keys() != theirs.nodes.keys():
        return False
    nodes = {number: cpus if ours.nodes[number] else ours.nodes[number] for number, cpus in theirs.nodes.items()}
    return ours == Seen(theirs.threads, theirs.cores, theirs.sockets, nodes)


def reference(text: str) -> Seen:
    return _of_xml(text) if text.startswith("<?xml") else _of_text(text)


def _of_xml(text: str) -> Seen:
    found: dict[str, list[tuple[int, CpuSet]]] = {}
    for item in ElementTree.fromstring(text).iter("object"):
        kind, number = item.get("type", ""), int(item.get("os_index", "-1"))
        found.setdefault(kind, []).append((number, parse_cpu_mask(item.get("cpuset", "").replace("0x", ""))))
    return _seen(found)


def _of_text(text: str) -> Seen:
    """lstopo's tree: a line for each object, deeper in it what it consists of; a memory node is beside its CPUs."""
    lines = []
    for line in text.partition("\ndepth 0:")[0].splitlines():
        if item := re.match(r"( *)(\w+)(?:\(\w+\))? (?:L#|P#|\()", line):
            number = re.search(r"P#(\d+)", line)
            lines.append((len(item[1]), item[2], int(number[1]) if number else -1))
    found: dict[str, list[tuple[int, CpuSet]]] = {}
    for position, (depth, kind, number) in enumerate(lines):
        start = position
        if kind == "NUMANode":
            start = max(before for before in range(position) if lines[before][0] < depth)
            while lines[start][1] == "MemCache":
                start = max(before for before in range(start) if lines[before][0] < lines[start][0])
        end = start + 1
        while end < len(lines) and lines[end][0] > lines[start][0]:
            end += 1
        inside = lines[start:end]
        found.setdefault(kind, []).append((number, frozenset(pu for _depth, what, pu in inside if what == "PU")))
    return _seen(found)


def _seen(found: dict[str, list[tuple[int, CpuSet]]]) -> Seen:
    def sets(kind: str) -> frozenset[CpuSet]:
        return frozenset(cpus for _number, cpus in found.get(kind, []) if cpus)

    threads = frozenset(number for number, _cpus in found.get("PU", []))
    return Seen(threads, sets("Core"), sets("Package"), dict(found.get("NUMANode", [])))


def capture_of(output: Path, folder: Path) -> RecordedHost:
    """The machine a reference output was made of."""
    named = output.with_suffix(".source")
    archive = output.with_name(named.read_text().strip()) if named.exists() else output.with_suffix(".tar.bz2")
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and READ.search(member.name):
                target = folder / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    shutil.copyfileobj(cast(IO[bytes], tar.extractfile(member)), file)
    (top,) = folder.iterdir()
    return RecordedHost(top)


def test_all_captures_agree_but_those_with_a_reason(captures: Path, tmp_path: Path) -> None:
    verdicts = {}
    for output in sorted(captures.glob("*.output")):
        options = output.with_suffix(".options")
        everything = options.exists() and "--disallowed" in options.read_text()
        with TemporaryDirectory(dir=tmp_path) as folder:
            ours = our_view(capture_of(output, Path(folder)), everything)
        verdicts[output.stem] = agree(ours, reference(output.read_text()))
    assert len(verdicts) > 50
    assert {name for name, agreed in verdicts.items() if not agreed} == set(EXCEPTIONS)
