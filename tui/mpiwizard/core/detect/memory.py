"""Memory with the limit of the control group, and the shared memory ranks talk through."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpiwizard.core.detect.cgroups import memory_in_use, memory_limit
from mpiwizard.core.detect.disk import free_space
from mpiwizard.core.detect.facts import Probe, Survey, lines_with, make_fact, unknown_fact, whole_number
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.format import memory
from mpiwizard.core.i18n import _

PER_JOB = 1 << 30  # bytes of memory set aside for one compiler; our own safe rule
SEGMENT = 16 << 20  # bytes of shared memory a rank may take; 4 MiB where Open MPI was built without XPMEM


def parse_meminfo(text: str) -> dict[str, int]:
    """/proc/meminfo in bytes."""
    entries = re.findall(r"^(\w+):\s*([0-9]{1,18}) kB", text, re.MULTILINE)
    return {name: int(kibibytes) * 1024 for name, kibibytes in entries}


def read_memory(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    entries = parse_meminfo(host.read("/proc/meminfo") or "")
    total = entries.get("MemTotal")
    available = entries.get("MemAvailable", entries.get("MemFree"))
    if total is None or available is None:
        for fact_id in ("memory.total", "memory.limit", "memory.available"):
            yield unknown_fact(fact_id, _("/proc/meminfo does not tell"), see_yourself="free -h")
        return
    wsl = survey.found.value("platform.layer") == "wsl2"
    yield make_fact(
        "memory.total",
        total,
        memory(total),
        read_from="/proc/meminfo",
        see_yourself="free -h",
        meaning=_("This is WSL's share, half of the PC's memory unless .wslconfig says otherwise.") if wsl else "",
    )
    limit = memory_limit(host)
    if limit is None or limit[0] >= total:
        see = "cat /proc/self/cgroup; cat /sys/fs/cgroup/memory.max"
        yield make_fact("memory.limit", None, _("none"), read_from="/proc/self/cgroup", see_yourself=see)
    else:
        most, path = limit
        available = min(available, max(most - memory_in_use(host, path), 0))
        yield make_fact(
            "memory.limit",
            most,
            memory(most),
            read_from=path,
            see_yourself=f"cat {path}",
            meaning=_("The kernel ends a program of this group that wants more."),
        )
    yield _available_fact(survey, available, total if limit is None else min(total, limit[0]))


def _available_fact(survey: Survey, available: int, total: int) -> Fact:
    cpus = survey.found.value("cpu.usable", 1)
    fewer = available < cpus * PER_JOB
    return make_fact(
        "memory.available",
        available,
        _("{available} of {total}").format(available=memory(available), total=memory(total)),
        "attention" if available < PER_JOB else "ok",
        read_from="/proc/meminfo" if survey.found.value("memory.limit") is None else "/proc/meminfo, cgroup",
        see_yourself="free -h",
        meaning=_("Too little for a compiler on each CPU, which may want {amount} in all.").format(
            amount=memory(cpus * PER_JOB)
        )
        if fewer
        else "",
        action=_("mpiwizard compiles fewer files at a time.") if fewer and cpus > 1 else "",
        rests_on=("memory.limit", "cpu.usable"),
        claims=(19,),
    )


def read_shm(survey: Survey) -> Iterator[Fact]:
    see = "df -h /dev/shm"
    space = free_space(survey.host, "/dev/shm") if survey.host.exists("/dev/shm") else None
    if space is None:
        why = _("df gave no answer") if survey.host.exists("/dev/shm") else _("there is no /dev/shm")
        yield unknown_fact("memory.shm", why, see_yourself=see)
        return
    ranks = survey.found.value("cpu.usable", 1)
    need = ranks * SEGMENT
    tight = space.free < need
    text = _("{free} free of {size}").format(free=memory(space.free), size=memory(space.size))
    container = survey.found.value("platform.layer") not in ("none", "wsl1", "wsl2")
    action = _("Start the container with --shm-size=1g.") if container else _("Delete what is left in /dev/shm.")
    yield make_fact(
        "memory.shm",
        {"size": space.size, "free": space.free},
        text,
        "attention" if tight else "ok",
        read_from="df -P -k /dev/shm",
        see_yourself=see,
        meaning=_("Each rank takes 4 to 16 MiB of it, that is up to {need} here.").format(need=memory(need))
        if tight
        else _("Ranks of this box talk through it."),
        action=action if tight else "",
        claims=(55,),
    )


def read_memlock(survey: Survey) -> Iterator[Fact]:
    """How much memory may be locked: RDMA registers its buffers, that is, it locks them."""
    path, see = "/proc/self/limits", "ulimit -l"
    text = survey.host.read(path)
    found = re.search(r"^Max locked memory\s+(\S+)", text or "", re.MULTILINE)
    if found is None:
        yield unknown_fact("memory.memlock", _("/proc/self/limits does not tell"), read_from=path, see_yourself=see)
        return
    limit = whole_number(found[1])
    matters = limit is not None and bool(survey.found.value("network.fabric"))
    yield make_fact(
        "memory.memlock",
        limit,
        _("unlimited") if limit is None else memory(limit),
        "attention" if matters else "info" if limit is not None else "ok",
        read_from=path,
        raw=lines_with("^Max locked memory|^Limit", text),
        see_yourself=see,
        meaning=_("The fabric needs its buffers locked, and fails when it may lock too little.")
        if matters
        else _("Only a fast fabric locks memory; shared memory and TCP do not."),
        action=_("Set memlock to unlimited in /etc/security/limits.conf; containers: --ulimit memlock=-1.")
        if matters
        else "",
    )


PROBES = (
    Probe(("memory.total", "memory.limit", "memory.available"), read_memory, ("platform.layer", "cpu.usable")),
    Probe(("memory.shm",), read_shm, ("platform.layer", "cpu.usable")),
    Probe(("memory.memlock",), read_memlock, ("network.fabric",)),
)
