"""Boxes that are kept: answers remembered while a box is asked, and a box replayed from a folder.

A recording is a folder with the box's files below `root/`, the output of commands in `commands/`, and
the environment in `environment.json`. A folder that holds the files themselves is one too. The file of
a command is named by its words, joined by single blanks and percent-encoded where a file name cannot
hold them; beside it may stand what it printed on standard error, `.errors`, and its `.status`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote

from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.host import MOST_OUTPUT, TERMINATE_GRACE, Host, Result, read_file
from mpiwizard.core.i18n import _

_MOST_LINKS = 40  # as in the kernel: more of them are a circle
_LONGEST_NAME = 180  # characters; file systems allow 255 bytes
_MOST_UNPACKED = 1 << 27  # bytes of an archive's files; captures hold a few MB in a few thousand files
_LONGEST_HEADER = 1 << 20  # bytes of what stands before a file in an archive, such as its long name
_DEEPEST = 100  # folders within each other; Python goes down in them by calling itself
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def command_file(argv: Sequence[str]) -> str:
    """The name of the file that holds what a command printed."""
    name = quote(" ".join(argv), safe=" +=,:;@()[]{}", errors="surrogatepass")
    if name.startswith("."):  # else "." and ".." would be folders
        name = "%2E" + name[1:]
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 17]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def find_recording(given: Path, scratch: Path) -> Path:
    """The folder of a recording, which may be given as an archive; that is unpacked into `scratch`.

    Raises WizardError (USAGE) when it is neither.
    """
    folder = given
    if given.is_file():
        folder = _unpacked(given, scratch)
    if not any((folder / name).is_dir() for name in ("root", "proc", "sys", "etc")):
        message = _(
            "{path} is no recording of a box: give a folder with its files below root/, or the archive "
            "that `mpiwizard capture` wrote."
        )
        raise WizardError(message.format(path=given), ExitCode.USAGE)
    return folder


def _unpacked(archive: Path, scratch: Path) -> Path:
    from mpiwizard.core.tarfiles import tarfile

    class Header(tarfile.TarInfo):
        """A header of which tarfile takes no further text into memory than one could need."""

        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Header:
            header = super().frombuf(buf, encoding, errors)
            if not (header.isfile() or header.size <= _LONGEST_HEADER):
                raise tarfile.ReadError(_("it holds a name without end"))
            return header

    room = _MOST_UNPACKED

    def keep(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
        nonlocal room
        room -= member.size + 4096  # what a file takes at least on most file systems
        if room < 0 or member.name.count("/") > _DEEPEST:
            raise tarfile.TarError(_("it holds more than any recording does"))
        kept: tarfile.TarInfo = tarfile.data_filter(member, folder).replace(mtime=0, deep=False)
        return kept

    try:
        with tarfile.open(archive, tarinfo=Header) as opened:
            opened.extractall(scratch, filter=keep)
    except Exception as error:  # of many kinds: tarfile hands on what its decompressors and the system raise
        message = _("{path} cannot be unpacked as a recording ({reason}); give a folder or another archive.")
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(":")
        raise WizardError(message.format(path=archive, reason=reason), ExitCode.USAGE) from None
    tops = list(scratch.iterdir())
    return tops[0] if len(tops) == 1 else scratch


def recorded_time(folder: Path) -> float | None:
    """Seconds since the epoch when a recording was made; None where it does not tell."""
    try:
        made = float(json.loads(_own_file(folder / "about.json", 1 << 16) or "")["time"])
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
    return made if math.isfinite(made) else None


def _own_file(path: Path, limit: int) -> str | None:
    """The text of a file of a recording; a link is none, as it may lead to one of the box we run on."""
    return None if path.is_symlink() else read_file(path, limit)


class RecordedHost:
    """A box replayed from a folder. Nothing of the box it runs on is read, not even through a link.

    Raises WizardError (USAGE) for a folder of another shape.
    """

    def __init__(self, folder: Path) -> None:
        for name in ("root", "commands"):
            if (folder / name).is_symlink():
                message = _("{path} is a link, which may lead out of the recording; put the folder itself there.")
                raise WizardError(message.format(path=folder / name), ExitCode.USAGE)
        self._root = folder / "root" if (folder / "root").is_dir() else folder
        self._commands = folder / "commands"
        self.environment: Mapping[str, str] = _read_environment(folder / "environment.json")

    @property
    def is_real(self) -> bool:
        return False

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        try:
            return read_file(self._inside(path), limit)
        except (OSError, ValueError):
            return None

    def list(self, path: str) -> tuple[str, ...]:
        try:
            return tuple(sorted(os.listdir(self._inside(path))))
        except (OSError, ValueError):
            return ()

    def exists(self, path: str) -> bool:
        folder, _slash, name = path.rstrip("/").rpartition("/")
        try:
            return os.path.lexists(self._inside(folder) / name)
        except (OSError, ValueError):
            return False

    def resolve(self, path: str) -> str:
        try:
            return "/" + "/".join(self._follow(path))
        except (OSError, ValueError):
            return path

    def _inside(self, path: str) -> Path:
        return self._root.joinpath(*self._follow(path))

    def _follow(self, path: str) -> tuple[str, ...]:
        """The parts of a path with its links followed as on that box. Raises OSError for a circle."""
        waiting = path.split("/")[::-1]
        done: list[str] = []
        links = 0
        while waiting:
            part = waiting.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = done[:-1]
                continue
            candidate = self._root.joinpath(*done, part)
            if not candidate.is_symlink():
                done.append(part)
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = str(candidate.readlink())
            if target.startswith("/"):
                done = []
            waiting += target.split("/")[::-1]
        return tuple(done)

    def which(self, program: str) -> str | None:
        for folder in self.environment.get("PATH", _DEFAULT_PATH).split(":"):
            if folder.startswith("/") and self.exists(f"{folder}/{program}"):
                return f"{folder}/{program}"
        return None

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
        path = self._commands / command_file(argv)
        output, errors, status = (
            _own_file(path.with_name(path.name + end), MOST_OUTPUT) for end in ("", ".errors", ".status")
        )
        if output is None and errors is None and status is None:
            return Result(127, errors=f"{argv[0]}: not recorded")
        if (status or "").strip() == "timed out":
            return Result(-9, output or "", errors or "", timed_out=True, seconds=timeout)
        return Result(_number(status), output or "", errors or "")


def _number(status: str | None) -> int:
    try:
        return int(status or "0")
    except ValueError:
        return 0


def _read_environment(path: Path) -> dict[str, str]:
    """The variables of a recording; none where there is no file. Raises WizardError for another shape."""
    text = _own_file(path, 1 << 22)
    try:
        variables = {} if text is None else json.loads(text)
        return {str(name): str(value) for name, value in variables.items()}
    except (ValueError, AttributeError, RecursionError) as error:
        message = _("{path} is no JSON object of variables ({reason}); correct or remove it.")
        raise WizardError(message.format(path=path, reason=error), ExitCode.USAGE) from None


class _Answer:
    """One question's answer, which whoever asks second waits for."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.known = False
        self.value: Any = None


