"""Free space, as df tells it: df keeps to a deadline where a dead network drive would hold up a system call."""

from __future__ import annotations

from msgspec import Struct

from mpiwizard.core.detect.facts import ask_all
from mpiwizard.core.host import Host


class Space(Struct, frozen=True):
    """Size of a file system and what an ordinary user may still write to it: bytes, or numbers of files."""

    size: int
    free: int


def parse_df(text: str, unit: int = 1024) -> Space | None:
    """The last line of `df -P -k`, or with unit 1 of `df -P -i`; None when it has another shape."""
    words = text.strip().rpartition("\n")[2].split()
    for position in range(1, len(words) - 2):  # the file system's name may hold blanks
        numbers = words[position : position + 3]
        if all(word.isascii() and word.isdigit() and len(word) < 19 for word in numbers):
            return Space(int(numbers[0]) * unit, int(numbers[2]) * unit)
    return None


class Room(Struct, frozen=True):
    """What is left on the file system of a path; None where df does not tell, `raw` is what it printed."""

    space: Space | None
    files: Space | None  # None too where the number of files has no limit, as on btrfs
    raw: str


def room_at(host: Host, path: str) -> Room:
    """Space and number of files that are left where a path lies that exists, both asked at once."""
    space, files = ask_all(host, [["df", "-P", "-k", path], ["df", "-P", "-i", path]])
    counted = parse_df(files.output, 1)
    lines = [line for result in (space, files) for line in result.output.strip().splitlines()[-1:]]
    return Room(parse_df(space.output), counted if counted and counted.size else None, "\n".join(lines))
