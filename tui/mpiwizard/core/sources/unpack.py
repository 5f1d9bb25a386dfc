"""Unpacking an archive: its one top folder becomes the source folder, in one rename at the end."""

from __future__ import annotations

import lzma
import os
import shutil
import zlib
from pathlib import Path

from mpiwizard.core.errors import WizardError
from mpiwizard.core.i18n import _
from mpiwizard.core.tarfiles import tarfile


def unpack(archive: Path, source: Path) -> int:
    """Unpack into `source`, which is made anew; the number of files.

    Members are checked by tarfile's data filter: nothing outside the folder, no devices, no owners.
    Raises WizardError for a damaged or hostile archive; nothing half-done is left then.
    """
    new = source.with_name(source.name + ".new")
    for old in (new, source):
        shutil.rmtree(old, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        with tarfile.open(archive) as opened:
            opened.extractall(new, filter="data")
            _require_whole(opened)
        tops = list(new.iterdir())
        if len(tops) != 1 or not (tops[0] / "configure").is_file():
            raise tarfile.TarError(_("it is not one folder with a configure in it"))
        tops[0].rename(source)
    except (tarfile.TarError, lzma.LZMAError, zlib.error, ValueError, KeyError, EOFError, OSError) as error:
        # KeyError: a hard link to what is not in the archive
        raise WizardError(
            _("{name} cannot be unpacked ({reason}); fetch it again or use another --source.").format(
                name=archive.name, reason=_reason(error)
            )
        ) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return sum(len(names) for _place, _folders, names in os.walk(source))


def _require_whole(opened: tarfile.TarFile) -> None:
    """Raise when the archive goes on behind what tarfile took for its end, as it does a damaged header.

    Reading to the end also lets the decompressor compare its own sum.
    """
    file = opened.fileobj
    assert file is not None
    file.seek(opened.offset)
    if file.read(tarfile.BLOCKSIZE).strip(b"\0"):
        raise tarfile.TarError(_("it is damaged in the middle"))
    while file.read(1 << 20):
        pass


def _reason(error: Exception) -> str:
    """What went wrong in one line; tarfile lists all it tried on lines of their own."""
    if isinstance(error, tarfile.ReadError) and "\n" in str(error):
        return _("it is no archive, or damaged at its start")
    if isinstance(error, KeyError):
        return str(error.args[0])
    return getattr(error, "strerror", None) or str(error)
