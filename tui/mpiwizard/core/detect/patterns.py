"""Folders by patterns: vendors put a release, a compiler or a year into the names of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase

from mpiwizard.core.host import Host


def expand(host: Host, pattern: str, order: Callable[[Iterable[str]], list[str]] = sorted) -> list[str]:
    """The folders that an absolute pattern such as `/opt/hpcx*/ucx` stands for; a star stands for any name not hidden.

    `order` puts the names that fit one part of the pattern into their order.
    """
    found = [""]
    for part in pattern.strip("/").split("/"):
        found = [f"{folder}/{name}" for folder in found for name in order(_fitting(host, folder, part))]
    return found


def _fitting(host: Host, folder: str, part: str) -> list[str]:
    if "*" not in part:
        return [part]
    return [name for name in host.list(folder or "/") if fnmatchcase(name, part) and not name.startswith(".")]
