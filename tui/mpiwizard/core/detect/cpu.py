"""CPUs that can be used here: what the scheduler allows and what the control groups leave of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from mpiwizard.core.detect.cgroups import cpu_quota
from mpiwizard.core.detect.facts import Probe, Survey, ask, first_line, make_fact, unknown_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _, ngettext

LARGEST_CPU = 1 << 16  # a number above it is a damaged file, not a CPU


def parse_cpu_list(text: str) -> frozenset[int]:
    """The kernel's list format, such as `0-3,8`, as numbers; parts of another shape are left out."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        found = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part.strip())
        if found:
            first, last = int(found[1]), int(found[2] or found[1])
            cpus.update(range(first, min(last, LARGEST_CPU) + 1))
    return frozenset(cpus)


def allowed_cpus(host: Host) -> frozenset[int]:
    """The CPUs this process may run on (affinity and cpuset together)."""
    found = re.search(r"^Cpus_allowed_list:\s*(\S+)", host.read("/proc/self/status") or "", re.MULTILINE)
    return parse_cpu_list(found[1]) if found else frozenset()


def count_cores(host: Host, cpus: frozenset[int]) -> int | None:
    """Cores behind these CPUs; None where the kernel does not show which CPUs share one."""
    cores: set[frozenset[int]] = set()
    for cpu in cpus:
        folder = f"/sys/devices/system/cpu/cpu{cpu}/topology"
        siblings = host.read(f"{folder}/core_cpus_list") or host.read(f"{folder}/thread_siblings_list")
        if not siblings:
            return _cores_by_cpuinfo(host, cpus)
        cores.add(parse_cpu_list(siblings))
    return len(cores) or None


def _cores_by_cpuinfo(host: Host, cpus: frozenset[int]) -> int | None:
    cores: set[tuple[str, str]] = set()
    for block in (host.read("/proc/cpuinfo") or "").split("\n\n"):
        entries = dict(re.findall(r"^(processor|physical id|core id)\s*:\s*(\d+)\s*$", block, re.MULTILINE))
        if len(entries) == 3 and int(entries["processor"]) in cpus:
            cores.add((entries["physical id"], entries["core id"]))
    return len(cores) or None


def usable_cpus(affinity: int, quota: float | None) -> int:
    """CPUs that can be busy at the same time: the smaller of the two, a started one counted in full."""
    return max(1, affinity if quota is None else min(affinity, math.ceil(quota)))


def read_model(survey: Survey) -> Iterator[Fact]:
    pattern = re.compile(r"^(?:model name|cpu model|cpu)\s*:\s*(.+)$", re.MULTILINE | re.IGNORECASE)
    # Arm's cpuinfo has numbers only; lscpu knows the names that belong to them.
    found = pattern.search(survey.host.read("/proc/cpuinfo") or "") or pattern.search(ask(survey.host, "lscpu").output)
    see = "lscpu | grep 'Model name'"
    if found is None:
        yield unknown_fact(
            "cpu.model", _("/proc/cpuinfo does not name it"), read_from="/proc/cpuinfo", see_yourself=see
        )
        return
    model = " ".join(found[1].split())
    yield make_fact("cpu.model", model, model, read_from="/proc/cpuinfo", see_yourself=see)


def read_architecture(survey: Survey) -> Iterator[Fact]:
    name = first_line(survey.host.read("/proc/sys/kernel/arch")) or first_line(ask(survey.host, "uname", "-m").output)
    if not name:
        yield unknown_fact("cpu.architecture", _("uname gave no answer"), see_yourself="uname -m")
        return
    yield make_fact("cpu.architecture", name, name, read_from="uname -m", see_yourself="uname -m")


def read_counts(survey: Survey) -> Iterator[Fact]:
    """Threads of the box, those allowed, and the cores behind them."""
    host = survey.host
    path = "/sys/devices/system/cpu/online"
    processors = len(re.findall(r"^processor\s*:", host.read("/proc/cpuinfo") or "", re.MULTILINE))
    online = len(parse_cpu_list(host.read(path) or "")) or processors
    if not online:
        yield unknown_fact("cpu.online", _("the kernel does not tell"), read_from=path, see_yourself="nproc --all")
    else:
        yield make_fact("cpu.online", online, str(online), read_from=path, see_yourself="nproc --all")
    allowed = allowed_cpus(host) or frozenset(range(online))
    if not allowed:
        why = _("/proc/self/status does not tell")
        yield unknown_fact("cpu.affinity", why, see_yourself="nproc")
        yield unknown_fact("cpu.cores", why, see_yourself="lscpu")
        return
    less = bool(online) and len(allowed) < online
    yield make_fact(
        "cpu.affinity",
        len(allowed),
        str(len(allowed)),
        read_from="/proc/self/status, Cpus_allowed_list",
        see_yourself="nproc; taskset -cp $$",
        meaning=_("The box has more, but not for this session: a cpuset or an affinity mask holds them back.")
        if less
        else "",
        claims=(58,),
    )
    cores = count_cores(host, allowed)
    if cores is None:
        why = _("the kernel does not show which threads share a core")
        yield unknown_fact("cpu.cores", why, see_yourself="lscpu --extended")
        return
    yield make_fact(
        "cpu.cores",
        cores,
        str(cores),
        read_from="/sys/devices/system/cpu/cpu*/topology",
        see_yourself="lscpu --extended",
        meaning=_("Two threads share a core here. Open MPI gives each rank a core of its own, unless told otherwise.")
        if cores < len(allowed)
        else "",
        claims=(58,),
    )


def read_quota(survey: Survey) -> Iterator[Fact]:
    quota = cpu_quota(survey.host)
    see = "cat /proc/self/cgroup; cat /sys/fs/cgroup/cpu.max"
    if quota is None:
        yield make_fact(
            "cpu.quota",
            None,
            _("none"),
            read_from="/proc/self/cgroup, /proc/self/mountinfo",
            see_yourself=see,
        )
        return
    cpus, path = quota
    yield make_fact(
        "cpu.quota",
        cpus,
        _("{cpus:g} CPUs").format(cpus=round(cpus, 2)),
        read_from=path,
        see_yourself=f"cat {path}",
        meaning=_("mpirun does not see a quota and would start more ranks than may run at a time."),
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
    Probe(("cpu.online", "cpu.affinity", "cpu.cores"), read_counts),
    Probe(("cpu.quota",), read_quota),
    Probe(("cpu.usable",), read_usable, ("cpu.affinity", "cpu.quota", "cpu.online", "platform.layer")),
)
