"""What a running step takes of the box: the processor and memory of its first process and all below it."""

from __future__ import annotations

from typing import NamedTuple


class Usage(NamedTuple):
    """`cpu` in percent of one processor since the look before, None at the first; memory (resident) in bytes."""

    cpu: float | None
    memory: int
    memory_of_box: int


class UsageMeter:
    """Measures one process tree again and again."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._last: tuple[float, float] | None = None  # time, processor seconds

    def look(self) -> Usage:
        """The use now; of a tree that has ended, nothing."""
        import time

        import psutil

        now, used, memory = time.monotonic(), 0.0, 0
        try:
            top = psutil.Process(self.pid)
            processes = [top, *top.children(recursive=True)]
        except psutil.Error:
            processes = []
        for process in processes:
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    # What ended children used is counted by their parent: a compiler may live and die between looks.
                    used += times.user + times.system + times.children_user + times.children_system
                    memory += process.memory_info().rss
            except psutil.Error:
                continue
        cpu = None
        if self._last is not None and now > self._last[0]:
            cpu = max(0.0, (used - self._last[1]) / (now - self._last[0]) * 100.0)
        self._last = (now, used)
        return Usage(cpu, memory, psutil.virtual_memory().total)
