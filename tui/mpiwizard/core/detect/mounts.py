"""Which file system a path lies on, from /proc/self/mountinfo."""

from __future__ import annotations

import posixpath
import re

from msgspec import Struct

from mpiwizard.core.host import Host

WINDOWS_TYPES = frozenset({"9p", "drvfs"})
# Folders that a host shares with its guests and containers: VirtualBox, VMware, QEMU and Apple, Docker Desktop.
SHARED_TYPES = frozenset({"vboxsf", "fuse.vmhgfs-fuse", "vmhgfs", "prl_fs", "virtiofs", "fakeowner", "fuse.grpcfuse"})
NETWORK_TYPES = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "ceph", "fuse.glusterfs", "lustre", "gpfs", "beegfs",
     "afs", "fuse.s3fs"}
)  # fmt: skip
LINKLESS_TYPES = frozenset({"vfat", "msdos", "exfat"})  # they know no symbolic links, which every installation has


class Mount(Struct, frozen=True):
    """One line of mountinfo (proc(5))."""

    root: str  # folder of the file system that is mounted; "/" for all of it
    point: str  # where it is mounted
    type: str
    source: str
    options: frozenset[str]  # those of the mount
    super_options: frozenset[str]  # those of the file system


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """The mounts of a mountinfo file, in its order; lines of another shape are left out."""
    mounts = []
    for line in text.split("\n"):
        before, separator, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if not separator or len(left) < 6 or len(right) < 2:
            continue
        super_options = right[2] if len(right) > 2 else ""
        mounts.append(
            Mount(
                unescape(left[3]),
                unescape(left[4]),
                right[0],
                unescape(right[1]),
                frozenset(left[5].split(",")),
                frozenset(super_options.split(",")),
            )
        )
    return tuple(mounts)


def unescape(text: str) -> str:
    """Blanks and the like are written as three octal digits."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda match: chr(int(match[1], 8)), text)


def may_hang(mount: Mount) -> bool:
    """Whether somebody outside of the kernel answers for a mount: a server, Windows, a process."""
    answered = NETWORK_TYPES | WINDOWS_TYPES | SHARED_TYPES
    return mount.type in answered or mount.type.partition(".")[0] in ("fuse", "fuseblk")


def mount_of(mounts: tuple[Mount, ...], path: str) -> Mount | None:
    """The mount a path lies on: the longest one above it, and of these the last one mounted."""
    best: Mount | None = None
    for mount in mounts:
        if is_below(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def is_below(path: str, folder: str) -> bool:
    """Whether a path is `folder` or lies in it, by the names alone."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def read_mounts(host: Host) -> tuple[Mount, ...]:
    """The mounts as this process sees them; none when the box does not tell."""
    return parse_mountinfo(host.read("/proc/self/mountinfo") or "")


def nearest_existing(host: Host, path: str) -> str:
    """The path, or the closest folder above it that exists, with links followed."""
    while not host.exists(path) and path not in ("/", ""):
        path = posixpath.dirname(path)
    return host.resolve(path or "/")
