"""Session: what the wizard remembers between starts, so that nobody types a thing twice."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from mpiwizard.core.context import Folders, Wishes
from mpiwizard.core.files import replace_file


class Session(Struct, frozen=True):
    """The person's decisions so far. `switches` maps an option's id to on or off, where changed."""

    wishes: Wishes = Wishes()
    choice: str = ""  # Choice.id of the way that was taken
    switches: dict[str, bool] = {}
    run: str = ""  # id of the last run
    schema: int = 1


def _file(folders: Folders) -> Path:
    return folders.state / "session.json"


def load_session(folders: Folders) -> Session:
    """The remembered session; a new one when there is none or it cannot be understood."""
    try:
        return msgspec.json.decode(_file(folders).read_bytes(), type=Session)
    except (OSError, msgspec.DecodeError):
        return Session()


def save_session(folders: Folders, session: Session) -> None:
    """Write the session in one piece: a crash leaves the old one or the new one."""
    folders.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(_file(folders), msgspec.json.format(msgspec.json.encode(session), indent=2), mode=0o600)