class RememberingHost:
    """Asks another host each question once: one picture of the box for all who ask, and a record of it.

    Folders in `silent` are taken as absent, such as a network drive that does not answer any more.
    """

    def __init__(self, host: Host, silent: Sequence[str] = ()) -> None:
        self._host = host
        self._silent = tuple(folder.rstrip("/") + "/" for folder in silent)
        self._answers: dict[tuple[Any, ...], _Answer] = {}
        self._lock = Lock()
        self.environment: Mapping[str, str] = host.environment
        if silent:
            folders = [folder for folder in host.environment.get("PATH", "").split(":") if not self._is_silent(folder)]
            self.environment = {**host.environment, "PATH": ":".join(folders)}

    @property
    def is_real(self) -> bool:
        return self._host.is_real

    def answers(self) -> dict[tuple[Any, ...], Any]:
        """What was asked and answered so far: (`read`, path), (`run`, word, …) and so on, in order."""
        with self._lock:
            return {question: answer.value for question, answer in self._answers.items() if answer.known}

    def _once(self, question: tuple[Any, ...], ask: Callable[[], Any]) -> Any:
        with self._lock:
            answer = self._answers.setdefault(question, _Answer())
        with answer.lock:
            if not answer.known:
                answer.value = ask()
                answer.known = True
        return answer.value

    def _is_silent(self, path: str) -> bool:
        return bool(self._silent) and f"{path}/".startswith(self._silent)

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        text: str | None = self._once(
            ("read", path), lambda: None if self._is_silent(path) else self._host.read(path, limit)
        )
        return text

    def list(self, path: str) -> tuple[str, ...]:
        names: tuple[str, ...] = self._once(
            ("list", path), lambda: () if self._is_silent(path) else self._host.list(path)
        )
        return names

    def exists(self, path: str) -> bool:
        return bool(
            self._once(("exists", path), lambda: not self._is_silent(path) and self._host.exists(path))
        )

    def resolve(self, path: str) -> str:
        return str(
            self._once(("resolve", path), lambda: path if self._is_silent(path) else self._host.resolve(path))
        )

    def which(self, program: str) -> str | None:
        def find() -> str | None:
            if self._silent and self.is_real:
                return shutil.which(program, path=self.environment.get("PATH"))
            return self._host.which(program)

        path: str | None = self._once(("which", program), find)
        return path

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
        variables = self.environment if environment is None else environment
        result: Result = self._once(
            ("run", *argv),
            lambda: self._host.run(
                argv, timeout=timeout, environment=variables, folder=folder, given=given, grace=grace
            ),
        )
        return result


