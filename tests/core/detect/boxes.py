"""Boxes for the tests of detection: the recorded machines, and small ones made up on the spot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.detect import detect
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.host import Host, Result
from mpiwizard.core.recordings import RecordedHost, RememberingHost, command_file

MACHINES = Path(__file__).resolve().parents[2] / "machines"
NOW = 1_700_000_000.0  # what our clock says; a recorded hardware clock is compared with it


def context_of(host: Host) -> Context:
    """A context whose folders are where that box would have them."""
    home = Path(host.environment.get("HOME", "/root"))
    folders = Folders(home / ".local/state/mpiwizard", home / ".cache/mpiwizard", home / ".config/mpiwizard")
    return Context(host, folders, clock=lambda: NOW, offline=True)


@cache
def recorded(name: str, wishes: Wishes | None = None) -> Machine:
    """What detection says of tests/machines/<name>."""
    assert (MACHINES / name).is_dir(), f"no machine {name} was recorded"
    return detect(Context.of_recording(MACHINES / name), wishes or Wishes())


def box(
    folder: Path,
    files: Mapping[str, str],
    commands: Mapping[str, Mapping[str, Any]] | None = None,
    environment: Mapping[str, str] | None = None,
) -> RecordedHost:
    """A box with only these files, commands and variables."""
    for path, text in files.items():
        file = folder / "root" / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (folder / "commands").mkdir(parents=True)
    for line, answer in (commands or {}).items():
        file = folder / "commands" / command_file([line])
        file.write_text(answer.get("output", ""))
        file.with_name(file.name + ".errors").write_text(answer.get("errors", ""))
        file.with_name(file.name + ".status").write_text(str(answer.get("status", 0)))
    (folder / "environment.json").write_text(json.dumps(dict(environment or {})))
    return RecordedHost(folder)


def look(host: Host, wishes: Wishes | None = None) -> Machine:
    """What detection says of a box."""
    return detect(context_of(host), wishes or Wishes())


Question = tuple[str, ...]  # (`read`, path) or (`run`, word, …)


@cache
def questions(name: str) -> dict[Question, str]:
    """The files and commands that detection asks tests/machines/<name> for and gets, with their text."""
    host = RememberingHost(RecordedHost(MACHINES / name))
    survey_machine(context_of(host), Wishes(), None, host=host)
    texts = {}
    for question, answer in host.answers().items():
        if question[0] == "read" and answer is not None:
            texts[question] = answer
        elif question[0] == "run" and answer.status != 127:
            texts[question] = answer.output
    return texts


class DamagedHost(RecordedHost):
    """A recorded machine of which some files and outputs hold other bytes, are gone (None), or are folders."""

    def __init__(self, folder: Path, damage: Mapping[Question, bytes | None], folders: Sequence[str] = ()) -> None:
        super().__init__(folder)
        self._damage = {
            question: None if text is None else text.decode("utf-8", "replace") for question, text in damage.items()
        }
        self._folders = frozenset(folders)

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        if path in self._folders:
            return None
        question = ("read", path)
        return self._damage[question] if question in self._damage else super().read(path, limit)

    def exists(self, path: str) -> bool:
        gone = ("read", path) in self._damage and self._damage["read", path] is None
        return path in self._folders or (not gone and super().exists(path))

    def run(self, argv: Sequence[str], **options: Any) -> Result:
        question = ("run", *argv)
        if question not in self._damage:
            return super().run(argv, **options)
        text = self._damage[question]
        return Result(127, errors=f"{argv[0]}: not found") if text is None else Result(0, text)


def texts_with(*words: str) -> st.SearchStrategy[str]:
    """Texts of every kind, among them such as consist of a parser's own words and so come further into it."""
    chosen = st.lists(st.sampled_from(words), max_size=40)
    damaged = st.binary(max_size=80).map(lambda data: data.decode("utf-8", "replace"))
    return st.one_of(st.text(), chosen.map("".join), chosen.map(" ".join), damaged)
