"""Our marked block in an MCA parameter file. Everything else in the file stays, byte for byte.

A file we make begins with the block; in a file that was there, the block comes after a line end of its
own. So removing it also tells whether the file was ours to begin with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from mpiwizard.core.detect.parameters import parse_parameters
from mpiwizard.core.errors import WizardError
from mpiwizard.core.files import replace_file
from mpiwizard.core.i18n import _

BEGIN = "# >>> mpiwizard: settings that were measured on this machine >>>"
END = "# <<< mpiwizard <<<"
_BLOCK = re.compile(
    rb"(?P<lead>\n|\A)# >>> mpiwizard\b[^\n]*\n(?P<inside>.*?)^# <<< mpiwizard\b[^\n]*(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_MARK = re.compile(rb"^# (?:>>>|<<<) mpiwizard\b", re.MULTILINE)


def write_block(path: Path, settings: Mapping[str, str], remarks: Mapping[str, str]) -> None:
    """Put `settings` into our block, each below its remark, which may have several lines.

    Without settings the block is removed.
    """
    if not settings:
        remove_block(path)
        return
    before, lead, inside, after = _parts(path, _read(path))
    if inside is None:
        lead = b"\n" if path.exists() else b""
    lines = [BEGIN]
    for name, value in settings.items():
        lines += [f"# {remark}" for remark in remarks.get(name, "").splitlines()]
        lines.append(f"{name} = {value}")
    replace_file(path, before + lead + "\n".join([*lines, END, ""]).encode() + after)


def remove_block(path: Path) -> bool:
    """Take our block out again; False when there was none. A file that we made goes with it."""
    before, lead, inside, after = _parts(path, _read(path))
    if inside is None:
        return False
    if before or lead or after:
        replace_file(path, before + after)
    else:
        path.unlink()
    return True


def other_settings(path: Path) -> dict[str, str]:
    """What the file sets outside our block: somebody decided that, and it stays."""
    before, _lead, _inside, after = _parts(path, _read(path))
    return parse_parameters(before.decode("utf-8", "replace")) | parse_parameters(after.decode("utf-8", "replace"))


def _parts(path: Path, content: bytes) -> tuple[bytes, bytes, bytes | None, bytes]:
    """The content before our block, the line end that leads it, what is in it (None: no block), the rest."""
    found = _BLOCK.search(content)
    before, after = (content[: found.start()], content[found.end() :]) if found else (content, b"")
    if _MARK.search(before) or _MARK.search(after):
        raise WizardError(
            _("The mpiwizard block in {path} lacks one of its two marks. Remove its lines by hand.").format(path=path)
        )
    return before, found["lead"] if found else b"", found["inside"] if found else None, after


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
