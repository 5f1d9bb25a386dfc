"""Boxes for the tests of detection: the recorded machines, and small ones made up on the spot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.detect import detect
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.host import Host
from mpiwizard.core.recordings import RecordedHost, command_file

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
    return detect(context_of(RecordedHost(MACHINES / name)), wishes or Wishes())


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
