"""The one way to a box: read a file, list a folder, run a command.

`RealHost` is the box itself, `RecordedHost` (recordings.py) a copy of another box in a folder, and both
answer the same questions, so that detection can be tested on machines nobody here owns. Answers are
values, not exceptions: a file that cannot be read is `None`, a command that is missing has status 127.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

TERMINATE_GRACE = 2.0  # seconds between SIGTERM and SIGKILL; some mpirun ignore SIGTERM for good
MOST_OUTPUT = 1 << 20  # bytes of each stream of a command that are kept; one that says more is ended


class Result(Struct, frozen=True):
    """How a command ended. `status` is the exit status, negative for a signal, 127 when not found."""

    status: int
    output: str = ""  # standard output
    errors: str = ""  # standard error
    timed_out: bool = False
    seconds: float = 0.0

    @property
    def succeeded(self) -> bool:
        return self.status == 0 and not self.timed_out


class Host(Protocol):
    """A box that can be asked. Paths are absolute, as they are on that box."""

    @property
    def environment(self) -> Mapping[str, str]: ...

    @property
    def is_real(self) -> bool:
        """True on the box itself: only then may system calls be tried, and files written."""
        ...

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        """The text of a file, at most `limit` bytes; None when it cannot be read."""
        ...

    def list(self, path: str) -> tuple[str, ...]:
        """The sorted names in a folder; empty when it cannot be read."""
        ...

    def exists(self, path: str) -> bool: ...

    def resolve(self, path: str) -> str:
        """The path with its links followed; the path itself when that fails."""
        ...

    def which(self, program: str) -> str | None:
        """The absolute path of a program on PATH."""
        ...

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = 10.0,
        environment: Mapping[str, str] | None = None,
        folder: str | None = None,
        given: str = "",
        grace: float = TERMINATE_GRACE,
    ) -> Result:
        """Run a command to its end, at most `timeout` seconds, in its own process group.

        `environment` replaces the whole environment. `given` is its standard input. `grace` is how many
        seconds it has between SIGTERM and SIGKILL. One that prints more than MOST_OUTPUT bytes is ended too.
        """
        ...


def read_file(path: str | os.PathLike[str], limit: int) -> str | None:
    """The text of an ordinary file, at most `limit` bytes; None for any other, which could hold us up."""
    try:
        # Without O_NONBLOCK the opening of a pipe would wait for somebody who writes into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            return file.read(limit).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None


class RealHost:
    """The box mpiwizard runs on."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self.environment: Mapping[str, str] = dict(os.environ if environment is None else environment)
        self._running: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def end_commands(self) -> None:
        """End what other threads still run here, and start nothing more: the person leaves."""
        self._ended = True
        for process in tuple(self._running):
            _signal_group(process, signal.SIGKILL)

    @property
    def is_real(self) -> bool:
        return True

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        return read_file(path, limit)

    def list(self, path: str) -> tuple[str, ...]:
        try:
            return tuple(sorted(os.listdir(path)))
        except (OSError, ValueError):
            return ()

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def resolve(self, path: str) -> str:
        try:
            return os.path.realpath(path)
        except ValueError:  # no path at all: it holds a null character
            return path

    def which(self, program: str) -> str | None:
        return shutil.which(program, path=self.environment.get("PATH"))

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = 10.0,
        environment: Mapping[str, str] | None = None,
        folder: str | None = None,
        given: str = "",
        grace: float = TERMINATE_GRACE,
    ) -> Result:
        from time import monotonic

        started = monotonic()
        if self._ended:
            return Result(126, errors=f"{argv[0]}: not started")
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE if given else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(self.environment if environment is None else environment),
                cwd=folder,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            return Result(127, errors=f"{error.filename}: not found")
        except OSError as error:
            return Result(126, errors=f"{argv[0]}: {error.strerror}")
        except ValueError as error:  # a word that no command line can hold, such as one with a null character
            return Result(126, errors=f"{argv[0]}: {error}")
        self._running.add(process)
        if self._ended:  # while the command was being started, when it could not be seen to be ended
            _signal_group(process, signal.SIGKILL)
        said = _Conversation(process, given.encode())
        try:
            ended = said.follow(timeout)
            if not ended:
                _end_group(process, said, grace)
        except BaseException:
            try:
                _end_group(process, said)
            finally:  # even when a second Ctrl-C ends the patience
                _signal_group(process, signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(TERMINATE_GRACE)
            raise
        finally:
            self._running.discard(process)
            said.close()
        status = process.poll()
        return Result(
            -signal.SIGKILL if status is None else status,
            said.output.decode("utf-8", "replace"),
            said.errors.decode("utf-8", "replace"),
            timed_out=not ended and not said.too_much,
            seconds=monotonic() - started,
        )


class _Conversation:
    """What a command is given and what it says, of which each stream is kept up to MOST_OUTPUT bytes."""

    def __init__(self, process: subprocess.Popen[bytes], given: bytes) -> None:
        from selectors import EVENT_READ, EVENT_WRITE, PollSelector

        self._process, self._given = process, given
        self.output, self.errors = bytearray(), bytearray()
        self._selector = PollSelector()
        for pipe, kept in ((process.stdout, self.output), (process.stderr, self.errors)):
            if pipe:
                self._selector.register(pipe, EVENT_READ, kept)
        if process.stdin:
            os.set_blocking(process.stdin.fileno(), False)
            self._selector.register(process.stdin, EVENT_WRITE)

    @property
    def too_much(self) -> bool:
        return MOST_OUTPUT in (len(self.output), len(self.errors))

    def follow(self, seconds: float, *, to_the_end: bool = False) -> bool:
        """Whether the command has ended in this time, and all who hold its output; False also when it says too much.

        With `to_the_end` whatever it says is still read, the rest being forgotten.
        """
        from time import monotonic

        end = monotonic() + seconds
        while self._selector.get_map():
            left = end - monotonic()
            if left <= 0 or (self.too_much and not to_the_end):
                return False
            for key, _events in self._selector.select(left):
                self._write(key.fd) if key.data is None else self._read(key.fd, key.data)
        try:
            self._process.wait(max(end - monotonic(), 0))
        except subprocess.TimeoutExpired:
            return False
        return True

    def _read(self, pipe: int, kept: bytearray) -> None:
        said = os.read(pipe, 1 << 16)
        kept += said[: MOST_OUTPUT - len(kept)]
        if not said:
            self._selector.unregister(pipe)

    def _write(self, pipe: int) -> None:
        with contextlib.suppress(BlockingIOError):
            try:
                self._given = self._given[os.write(pipe, self._given[: 1 << 16]) :]
            except BrokenPipeError:  # it does not want to hear more
                self._given = b""
        if not self._given and self._process.stdin:
            self._selector.unregister(pipe)
            self._process.stdin.close()

    def close(self) -> None:
        """Let go of the pipes, which others may still hold."""
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()


def _end_group(process: subprocess.Popen[bytes], said: _Conversation, grace: float = TERMINATE_GRACE) -> None:
    """End a command and all it started, and hear what it says meanwhile.

    A grandchild in a session of its own may still hold the pipes, or the kernel wait for a dead drive and let
    nobody end the command: it is left, with what it may say.
    """
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, TERMINATE_GRACE)):
        _signal_group(process, number)
        if said.follow(patience, to_the_end=True):
            return


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
