"""How many files and processes one may have open here, against what a job on all CPUs takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from mpiwizard.core.detect.cgroups import group_folders
from mpiwizard.core.detect.facts import Probe, Survey, lines_with, make_fact, unknown_fact, whole_number
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

LIMITS = "/proc/self/limits"
# Tried on 4.1.4 and 5.0.11: mpirun starts n ranks with 32 + 4 n descriptors; with fewer, 4.1.4 hangs.
FILES_OF_MPIRUN, FILES_OF_RANK = 32, 4
USUAL_FILES = 1024  # what most distributions set; below it, somebody wanted it so
# Seen: mpirun has 4 threads, a rank 3 (4.1.4) or 2 (5.0.11); make starts up to 5 processes for one compilation.
THREADS_OF_MPIRUN, THREADS_OF_CPU = 16, 5
MANY = 10_000  # from here on nobody has to count what runs already


def parse_limit(text: str, name: str) -> tuple[int | None, int | None] | None:
    """Soft and hard limit in a file such as /proc/self/limits, None for unlimited; None when it is not there."""
    found = re.search(
        rf"^{re.escape(name)}\s+(unlimited|[0-9]{{1,18}})\s+(unlimited|[0-9]{{1,18}})", text, re.MULTILINE
    )
    if found is None:
        return None
    soft, hard = (None if word == "unlimited" else int(word) for word in found.groups())
    return soft, hard


def _shown(limit: int | None) -> str:
    return _("unlimited") if limit is None else str(limit)


def read_files(survey: Survey) -> Iterator[Fact]:
    text, see = survey.host.read(LIMITS) or "", "ulimit -n; ulimit -Hn"
    limit = parse_limit(text, "Max open files")
    if limit is None:
        why = _("/proc/self/limits does not tell")
        yield unknown_fact("environment.files", why, read_from=LIMITS, see_yourself=see)
        return
    soft, hard = limit
    ranks = survey.found.value("cpu.usable", 1)
    few = soft is not None and soft < FILES_OF_MPIRUN + 2 * FILES_OF_RANK * ranks
    below = soft is not None and soft < USUAL_FILES
    meaning = ""
    if soft is not None and (few or below):
        meaning = _(
            "mpirun needs about {own} of its own and {each} for each rank of a host: here that is enough for {ranks} "
            "ranks. With fewer it stops or hangs."
        ).format(own=FILES_OF_MPIRUN, each=FILES_OF_RANK, ranks=max((soft - FILES_OF_MPIRUN) // FILES_OF_RANK, 0))
    elif soft is not None:
        meaning = _("Enough for this host; jobs of many hundred ranks over TCP want more.")
    action = ""
    if (few or below) and hard != soft:
        action = "ulimit -n {}".format("unlimited" if hard is None else hard)
    elif few or below:
        action = _("Raise nofile in /etc/security/limits.conf; containers: --ulimit nofile=65536.")
    yield make_fact(
        "environment.files",
        soft,
        _shown(soft)
        if soft == hard
        else _("{soft}, may be raised to {hard}").format(soft=_shown(soft), hard=_shown(hard)),
        "attention" if few else "info" if below else "ok",
        read_from=LIMITS,
        raw=lines_with("^Limit|^Max open files", text),
        see_yourself=see,
        meaning=meaning,
        action=action,
    )


def tasks_left_in_group(host: Host) -> tuple[int, int, str] | None:
    """Limit, use and file of the control group that has the least room for processes; None without a limit."""
    found = []
    for folder in group_folders(host, "pids"):
        limit = whole_number(host.read(f"{folder}/pids.max"))  # "max" is none
        if limit is not None and limit >= 0:
            found.append((limit, whole_number(host.read(f"{folder}/pids.current")) or 0, f"{folder}/pids.max"))
    return min(found, key=lambda one: one[0] - one[1], default=None)


def tasks_of(host: Host, uid: str) -> int:
    """Threads of all processes of a user: what the limit of processes counts. Hidden ones are not seen."""
    count = 0
    for name in host.list("/proc"):
        if name.isascii() and name.isdigit():
            status = host.read(f"/proc/{name}/status") or ""
            threads = re.search(r"^Threads:\s+(\d{1,9})\b", status, re.MULTILINE)
            if threads and re.search(rf"^Uid:\s+{uid}\b", status, re.MULTILINE):
                count += int(threads[1])
    return count


def read_processes(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    text, see = host.read(LIMITS) or "", "ulimit -u; grep -s . /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max"
    limit = parse_limit(text, "Max processes")
    group = tasks_left_in_group(host)
    if limit is None and group is None:
        why = _("/proc/self/limits does not tell")
        yield unknown_fact("environment.processes", why, read_from=LIMITS, see_yourself=see)
        return
    candidates: list[tuple[int, int, str, str]] = []  # limit, in use, file, raw text
    if group is not None:
        most, used, path = group
        candidates.append((most, used, path, f"pids.max {most}\npids.current {used}"))
    uid = re.search(r"^Uid:\s+(\d+)", host.read("/proc/self/status") or "", re.MULTILINE)
    if limit is not None and limit[0] is not None and uid and uid[1] != "0":  # it does not hold for root
        used = tasks_of(host, uid[1]) if limit[0] < MANY else 0
        candidates.append((limit[0], used, LIMITS, lines_with("^Limit|^Max processes", text)))
    if not candidates:
        raw = lines_with("^Limit|^Max processes", text)
        shown = _("unlimited") if limit is None or limit[0] is None else _("no limit for root")
        yield make_fact("environment.processes", None, shown, "ok", read_from=LIMITS, raw=raw, see_yourself=see)
        return
    most, used, path, raw = min(candidates, key=lambda one: one[0] - one[1])
    needed = THREADS_OF_MPIRUN + THREADS_OF_CPU * survey.found.value("cpu.usable", 1)
    few = most - used < needed
    yield make_fact(
        "environment.processes",
        most,
        _("{limit}, {used} in use").format(limit=most, used=used) if used else str(most),
        "attention" if few else "ok",
        read_from=path,
        raw=raw,
        see_yourself=f"cat {shlex.quote(path)}" if path != LIMITS else "ulimit -u; ps -eLo user= | sort | uniq -c",
        meaning=_(
            "make on all CPUs, or a rank on each, takes about {needed} processes and threads; with fewer, fork fails."
        ).format(needed=needed)
        if few
        else "",
        action=_limit_mend(path) if few else "",
    )


def _limit_mend(path: str) -> str:
    if path == LIMITS:
        return _("Raise it: ulimit -u, and nproc in /etc/security/limits.conf; or build with fewer jobs, -j 1.")
    return _("Start the container with --pids-limit=4096, or build with fewer jobs, -j 1.")


PROBES = (
    Probe(("environment.files",), read_files, ("cpu.usable",)),
    Probe(("environment.processes",), read_processes, ("cpu.usable",)),
)
