"""Output of programs made safe to show: colours stay, every other control sequence goes."""

from __future__ import annotations

import re

_NOT_COLOUR = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-ln-~]"  # control sequences other than …m
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links, clipboard writes
    r"|\x1b[PX^_][^\x1b]*\x1b\\"  # device control strings, private messages
    r"|\x1b[ -/]*[0-Z\\-~]"  # two-character escapes, character sets
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]|\x1b(?!\[[\d;:]*m)")
_COLOUR = re.compile(r"\x1b\[[\d;:]*m")


def clean_line(raw: bytes) -> str:
    """One line of output for a screen; of a line that was overwritten, its last state."""
    text = raw.decode("utf-8", "replace").rstrip("\r\n").rpartition("\r")[2]
    return _CONTROL.sub("\ufffd", _NOT_COLOUR.sub("", text)).expandtabs(8)


def plain_line(raw: bytes) -> str:
    """One line of output without colours."""
    return _COLOUR.sub("", clean_line(raw))
