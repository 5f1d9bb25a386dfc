"""Unpacking an archive: its one top folder becomes the source folder, in one rename at the end."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.i18n import _


def unpack(archive: Path, source: Path) -> int:
    """Unpack into `source`, which is made anew; the number of files.

    Members are checked by tarfile's data filter: nothing outside the folder, no devices, no owners.
    Raises WizardError for a damaged or hostile archive; nothing half-done is left then.
    """
    if not hasattr(tarfile, "data_filter"):
        raise WizardError(
            _("This Python cannot unpack archives safely (no data filter); update to 3.10.12, 3.11.4 or newer."),
            ExitCode.NOT_POSSIBLE_HERE,
        )
    new = source.with_name(source.name + ".new")
    for old in (new, source):
        shutil.rmtree(old, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        with tarfile.open(archive) as opened:
            opened.extractall(new, filter="data")
        (top,) = new.iterdir()
        if not (top / "configure").is_file():
            raise ValueError(_("no configure in its top folder"))
        top.rename(source)
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise WizardError(
            _("{name} cannot be unpacked ({reason}); fetch it again or use another --source.").format(
                name=archive.name, reason=error
            )
        ) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return sum(len(names) for _place, _folders, names in os.walk(source))
