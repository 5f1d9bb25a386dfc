"""What the wizard remembers is the person's own, comes back as it was, and never stands in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpiwizard.core.context import Folders, Wishes
from mpiwizard.core.session import Session, load_session, save_session


def folders_in(folder: Path) -> Folders:
    return Folders(folder / "state", folder / "cache", folder / "config")


def test_what_was_decided_comes_back_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    session = Session(Wishes(prefix="/opt/mpi", mirror="https://me:secret@mirror/"), switches={"no-romio": False})
    save_session(folders_in(tmp_path), session)
    save_session(folders_in(tmp_path), session)
    assert load_session(folders_in(tmp_path)) == session
    assert [file.stat().st_mode & 0o777 for file in (tmp_path / "state").iterdir()] == [0o600]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"wishes": 3}', b'{"wishes": {"colour": "red"}}', b"\xff"])
def test_a_session_that_cannot_be_understood_is_a_new_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "session.json").write_bytes(content)
    assert load_session(folders_in(tmp_path)) == Session()
