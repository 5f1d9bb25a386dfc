"""SHA-256 sums: computed, compared, refused."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.i18n import _

_FORM = re.compile(r"[0-9a-f]{64}")


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file in lower-case hexadecimal. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def checked_form(sha256: str) -> str:
    """The sum in lower case; WizardError when it is not 64 hexadecimal digits."""
    if not _FORM.fullmatch(sha256.lower()):
        raise WizardError(
            _("{sum} is not a SHA-256 sum: give --sha256 64 hexadecimal digits.").format(sum=sha256),
            ExitCode.USAGE,
        )
    return sha256.lower()


def refuse_if_different(path: Path, expected: str, *, remove: bool) -> str:
    """The sum of the file when it is the expected one; else WizardError with both sums.

    `remove` deletes the file that was refused: for downloads, never for a person's own archive.
    """
    found = sha256_of(path)
    if found == expected:
        return found
    if remove:
        path.unlink()
    raise WizardError(
        _(
            "Checksum mismatch for {name}: expected {expected}, found {found}; it was not used{removed}. "
            "Try another --source or --mirror, or check the sum you gave."
        ).format(
            name=path.name, expected=expected, found=found, removed=_(" and not kept") if remove else ""
        )
    )
