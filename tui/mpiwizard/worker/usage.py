"""Processor and memory use of a running step: of its first process and all below it."""

from __future__ import annotations

from msgspec import Struct


class Usage(Struct, frozen=True):
    """`cpu` in percent of one processor since the last look, `memory` in bytes (resident)."""

    cpu: float
    memory: int
    processes: int


class UsageMeter:
    """Measures one process tree again and again."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._last: tuple[float, float] | None = None  # time, processor seconds

    def look(self) -> Usage:
        """The use now; `cpu` is 0 at the first look."""
        import time

        import psutil

        now, used, memory, count = time.monotonic(), 0.0, 0, 0
        try:
            top = psutil.Process(self._pid)
            processes = [top, *top.children(recursive=True)]
        except psutil.Error:
            processes = []
        for process in processes:
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    # What ended children used is counted by their parent, so nothing is lost between looks.
                    used += times.user + times.system + times.children_user + times.children_system
                    memory += process.memory_info().rss
                    count += 1
            except psutil.Error:
                continue
        cpu = 0.0
        if self._last and now > self._last[0]:
            cpu = max(0.0, (used - self._last[1]) / (now - self._last[0]) * 100.0)
        self._last = (now, used)
        return Usage(cpu, memory, count)
