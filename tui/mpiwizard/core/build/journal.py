"""The journal of a run: one JSON object a line, only ever appended, safe on disk before it counts.

It is the truth about a run. A line that a crash tore in two is ignored by its readers.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct


class Event(Struct, frozen=True, omit_defaults=True):
    """Something that happened. `event` is one of

    run-started, step-kept (done before, not repeated), step-started, step-finished,
    plan-changed (the fallback plan takes over), note, stop-requested, run-finished.
    """

    event: str
    time: float  # seconds since the epoch
    step: str = ""
    pid: int = 0
    status: int | None = None  # exit status, negative for a signal
    seconds: float = 0.0
    offset: int = 0  # of step-started: bytes that earlier attempts had left in the log
    text: str = ""  # a sentence for the person
    outcome: str = ""  # of step-finished and run-finished: done, failed or stopped


class Journal:
    """Appends events. Each is one write, flushed to the disk."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._clock = clock
        self._torn = _ends_in_torn_line(path)

    def write(
        self,
        event: str,
        *,
        step: str = "",
        pid: int = 0,
        status: int | None = None,
        seconds: float = 0.0,
        offset: int = 0,
        text: str = "",
        outcome: str = "",
    ) -> None:
        """Append one event with the present time. Raises OSError, for instance on a full disk."""
        line = msgspec.json.encode(
            Event(event, self._clock(), step, pid, status, round(seconds, 3), offset, text, outcome)
        )
        content = (b"\n" if self._torn else b"") + line + b"\n"
        self._torn = os.write(self._descriptor, content) < len(content)
        if self._torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def read_journal(path: Path) -> tuple[Event, ...]:
    """All whole events; empty when there is no journal yet."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return ()
    return tuple(event for line in lines if (event := _decode(line)) is not None)


def _decode(line: bytes) -> Event | None:
    try:
        return msgspec.json.decode(line, type=Event)
    except msgspec.MsgspecError:
        return None


def _ends_in_torn_line(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