class RecordingWriter:
    """Writes a recording into an empty folder, so that `RecordedHost` gives the answers it was told.

    Links are written first: what is written below a linked folder then lies where the link leads.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._root = folder / "root"
        self._root.mkdir(parents=True)
        (folder / "commands").mkdir()
        self._host = RecordedHost(folder)

    def link(self, path: str, target: str) -> None:
        place = self._place(path)
        if not os.path.lexists(place) and place.name:
            folder = "/" + str(place.parent.relative_to(self._root))
            place.symlink_to(os.path.relpath(target, folder))  # an archive with absolute links is refused

    def folder(self, path: str) -> None:
        with contextlib.suppress(OSError):  # a file is there: it was told more of
            self._root.joinpath(self._host.resolve(path).lstrip("/")).mkdir(parents=True, exist_ok=True)

    def file(self, path: str, text: str) -> None:
        place = self._place(path)
        if place.name and not place.is_dir() and not place.is_symlink():
            place.write_text(text, encoding="utf-8")

    def present(self, path: str) -> None:
        """Something is there, of which nothing more is known."""
        place = self._place(path)
        if place.name and not os.path.lexists(place):
            place.touch()

    def command(self, argv: Sequence[str], result: Result) -> None:
        path = self._folder / "commands" / command_file(argv)
        status = "timed out" if result.timed_out else str(result.status) if result.status else ""
        for end, text in (("", result.output), (".errors", result.errors), (".status", status)):
            if text or (not end and not status):
                path.with_name(path.name + end).write_text(text, encoding="utf-8")

    def environment(self, variables: Mapping[str, str]) -> None:
        text = json.dumps(dict(sorted(variables.items())), indent=1)
        (self._folder / "environment.json").write_text(text + "\n", encoding="utf-8")

    def _place(self, path: str) -> Path:
        """Where a path is written, its folder made."""
        folder, _slash, name = path.rstrip("/").rpartition("/")
        place = self._root.joinpath(self._host.resolve(folder).lstrip("/"))
        with contextlib.suppress(FileExistsError, NotADirectoryError):
            place.mkdir(parents=True, exist_ok=True)
        return place / name
