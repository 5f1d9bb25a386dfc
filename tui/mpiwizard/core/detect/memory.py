"""Memory with the limit of the control group, swap, and the shared memory ranks talk through."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from mpiwizard.core.detect.cgroups import group_folders, memory_in_use, memory_limit
from mpiwizard.core.detect.disk import parse_df
from mpiwizard.core.detect.facts import (
    Probe,
    Survey,
    ask,
    first_line,
    lines_with,
    make_fact,
    unknown_fact,
    whole_number,
)
from mpiwizard.core.detect.limits import LIMITS, parse_limit
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.format import memory
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _, ngettext

PER_JOB = 1 << 30  # bytes of memory set aside for one compiler; our own safe rule
SEGMENT = 4 << 20  # bytes of shared memory for each rank: the default of vader (4.x) and sm (5.x) ...
LARGE_SEGMENT = 16 << 20  # ... and that of builds with XPMEM, such as packaged ones
GIB = 1 << 30
UNLIMITED = 1 << 62  # from here on version 1 of the control groups means no limit: it shows the largest whole page
_MEMINFO = "/proc/meminfo"
_TRANSPARENT = "/sys/kernel/mm/transparent_hugepage/enabled"
_FOR_RUN_OPTION = ("docker", "podman", "container")  # layers whose start takes --shm-size


def parse_meminfo(text: str) -> dict[str, int]:
    """/proc/meminfo in bytes; its counts of huge pages, which have no unit, as they are."""
    entries = re.findall(r"^(\w+):\s*([0-9]{1,18})( kB)?\s*$", text, re.MULTILINE)
    return {name: int(number) * (1024 if unit else 1) for name, number, unit in entries}


def parse_transparent(text: str) -> str:
    """The choice in brackets, such as `madvise` of `always [madvise] never`; empty when there is none."""
    found = re.search(r"\[(\w+)\]", text)
    return found[1] if found else ""


def swap_limit(host: Host) -> tuple[int, str] | None:
    """The tightest swap limit of our control groups in bytes and the file that sets it; None without one."""
    found: list[tuple[int, str]] = []
    for folder in group_folders(host, "memory"):
        limit = whole_number(host.read(f"{folder}/memory.swap.max"))  # version 2; "max" is no limit
        if limit is not None:
            found.append((max(limit, 0), f"{folder}/memory.swap.max"))
        both = whole_number(host.read(f"{folder}/memory.memsw.limit_in_bytes"))  # version 1: memory and swap
        alone = whole_number(host.read(f"{folder}/memory.limit_in_bytes"))
        if both is not None and alone is not None and both < UNLIMITED:
            found.append((max(both - alone, 0), f"{folder}/memory.memsw.limit_in_bytes"))
    return min(found, default=None)


def read_memory(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    text = host.read(_MEMINFO) or ""
    entries = parse_meminfo(text)
    total = entries.get("MemTotal")
    available = entries.get("MemAvailable", entries.get("MemFree"))
    if total is None or available is None:
        for fact_id in ("memory.total", "memory.limit", "memory.available"):
            why = _("/proc/meminfo does not tell")
            yield unknown_fact(fact_id, why, read_from=_MEMINFO, see_yourself="free -h")
        return
    wsl = survey.found.value("platform.layer") == "wsl2"
    yield make_fact(
        "memory.total",
        total,
        memory(total),
        read_from=_MEMINFO,
        raw=lines_with("^MemTotal:", text),
        see_yourself="free -h",
        meaning=_("This is WSL's share, half of the PC's memory unless .wslconfig says otherwise.") if wsl else "",
    )
    limit = memory_limit(host)
    if limit is not None and limit[0] >= total:
        limit = None
    yield _limit_fact(host, limit)
    shown, read_from = lines_with("^Mem(Available|Free):", text), _MEMINFO
    if limit is not None:
        most, path = limit
        used = memory_in_use(host, path)
        available = min(available, max(most - used, 0))
        read_from = f"{_MEMINFO}, {path.rpartition('/')[0]}"
        shown += "\n" + _("limit of the group {limit}, in use {used}").format(limit=most, used=used)
    yield _available_fact(survey, available, min(total, limit[0]) if limit else total, read_from, shown)


def _limit_fact(host: Host, limit: tuple[int, str] | None) -> Fact:
    if limit is None:
        see = "grep -s . /proc/self/cgroup /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes"
        return make_fact("memory.limit", None, _("none"), read_from="/proc/self/cgroup", see_yourself=see)
    most, path = limit
    return make_fact(
        "memory.limit",
        most,
        memory(most),
        read_from=path,
        raw=host.read(path) or "",
        see_yourself=f"cat {shlex.quote(path)}",
        meaning=_("The kernel ends a program of this group that wants more."),
    )


def _available_fact(survey: Survey, available: int, total: int, read_from: str, raw: str) -> Fact:
    cpus = survey.found.value("cpu.usable", 1)
    fewer = available < cpus * PER_JOB
    return make_fact(
        "memory.available",
        available,
        _("{available} of {total}").format(available=memory(available), total=memory(total)),
        "attention" if available < PER_JOB else "ok",
        read_from=read_from,
        raw=raw,
        see_yourself="free -h",
        meaning=_("Too little for a compiler on each CPU, which may want {amount} in all.").format(
            amount=memory(cpus * PER_JOB)
        )
        if fewer
        else "",
        action=_("mpiwizard compiles fewer files at a time.") if fewer and cpus > 1 else "",
        rests_on=("cpu.usable", "memory.limit"),
        claims=(19,),
    )


def read_swap(survey: Survey) -> Iterator[Fact]:
    text = survey.host.read(_MEMINFO) or ""
    entries = parse_meminfo(text)
    total = entries.get("SwapTotal")
    if total is None:
        why = _("/proc/meminfo does not tell")
        yield unknown_fact("memory.swap", why, read_from=_MEMINFO, see_yourself="free -h")
        return
    free = min(entries.get("SwapFree", total), total)
    limit = swap_limit(survey.host)
    ours = total if limit is None else min(total, limit[0])
    if not total:
        shown = _("none")
    elif not ours:
        shown = _("none for this control group, {total} on the box").format(total=memory(total))
    elif free < total:
        shown = _("{total}, {used} in use").format(total=memory(ours), used=memory(total - free))
    else:
        shown = _("{total}, none in use").format(total=memory(ours))
    meaning = _("A rank that waits for a page from the disk holds up all others: what is measured then does not count.")
    if survey.found.value("platform.layer") == "wsl2":
        meaning += " " + _("WSL keeps it in a file on the Windows side; swap= in .wslconfig sets its size.")
    read_from, raw = [_MEMINFO], [lines_with("^Swap(Total|Free):", text)]
    if limit:
        read_from.append(limit[1])
        raw.append(f"{limit[1]}: {limit[0]}")
    yield make_fact(
        "memory.swap",
        {"total": total, "free": free, "limit": ours if limit else None},
        shown,
        read_from=", ".join(read_from),
        raw="\n".join(raw),
        see_yourself="free -h; swapon --show",
        meaning=meaning if ours else "",
    )


def read_shm(survey: Survey) -> Iterator[Fact]:
    """Room for one segment of each rank; the kernel takes pages as they are used, Open MPI checks the room before."""
    see = "df -h /dev/shm"
    if not survey.host.exists("/dev/shm"):
        yield unknown_fact("memory.shm", _("there is no /dev/shm"), read_from="/dev/shm", see_yourself=see)
        return
    answer = ask(survey.host, "df", "-P", "-k", "/dev/shm").output
    space = parse_df(answer)
    if space is None:
        why = _("df gave no answer")
        yield unknown_fact("memory.shm", why, read_from="df -P -k /dev/shm", raw=answer, see_yourself=see)
        return
    ranks = survey.found.value("cpu.usable", 1)
    surely, at_most = space.free // LARGE_SEGMENT, space.free // SEGMENT
    tight = surely < ranks
    text = _("{free} of {size} free").format(free=memory(space.free), size=memory(space.size))
    if tight:
        room = ngettext("{least} to {most} rank fits", "{least} to {most} ranks fit", at_most)
    else:
        room = ngettext("{least} rank fits", "{least} ranks fit", surely)
    meaning = _("Ranks of this box talk through it, each with a segment of 4 MiB, or 16 MiB in builds with XPMEM.")
    if tight:
        meaning += " " + _("With {ranks} ranks a job aborts or becomes slow where the room ends.").format(ranks=ranks)
    yield make_fact(
        "memory.shm",
        {"size": space.size, "free": space.free},
        f"{text}, {room.format(least=surely, most=at_most)}",
        "attention" if tight else "ok",
        read_from="df -P -k /dev/shm",
        raw=answer,
        see_yourself=see,
        meaning=meaning,
        action=_more_shm(survey.found.value("platform.layer"), ranks, space.size, at_most) if tight else "",
        claims=(55,),
    )


def _more_shm(layer: str | None, ranks: int, size: int, at_most: int) -> str:
    """How to get room for all ranks, and the parameters that make do with less where that suffices."""
    wanted = max(-(-ranks * LARGE_SEGMENT // GIB), 1)
    if layer in _FOR_RUN_OPTION:
        action = _("Start the container with --shm-size={size}g.").format(size=wanted)
    elif layer == "kubernetes":
        action = _("Give the pod an emptyDir volume with medium: Memory, mounted at /dev/shm.")
    elif size >= ranks * LARGE_SEGMENT:
        action = _("Delete what ended jobs left there; ls -l /dev/shm shows it.")
    else:
        action = f"sudo mount -o remount,size={wanted}g /dev/shm"
    if at_most >= ranks:
        four, five = (f"mpirun --mca btl_{name}_segment_size {SEGMENT}" for name in ("vader", "sm"))
        action += " " + _("Or make do with small segments: 4.x: {four}; 5.x: {five}").format(four=four, five=five)
    return action


def read_hugepages(survey: Survey) -> Iterator[Fact]:
    see = f"grep -i huge {_MEMINFO}; cat {_TRANSPARENT}"
    text, choice = survey.host.read(_MEMINFO) or "", first_line(survey.host.read(_TRANSPARENT))
    entries = parse_meminfo(text)
    shown = {_MEMINFO: lines_with("^(HugePages_(Total|Free)|Hugepagesize):", text), _TRANSPARENT: choice}
    shown = {path: lines for path, lines in shown.items() if lines}
    if not shown:
        why = _("neither /proc/meminfo nor /sys tells")
        yield unknown_fact("memory.hugepages", why, read_from=f"{_MEMINFO}, {_TRANSPARENT}", see_yourself=see)
        return
    total, free, size = (entries.get(name, 0) for name in ("HugePages_Total", "HugePages_Free", "Hugepagesize"))
    transparent = parse_transparent(choice)
    reserved = _("{count} × {size} set aside").format(count=total, size=memory(size)) if total else _("none set aside")
    meaning = _("Open MPI needs none. What they gain is small: measure before you change it.")
    if free:
        lost = _("{amount} is kept for them and is not there for anything else.").format(amount=memory(free * size))
        meaning = f"{lost} {meaning}"
    yield make_fact(
        "memory.hugepages",
        {"total": total, "free": free, "size": size, "transparent": transparent or None},
        _("{reserved}; transparent: {choice}").format(reserved=reserved, choice=transparent)
        if transparent
        else reserved,
        read_from=", ".join(shown),
        raw="\n".join(shown.values()),
        see_yourself=see,
        meaning=meaning,
    )


def read_memlock(survey: Survey) -> Iterator[Fact]:
    """How much memory may be locked: RDMA registers its buffers, that is, it locks them."""
    see = "ulimit -l"
    text = survey.host.read(LIMITS) or ""
    limits = parse_limit(text, "Max locked memory")
    if limits is None:
        why = _("/proc/self/limits does not tell")
        yield unknown_fact("memory.memlock", why, read_from=LIMITS, see_yourself=see)
        return
    limit = limits[0]
    limited = limit is not None
    fabric = survey.found.value("network.fabric", [])
    # RDMA over Ethernet, or by software: many ordinary machines of clouds have it, and their jobs do not use it.
    matters = limited and any(not device.endswith(("RoCE", "iWARP")) for device in fabric)
    yield make_fact(
        "memory.memlock",
        limit,
        _("unlimited") if limit is None else memory(limit),
        "attention" if matters else "info" if limited else "ok",
        read_from=LIMITS,
        raw=lines_with("^(Limit|Max locked memory) ", text),
        see_yourself=see,
        meaning=_("The fabric of this box needs its buffers locked, and fails when it may lock too little.")
        if matters
        else _("Only a fast fabric locks memory; shared memory and TCP do not."),
        action=_("Set memlock to unlimited in /etc/security/limits.conf; containers: --ulimit memlock=-1.")
        if matters
        else "",
    )


def read_windows(survey: Survey) -> Iterator[Fact]:
    """WSL2 only. The file is not looked for: /mnt/c answers slowly, and where the home folder is, Windows knows."""
    if survey.found.value("platform.layer") != "wsl2":
        return
    total, cpus = survey.found.value("memory.total"), survey.found.value("cpu.online")
    parts = [memory(total)] if total else []
    parts += [ngettext("{count} processor", "{count} processors", cpus).format(count=cpus)] if cpus else []
    yield make_fact(
        "memory.windows",
        "%UserProfile%\\.wslconfig",
        _("{limits}, as WSL was given").format(limits=", ".join(parts)) if parts else _("as WSL was given"),
        see_yourself="cmd.exe /c 'type %UserProfile%\\.wslconfig'",
        meaning=_(
            "These are settings of WSL, not of the PC: half of its memory and all of its processors, unless the file "
            ".wslconfig in your Windows home folder says otherwise."
        ),
        action=_(
            "For more, write memory=, processors= and swap= below [wsl2] in %UserProfile%\\.wslconfig, then run "
            "wsl --shutdown in Windows; it ends all that runs in WSL."
        ),
        rests_on=("platform.layer", "cpu.online", "memory.total"),
    )


PROBES = (
    Probe(("memory.total", "memory.limit", "memory.available"), read_memory, ("platform.layer", "cpu.usable")),
    Probe(("memory.swap",), read_swap, ("platform.layer",)),
    Probe(("memory.shm",), read_shm, ("platform.layer", "cpu.usable")),
    Probe(("memory.hugepages",), read_hugepages),
    Probe(("memory.memlock",), read_memlock, ("network.fabric",)),
    Probe(("memory.windows",), read_windows, ("platform.layer", "cpu.online", "memory.total")),
)
