"""The control groups this process is in: what limits its CPUs, its CPU time and its memory."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from mpiwizard.core.detect.mounts import Mount, is_below, read_mounts
from mpiwizard.core.detect.topology import CpuSet, parse_cpu_list
from mpiwizard.core.host import Host

CPUSET_FILES = ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")  # version 2, 1, and an older 1


def parse_cgroups(text: str) -> dict[str, str]:
    """/proc/self/cgroup as controller -> path; the unified hierarchy (version 2) is the controller ""."""
    paths: dict[str, str] = {}
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3 and parts[2].startswith("/"):
            for controller in parts[1].split(","):
                paths[controller] = parts[2]
    return paths


def group_folders(host: Host, controller: str) -> tuple[str, ...]:
    """The folders of our groups for a controller, innermost first, of version 1 and of version 2.

    A limit in any of them counts. Inside a container the path can be that of the host, while only
    the container's part of the tree is mounted; then the mount point stands for our group.
    """
    paths = parse_cgroups(host.read("/proc/self/cgroup") or "")
    folders: list[str] = []
    for mount in read_mounts(host):
        if mount.type == "cgroup2" and "" in paths:
            folders += _upwards(mount, paths[""])
        elif mount.type == "cgroup" and controller in mount.super_options and controller in paths:
            folders += _upwards(mount, paths[controller])
    return tuple(dict.fromkeys(folders))


def _upwards(mount: Mount, path: str) -> Iterator[str]:
    inside = path[len(mount.root.rstrip("/")) :] if is_below(path, mount.root) else "/"
    parts = [part for part in inside.split("/") if part and part != ".."]
    for length in range(len(parts), -1, -1):
        yield posixpath.join(mount.point, *parts[:length])


def parse_cpu_max(text: str) -> float | None:
    """cpu.max of version 2, "quota period" in microseconds, as a number of CPUs; None without limit."""
    quota, period = [*text.split(), "", ""][:2]
    return _quota(quota, period)


def _quota(quota: str, period: str) -> float | None:
    try:
        cpus = int(quota) / int(period or "100000")
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return cpus if cpus > 0 else None


def cpu_quota(host: Host) -> tuple[float, str] | None:
    """The tightest quota, in CPUs, and the file that sets it; None when there is none."""
    found: list[tuple[float, str]] = []
    for folder in group_folders(host, "cpu"):
        quotas = {
            f"{folder}/cpu.max": parse_cpu_max(host.read(f"{folder}/cpu.max") or ""),
            f"{folder}/cpu.cfs_quota_us": _quota(
                host.read(f"{folder}/cpu.cfs_quota_us") or "", host.read(f"{folder}/cpu.cfs_period_us") or ""
            ),
        }
        found += [(cpus, path) for path, cpus in quotas.items() if cpus is not None]
    return min(found, default=None)


def cpuset_cpus(host: Host) -> tuple[CpuSet, str] | None:
    """The CPUs our groups leave us, and the file that tells; None when no group tells of any.

    An inner group has no more than those around it, and a file of it that is empty takes over what they have.
    """
    for folder in group_folders(host, "cpuset"):
        for name in CPUSET_FILES:
            if cpus := parse_cpu_list(host.read(f"{folder}/{name}") or ""):
                return cpus, f"{folder}/{name}"
    return None


def cpuset_for_hwloc(host: Host, resource: str = "cpus", version2: bool = True) -> tuple[CpuSet, str] | None:
    """The CPUs (or memory nodes: "mems") hwloc takes as allowed, and where it reads them; None: it sees no limit.

    It looks at one hierarchy only, the first that is mounted, and takes the name of our group as /proc has it,
    also in a container that has the host's name for it and another tree below the mount: then it finds no file.
    Affinity and quota it does not look at. `version2`: hwloc 2.2 and later know control groups of version 2
    (its NEWS), the 2.0.1 inside Open MPI 4.1 does not.
    """
    name = (host.read("/proc/self/cpuset") or "").partition("\n")[0]
    if not name.startswith("/"):
        paths = parse_cgroups(host.read("/proc/self/cgroup") or "")
        name = paths.get("cpuset", paths.get("", ""))
    for kind, point, options in _mounts_in_order(host):
        if kind == "cgroup2" and version2 and "cpuset" in (host.read(f"{point}/cgroup.controllers") or "").split():
            file = f"cpuset.{resource}.effective"
        elif kind == "cpuset" or (kind == "cgroup" and {"cpuset", "noprefix"} <= options):
            file = resource
        elif kind == "cgroup" and "cpuset" in options:
            file = f"cpuset.{resource}"
        else:
            continue
        path = f"{point.rstrip('/')}{name.rstrip('/')}/{file}"
        text = host.read(path) if name else None
        return None if text is None else (parse_cpu_list(text), path)
    return None


def _mounts_in_order(host: Host) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Type, place and options of what is mounted; of kernels without mountinfo too."""
    mounts = read_mounts(host)
    for mount in mounts:
        yield mount.type, mount.point, mount.options | mount.super_options
    for line in (host.read("/proc/mounts") or "").splitlines() if not mounts else ():
        parts = line.split(" ")
        if len(parts) > 3:
            yield parts[2], parts[1], frozenset(parts[3].split(","))


def memory_limit(host: Host) -> tuple[int, str] | None:
    """The tightest memory limit in bytes and the file that sets it; None when there is none."""
    found: list[tuple[int, str]] = []
    for folder in group_folders(host, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = _digits(host.read(f"{folder}/{name}"))  # "max" is no limit
            if limit is not None:
                found.append((limit, f"{folder}/{name}"))
    return min(found, default=None)


def memory_in_use(host: Host, limit_file: str) -> int:
    """Bytes the group of `limit_file` cannot give back: its use without the inactive part of the page cache."""
    folder, name = posixpath.split(limit_file)
    version1 = name == "memory.limit_in_bytes"
    used = _digits(host.read(f"{folder}/{'memory.usage_in_bytes' if version1 else 'memory.current'}")) or 0
    inactive = "total_inactive_file" if version1 else "inactive_file"
    for line in (host.read(f"{folder}/memory.stat") or "").splitlines():
        key, _blank, value = line.partition(" ")
        if key == inactive:
            return max(used - (_digits(value) or 0), 0)
    return used


def _digits(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 21 else None
