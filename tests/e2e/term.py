"""A real terminal for tests: a program on a pseudo-terminal, and the screen that a person would see."""

from __future__ import annotations

import os
import time

import pexpect
import pyte


class Term:
    """A program in a terminal of `columns` x `rows`."""

    def __init__(self, argv: list[str], columns: int = 80, rows: int = 24, **environment: str) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""  # all that the program sent
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("TEXTUAL_") and name not in ("NO_COLOR", "COLUMNS", "LINES", "SSH_CONNECTION")
        }
        self.child = pexpect.spawn(
            argv[0],
            argv[1:],
            dimensions=(rows, columns),
            maxread=65536,
            env={**clean, "TERM": "xterm-256color", "LANG": "C.UTF-8", **environment},
        )
        self.child.delaybeforesend = None

    def pump(self, seconds: float = 0.05) -> bool:
        """Show what the program prints for so long; False once it has ended."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                sent = self.child.read_nonblocking(65536, timeout=left)
                self.raw += sent
                self._stream.feed(sent)
            except pexpect.TIMEOUT:
                return True
            except pexpect.EOF:
                return False
        return True

    @property
    def text(self) -> str:
        """The screen as lines."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def wait_for(self, what: str, seconds: float = 15) -> None:
        """Wait until the screen shows a text."""
        end = time.monotonic() + seconds
        while what not in self.text:
            alive = self.pump()
            if what in self.text:
                return
            if not alive or time.monotonic() > end:
                raise AssertionError(f"{what!r} never appeared; the screen was:\n{self.text}")

    def press(self, keys: str) -> None:
        self.child.send(keys)

    def status(self, seconds: float = 10) -> int:
        """The exit status of the program, which must end by itself; minus the number of a signal."""
        end = time.monotonic() + seconds
        while self.pump():
            if time.monotonic() > end:
                raise AssertionError(f"the program did not end; the screen was:\n{self.text}")
        self.child.wait()
        exit_status = self.child.exitstatus
        return -int(self.child.signalstatus or 0) if exit_status is None else int(exit_status)

    def close(self) -> None:
        self.child.close(force=True)
