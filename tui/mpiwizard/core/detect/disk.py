"""Free space, as df tells it: df keeps to a deadline where a dead network drive would hold up a system call."""

from __future__ import annotations

from msgspec import Struct

from mpiwizard.core.detect.facts import ask
from mpiwizard.core.host import Host


class Space(Struct, frozen=True):
    """Size of a file system and what an ordinary user may still write to it, in bytes."""

    size: int
    free: int


def parse_df(text: str) -> Space | None:
    """The last line of `df -P -k`; None when it has another shape."""
    words = text.strip().rpartition("\n")[2].split()
    for position in range(1, len(words) - 2):  # the file system's name may hold blanks
        numbers = words[position : position + 3]
        if all(word.isascii() and word.isdigit() and len(word) < 19 for word in numbers):
            return Space(int(numbers[0]) * 1024, int(numbers[2]) * 1024)
    return None


def free_space(host: Host, path: str) -> Space | None:
    """The space where a path lies that exists; None when there is no telling."""
    return parse_df(ask(host, "df", "-P", "-k", path).output)
