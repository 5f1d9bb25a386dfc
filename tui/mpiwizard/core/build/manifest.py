"""The manifest of an installation: every file with its SHA-256, so that it can be removed exactly."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.i18n import _

_OURS = "share/mpiwizard"  # our own folder inside a prefix; tune and validate also keep theirs there
_NAME = f"{_OURS}/manifest.txt"


def begin_manifest(prefix: Path) -> None:
    """Mark the prefix as ours before its first file; an empty manifest tells that install was cut off."""
    (prefix / _OURS).mkdir(parents=True, exist_ok=True)
    (prefix / _NAME).touch()


def write_manifest(prefix: Path) -> int:
    """Write down all that is in the prefix, in the form of `sha256sum`; the number of files."""
    lines = [
        f"{_digest(path)}  {path.relative_to(prefix)}\n"
        for path in sorted(_files(prefix))
        if path != prefix / _NAME
    ]
    begin_manifest(prefix)
    (prefix / _NAME).write_bytes(os.fsencode("".join(lines)))
    return len(lines)


def require_ours(prefix: Path) -> None:
    """WizardError (USAGE) for a prefix that mpiwizard did not install into, or not to the end."""
    if not (prefix / _NAME).is_file():
        raise WizardError(
            _("{prefix} was not installed by mpiwizard: it holds no {name}; nothing was removed.").format(
                prefix=prefix, name=_NAME
            ),
            ExitCode.USAGE,
        )
    if (prefix / _NAME).stat().st_size == 0:
        message = _(
            "The installation in {prefix} was cut off, so its files are not known: finish it with "
            "`mpiwizard resume`, or remove the folder yourself."
        )
        raise WizardError(message.format(prefix=prefix), ExitCode.USAGE)


def remove_installation(prefix: Path) -> tuple[int, tuple[str, ...]]:
    """Remove what was installed; the number of files removed, and those kept because they changed since.

    Files that were never ours stay. Raises WizardError when the prefix is not ours.
    """
    require_ours(prefix)
    prefix = prefix.resolve()
    removed, kept = 0, []
    for line in os.fsdecode((prefix / _NAME).read_bytes()).split("\n"):
        digest, _blank, name = line.partition("  ")
        path = prefix / name
        if not name or not os.path.lexists(path) or not path.parent.resolve().is_relative_to(prefix):
            continue
        is_folder = path.is_dir() and not path.is_symlink()
        if is_folder or _digest(path) != digest:
            kept.append(name)
            continue
        path.unlink()
        removed += 1
    for path in _files(prefix / _OURS):
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
