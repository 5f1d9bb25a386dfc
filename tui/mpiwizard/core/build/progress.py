"""How far a step is, read from the bytes of its log as they come.

A pure fold: feed chunks in order, cut anywhere, and read the counts. The same code follows a
running build and replays a recorded one.
"""

from __future__ import annotations

import re

# Each begins with fixed bytes, and looks back from them: ten times faster than what begins with a choice,
# and while a pattern is searched no key is answered.
_COMPILE = re.compile(rb"\n(?: +(?:CC|CXX|FC|F77|CCAS|PPFC|NVCC) |(?:/bin/(?:ba)?sh )?\S*libtool: +compile: )")
_CHECK = re.compile(rb"\n(?:---|\+\+\+|\*\*\*)?[ \t]*checking ")
_WARNING = re.compile(rb"warning: (?<=\bwarning: )")
_ERROR = re.compile(rb"error: (?<=[: \n]error: )")
_MAKE_ERROR = re.compile(rb"\nmake(?:\[\d+\])?: \*\*\* ")


class Progress:
    """Counts of one step: lines, checks of configure, compilations, warnings, errors."""

    def __init__(self) -> None:
        self.checks = 0
        self.compiled = 0
        self.warnings = 0
        self.errors = 0
        self.last = b""
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the log."""
        text = self._rest + chunk
        complete, newline, self._rest = text.rpartition(b"\n")
        if not newline:
            return
        lines = b"\n" + complete
        self.compiled += len(_COMPILE.findall(lines))
        self.checks += len(_CHECK.findall(lines))
        self.warnings += len(_WARNING.findall(lines))
        self.errors += len(_ERROR.findall(lines)) + len(_MAKE_ERROR.findall(lines))
        self.last = lines.rpartition(b"\n")[2]


def fraction(done: int, expected: int) -> float | None:
    """The part that is done, 0 to 0.99 since the expected number is an estimate; None when unknown."""
    return min(done / expected, 0.99) if expected > 0 else None


def remaining(seconds: float, part: float | None, estimate: float) -> float:
    """Seconds a step will still take: from its own pace once 10 % are done, before that from the estimate.

    Between the two the estimate fades out, so that the number never jumps.
    """
    planned = max(estimate - seconds, 0.0)
    if not part:
        return planned
    paced = seconds / part - seconds
    trust = min(part / 0.1, 1.0)
    return trust * paced + (1.0 - trust) * planned
