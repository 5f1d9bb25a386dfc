"""A local archive that the person gives with --archive: looked into before anything rests on it."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path, PurePosixPath

from mpiwizard.core.context import Context, Wishes, given_path
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.i18n import _
from mpiwizard.core.sources.checksum import checked_form, sha256_of
from mpiwizard.core.sources.model import Availability

_GREEK = re.compile(r"(?:[a-z]+\d*)?")  # such as rc1; the version becomes part of paths
_NUMBER = re.compile(r"^(major|minor|release|greek)=(\S*)$", re.M)


def probe(context: Context, wishes: Wishes) -> Availability:
    """What the given archive holds. WizardError when it is missing, no Open MPI, or has another sum."""
    if not wishes.archive:
        return Availability("archive", False, reason=_("no archive was given (--archive FILE)"))
    path = given_path(wishes.archive)
    if not path.is_file():
        raise WizardError(
            _("There is no archive {path}; give --archive the path of an Open MPI source archive.").format(
                path=path
            ),
            ExitCode.USAGE,
        )
    release = release_inside(path)
    found = sha256_of(path)
    if wishes.sha256 and checked_form(wishes.sha256) != found:
        raise WizardError(
            _(
                "Checksum mismatch for {name}: expected {expected}, found {found}; it was not used. "
                "Check where the archive came from, or the sum you gave."
            ).format(name=path.name, expected=wishes.sha256.lower(), found=found)
        )
    detail = _("local archive, SHA-256 as given") if wishes.sha256 else _("local archive, SHA-256 not checked")
    return Availability("archive", True, release, path.name, path.stat().st_size, found, detail)


def release_inside(path: Path) -> str:
    """The version of the Open MPI in a source archive, from its VERSION file.

    Raises WizardError when the file is no archive, or holds something else.
    """
    reason = _("it holds no VERSION and configure of Open MPI in its top folder")
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                parts = PurePosixPath(member.name).parts
                if len(parts) == 2 and parts[1] == "VERSION" and member.isfile():
                    file = archive.extractfile(member)
                    text = file.read(1 << 16).decode("utf-8", "replace") if file else ""
                    if release := version_text(text):
                        return release
                    break
    except (tarfile.TarError, OSError, EOFError) as error:
        reason = str(error) or type(error).__name__
    raise WizardError(
        _("{name} is not an Open MPI source archive ({reason}); give --archive an openmpi-X.Y.Z.tar file.").format(
            name=path.name, reason=reason
        ),
        ExitCode.USAGE,
    )


def version_text(text: str) -> str:
    """The version written in a VERSION file of Open MPI, such as 4.1.4 or 5.0.0rc1; empty when it has none."""
    if "Open MPI" not in text:
        return ""
    numbers = dict(_NUMBER.findall(text))
    try:
        version = ".".join(str(int(numbers[part])) for part in ("major", "minor", "release"))
    except (KeyError, ValueError):
        return ""
    greek = numbers.get("greek", "")
    return version + greek if _GREEK.fullmatch(greek) else ""
