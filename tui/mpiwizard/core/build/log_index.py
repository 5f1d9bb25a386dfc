"""An index into a growing log file: only where its lines start, never the lines themselves."""

from __future__ import annotations

import mmap
import os
import re
from array import array
from bisect import bisect_right
from pathlib import Path

_NEWLINE = re.compile(rb"\n")
_READ_AT_ONCE = 1 << 18


class LogIndex:
    """Offsets of the line starts of one append-only file. Raises OSError when it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._starts = array("Q", [0])
        self.size = 0

    def close(self) -> None:
        os.close(self._descriptor)

    def __len__(self) -> int:
        """The number of lines, an unfinished last one included."""
        return len(self._starts) - (self._starts[-1] == self.size)

    def poll(self, budget: int = 4 << 20) -> bool:
        """Index at most `budget` new bytes; True if the file grew."""
        before = self.size
        while self.size - before < budget:
            chunk = os.pread(self._descriptor, _READ_AT_ONCE, self.size)
            if not chunk:
                break
            after_newline = self.size + 1
            self._starts.extend([match.start() + after_newline for match in _NEWLINE.finditer(chunk)])
            self.size += len(chunk)
        return self.size > before

    def line(self, number: int, limit: int = 4096) -> bytes:
        """Line `number` from 0 without its newline, at most `limit` bytes."""
        start = self._starts[number]
        end = self._starts[number + 1] - 1 if number + 1 < len(self._starts) else self.size
        return os.pread(self._descriptor, min(end - start, limit), start)

    def find(self, pattern: re.Pattern[bytes], first: int) -> int | None:
        """The first line at or after `first` that matches. May run in a thread."""
        if self.size == 0 or first >= len(self):
            return None
        with mmap.mmap(self._descriptor, self.size, prot=mmap.PROT_READ) as view:
            match = pattern.search(view, self._starts[first])
            return bisect_right(self._starts, match.start()) - 1 if match else None
