"""The manifest of an installation: every file with its SHA-256, so that it can be removed exactly."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.i18n import _

OURS = "share/mpiwizard"  # our own folder inside a prefix
_NAME = f"{OURS}/manifest.txt"


def write_manifest(prefix: Path) -> int:
    """Write down all that is in the prefix, in the form of `sha256sum`; the number of files."""
    lines = [
        f"{_digest(path)}  {path.relative_to(prefix)}\n"
        for path in sorted(_files(prefix))
        if path != prefix / _NAME
    ]
    (prefix / OURS).mkdir(parents=True, exist_ok=True)
    (prefix / _NAME).write_text("".join(lines), encoding="utf-8")
    return len(lines)


def require_ours(prefix: Path) -> None:
    """WizardError (USAGE) for a prefix that mpiwizard did not install into."""
    if not (prefix / _NAME).is_file():
        raise WizardError(
            _("{prefix} was not installed by mpiwizard: it holds no {name}; nothing was removed.").format(
                prefix=prefix, name=_NAME
            ),
            ExitCode.USAGE,
        )


def remove_installation(prefix: Path) -> tuple[int, tuple[str, ...]]:
    """Remove what was installed; the number of files removed, and those kept because they changed since.

    Files that were never ours stay. Raises WizardError when the prefix is not ours.
    """
    require_ours(prefix)
    removed, kept = 0, []
    for line in (prefix / _NAME).read_text(encoding="utf-8").splitlines():
        digest, _blank, name = line.partition("  ")
        path = prefix / name
        if not os.path.lexists(path) or not path.parent.resolve().is_relative_to(prefix.resolve()):
            continue
        if _digest(path) != digest:
            kept.append(name)
            continue
        path.unlink()
        removed += 1
    for path in _files(prefix / OURS):
        path.unlink()
        removed += 1
    for folder, _folders, _names in os.walk(prefix, topdown=False):
        if not os.listdir(folder):
            Path(folder).rmdir()
    return removed, tuple(kept)


def _files(folder: Path) -> Iterator[Path]:
    for place, _folders, names in os.walk(folder):
        folders_that_are_links = [name for name in _folders if (Path(place) / name).is_symlink()]
        for name in [*names, *folders_that_are_links]:
            yield Path(place) / name


def _digest(path: Path) -> str:
    """SHA-256 of a file's bytes; of a link's target text for a link."""
    if path.is_symlink():
        return hashlib.sha256(str(path.readlink()).encode()).hexdigest()
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
