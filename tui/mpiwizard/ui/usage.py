"""What a build takes of the box: CPU and memory of its process group."""

from __future__ import annotations

import os
import time
from typing import NamedTuple


class Usage(NamedTuple):
    """`cpu` in percent of one core, `memory` in bytes (resident), `of` the box's memory in bytes."""

    cpu: float
    memory: int
    of: int


class Meter:
    """Reads the same process group again and again; the CPU share is that since the reading before."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}
        self._when = 0.0

    def read(self, group: int) -> Usage:
        """The usage of a process group at this moment; zeros when it has ended."""
        import psutil

        seconds, memory = {}, 0
        for process in psutil.process_iter():
            try:
                if os.getpgid(process.pid) != group:
                    continue
                times = process.cpu_times()
                seconds[process.pid] = times.user + times.system
                memory += process.memory_info().rss
            except (psutil.Error, OSError):
                continue
        now = time.monotonic()
        worked = sum(spent - self._seconds.get(pid, 0.0) for pid, spent in seconds.items())
        share = 100 * worked / (now - self._when) if self._when and self._seconds else 0.0
        self._seconds, self._when = seconds, now
        return Usage(max(share, 0.0), memory, psutil.virtual_memory().total)
