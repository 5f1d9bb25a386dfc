"""CPUs that can be used here: what the scheduler allows and what the control groups leave of it."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Iterator

from mpiwizard.core.detect.cgroups import cpu_quota, cpuset_cpus
from mpiwizard.core.detect.facts import Probe, Survey, ask, first_line, lines_with, make_fact, unknown_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.detect.topology import (
    CPUS,
    NODES,
    CpuSet,
    Topology,
    as_cpu_list,
    parse_cpu_list,
    parse_cpu_mask,
    read_topology,
)
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _, ngettext

_EXCERPT = 8  # files whose text a fact shows


def allowed_cpus(host: Host) -> tuple[CpuSet, str, str]:
    """The CPUs this process may run on (affinity and cpuset together), where that stands, and its text."""
    path = "/proc/self/status"
    status = host.read(path) or ""
    for name, parse in (("Cpus_allowed_list", parse_cpu_list), ("Cpus_allowed", parse_cpu_mask)):
        found = re.search(rf"^{name}:[ \t]*(\S+)", status, re.MULTILINE)
        if found and (cpus := parse(found[1])):
            return cpus, path, found[0]
    if found_in_group := cpuset_cpus(host):
        cpus, path = found_in_group
        return cpus, path, host.read(path) or ""
    return frozenset(), path, ""


def texts_of(host: Host, paths: Iterable[str]) -> str:
    """The beginning of what these files hold, as grep prints it: the raw text of a fact read from many."""
    return "\n".join(f"{path}:{(host.read(path) or '').strip()}" for path in list(paths)[:_EXCERPT])


def usable_cpus(affinity: int, quota: float | None) -> int:
    """CPUs that can be busy at the same time: the smaller of the two, a started one counted in full."""
    return max(1, affinity if quota is None else min(affinity, math.ceil(quota)))


def read_model(survey: Survey) -> Iterator[Fact]:
    pattern = r"^(?:(?i:model name|cpu model|cpu)|Processor)[ \t]*:[ \t]*(\S.*)$"
    see = "lscpu | grep 'Model name'"
    for read_from in ("/proc/cpuinfo", "lscpu"):
        # Arm's cpuinfo has numbers only; lscpu knows the names that belong to them.
        text = survey.host.read(read_from) if read_from[0] == "/" else ask(survey.host, read_from).output
        if found := re.search(pattern, text or "", re.MULTILINE):
            model = " ".join(found[1].split())
            yield make_fact("cpu.model", model, model, read_from=read_from, raw=found[0], see_yourself=see)
            return
    why = _("/proc/cpuinfo does not name it")
    yield unknown_fact("cpu.model", why, read_from="/proc/cpuinfo", see_yourself=see)


def read_architecture(survey: Survey) -> Iterator[Fact]:
    read_from = "/proc/sys/kernel/arch"
    name = first_line(survey.host.read(read_from))
    if not name:
        read_from = "uname -m"
        name = first_line(ask(survey.host, "uname", "-m").output)
    if not name:
        yield unknown_fact("cpu.architecture", _("uname gave no answer"), read_from=read_from, see_yourself="uname -m")
        return
    yield make_fact("cpu.architecture", name, name, read_from=read_from, raw=name, see_yourself="uname -m")


def read_counts(survey: Survey) -> Iterator[Fact]:
    """What there is in the box, and what of it is ours: threads, sockets, nodes, cores."""
    topology = read_topology(survey.host)
    yield _online(survey.host, topology)
    yield _sockets(survey.host, topology)
    yield _numa(survey.host, topology)
    allowed, read_from, raw = allowed_cpus(survey.host)
    if topology.threads and allowed & topology.threads:
        allowed &= topology.threads  # an affinity mask may name CPUs that were switched off
    allowed = allowed or topology.threads
    if not allowed:
        why = _("{path} does not tell").format(path=read_from)
        yield unknown_fact("cpu.affinity", why, read_from=read_from, see_yourself="nproc")
        yield unknown_fact("cpu.cores", why, read_from=read_from, see_yourself="lscpu")
        return
    less = len(allowed) < len(topology.threads)
    yield make_fact(
        "cpu.affinity",
        len(allowed),
        f"{len(allowed)} ({as_cpu_list(allowed)})" if less else str(len(allowed)),
        read_from=read_from if raw else f"{CPUS}/online",
        raw=raw or as_cpu_list(allowed),
        see_yourself="nproc; taskset -cp $$",
        meaning=_("The box has more, but not for this session: a cpuset or an affinity mask holds them back.")
        if less
        else "",
        claims=(58,),
    )
    yield _cores(survey.host, topology, allowed)


def _online(host: Host, topology: Topology) -> Fact:
    path, see = f"{CPUS}/online", "nproc --all; lscpu"
    count = len(topology.threads)
    if not count:
        return unknown_fact("cpu.online", _("the kernel does not tell"), read_from=path, see_yourself=see)
    raw = host.read(path)
    if not raw:
        path = "/proc/cpuinfo"
        raw = lines_with(r"^processor", host.read(path))
    return make_fact("cpu.online", count, str(count), read_from=path, raw=raw or str(count), see_yourself=see)


def _sockets(host: Host, topology: Topology) -> Fact:
    count = len(topology.sockets)
    see = f"grep . {CPUS}/cpu*/topology/physical_package_id"
    if not count:
        why = _("the kernel does not show which CPUs share a socket")
        return unknown_fact("cpu.sockets", why, read_from=f"{CPUS}/cpu*/topology", see_yourself=see)
    return make_fact(
        "cpu.sockets",
        count,
        str(count),
        read_from=re.sub("cpu[0-9]+", "cpu*", topology.socket_files[0]),
        raw=_group_texts(host, topology.socket_files, r"^(processor|physical id)\b"),
        see_yourself=see,
        meaning=_("Ranks on different sockets share memory too, but reach each other's more slowly.")
        if count > 1
        else "",
    )


def _numa(host: Host, topology: Topology) -> Fact:
    see = f"grep . {NODES}/node*/cpulist; grep MemTotal {NODES}/node*/meminfo"
    nodes = topology.nodes
    if not nodes:
        why = _("the kernel shows no nodes")
        return unknown_fact("cpu.numa", why, read_from=f"{NODES}/node*/cpulist", see_yourself=see)
    with_cpus = sum(bool(node.cpus) for node in nodes)
    only_memory = len(nodes) - with_cpus
    text = str(with_cpus)
    if only_memory:
        text = _("{count}, and {more} with memory alone").format(count=with_cpus, more=only_memory)
    paths = [
        path
        for node in nodes
        for path in (f"{NODES}/node{node.number}/cpulist", f"{NODES}/node{node.number}/cpumap")
        if host.exists(path)
    ]
    return make_fact(
        "cpu.numa",
        [{"node": node.number, "cpus": as_cpu_list(node.cpus), "memory": node.memory} for node in nodes],
        text,
        read_from=f"{NODES}/node*/cpulist" if paths else "/proc/meminfo",
        raw=texts_of(host, paths) if paths else lines_with("^MemTotal", host.read("/proc/meminfo")) or text,
        see_yourself=see,
        meaning=_("A rank is fastest with the memory of its own node, where Open MPI keeps it by binding it.")
        if len(nodes) > 1
        else "",
    )


def _cores(host: Host, topology: Topology, allowed: CpuSet) -> Fact:
    cores = topology.cores_of(allowed)
    see = "lscpu --extended"
    if sum(map(len, cores)) < len(allowed):
        why = _("the kernel does not show which threads share a core")
        return unknown_fact("cpu.cores", why, read_from=f"{CPUS}/cpu*/topology", see_yourself=see)
    meaning = ""
    if len(cores) < len(allowed):
        meaning = _("Threads share a core here. Open MPI gives each rank a core of its own, unless told otherwise.")
    elif re.search(r"^flags\s*:.*\bhypervisor\b", host.read("/proc/cpuinfo") or "", re.MULTILINE):
        meaning = _("As the virtual machine shows them: two of them may be threads of one real core.")
    return make_fact(
        "cpu.cores",
        len(cores),
        str(len(cores)),
        read_from=re.sub("cpu[0-9]+", "cpu*", topology.core_files[0]),
        raw=_group_texts(host, topology.core_files, r"^(processor|physical id|core id|CPU part)\b"),
        see_yourself=see,
        meaning=meaning,
        claims=(58,),
    )


def _group_texts(host: Host, files: tuple[str, ...], pattern: str) -> str:
    """The text groups of CPUs were read from: files of their own, or lines of cpuinfo."""
    return lines_with(pattern, host.read(files[0])) if files[0] == "/proc/cpuinfo" else texts_of(host, files)


def read_quota(survey: Survey) -> Iterator[Fact]:
    quota = cpu_quota(survey.host)
    see = "grep -s . /proc/self/cgroup /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu*/cpu.cfs_quota_us"
    if quota is None and not survey.host.exists("/proc/self/status"):
        yield unknown_fact("cpu.quota", _("/proc cannot be read"), read_from="/proc/self/cgroup", see_yourself=see)
        return
    if quota is None:
        yield make_fact(
            "cpu.quota",
            None,
            _("none"),
            read_from="/proc/self/cgroup, /proc/self/mountinfo",
            raw=survey.host.read("/proc/self/cgroup") or "",
            see_yourself=see,
        )
        return
    cpus, path = quota
    yield make_fact(
        "cpu.quota",
        cpus,
        _("{cpus:g} CPUs").format(cpus=round(cpus, 2)),
        read_from=path,
        raw=survey.host.read(path) or "",
        see_yourself=f"cat {shlex.quote(path)}",
        meaning=_("mpirun does not see a quota, and may start more ranks than can run at a time."),
        action=_("mpiwizard counts with the quota for build jobs and ranks."),
        claims=(19, 58),
    )


def read_usable(survey: Survey) -> Iterator[Fact]:
    affinity = survey.found.value("cpu.affinity")
    rests_on = ("cpu.affinity", "cpu.quota")
    if affinity is None:
        yield unknown_fact("cpu.usable", _("the CPUs allowed here are not known"), see_yourself="nproc")
        return
    usable = usable_cpus(affinity, survey.found.value("cpu.quota"))
    online = survey.found.value("cpu.online", affinity)
    wsl = survey.found.value("platform.layer") == "wsl2"
    count = ngettext("{count} of {online} thread", "{count} of {online} threads", online)
    yield make_fact(
        "cpu.usable",
        usable,
        str(usable) if usable == online else count.format(count=usable, online=online),
        "ok",
        read_from=_("concluded from the facts above"),
        see_yourself="nproc",
        meaning=_("WSL sees only the processors .wslconfig gives it, the PC may have more.")
        if wsl
        else _("As many ranks and compilers can be at work at the same time."),
        rests_on=rests_on,
        claims=(19, 57, 58),
    )


PROBES = (
    Probe(("cpu.model",), read_model),
    Probe(("cpu.architecture",), read_architecture),
    Probe(("cpu.online", "cpu.sockets", "cpu.numa", "cpu.affinity", "cpu.cores"), read_counts),
    Probe(("cpu.quota",), read_quota),
    Probe(("cpu.usable",), read_usable, ("cpu.affinity", "cpu.quota", "cpu.online", "platform.layer")),
)
