"""Availability: what one source of Open MPI offers to this box."""

from __future__ import annotations

from msgspec import Struct


class Availability(Struct, frozen=True, omit_defaults=True):
    """One source. When it is not `reachable`, `reason` says why in one line."""

    kind: str  # release, distro or archive
    reachable: bool
    release: str = ""  # Open MPI's version it offers; for `release` the newest one
    file: str = ""  # name of the archive
    size: int = 0  # bytes, 0 when not known
    sha256: str = ""
    detail: str = ""  # such as "Debian 12's openmpi 4.1.4-3, signed list"
    reason: str = ""
