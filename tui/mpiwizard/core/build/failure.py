"""The first error of a failed step, told on one card: what broke, where, one thing to try."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from mpiwizard.core.build.ansi import plain_line
from mpiwizard.core.build.model import StepState
from mpiwizard.core.i18n import _

_FIRST_ERROR = (
    re.compile(r"No space left on device|Disk quota exceeded"),
    re.compile(r"virtual memory exhausted|Cannot allocate memory|Killed signal terminated|compiler error: Killed"),
    re.compile(r"^configure: error: "),
    re.compile(r"\bfatal error: "),
    re.compile(r"(?:^|[: ])error: |undefined reference to |\bld: cannot find "),
    re.compile(r"^make(?:\[\d+\])?: \*\*\* "),
    re.compile(r"attempt to run as root|not enough slots|unable to find the specified executable"),
    re.compile(r"exited on signal \d+"),
    re.compile(r"Permission denied"),
)  # fmt: skip
_OF_MAKE = re.compile(r"^make(?:\[\d+\])?: ")
_LINES_BACK = 20  # how far above make's word the failed command may have spoken
_PLACE = re.compile(r"^(?P<file>[^\s:]+\.[A-Za-z]+):(?P<line>\d+)(?::\d+)?: ")


class FailureCard(Struct, frozen=True):
    """What a person reads first when a step failed. `line` counts from 1; 0 when no line told."""

    what: str
    where: str
    line: int
    evidence: str
    try_this: str


def explain_failure(step: StepState, log: Path) -> FailureCard:
    """The card for a failed step, from its latest attempt in its log. Never raises: without a log it says so."""
    try:
        content = log.read_bytes()
    except OSError:
        content = b""
    earlier, latest = content[: step.log_offset], content[step.log_offset :]
    number, evidence = _first_error(latest) or _last_line(latest)
    number += earlier.count(b"\n") if number else 0
    place = _PLACE.match(evidence)
    where = _("{file}, line {line}").format(**place.groupdict()) if place else _("step {step}").format(step=step.id)
    advice = _advice(step.id, evidence, step.status)
    return FailureCard(_what(step.id, step.status), where, number, evidence, advice)


def first_error_in(content: bytes) -> FailureCard | None:
    """The card for a log of unknown origin; None when no line of it tells of an error."""
    if found := _first_error(content):
        return FailureCard("", "", *found, _advice("", found[1], None))
    return None


def _first_error(content: bytes) -> tuple[int, str] | None:
    """The earliest line of the most telling kind, with its number."""
    lines = [plain_line(line) for line in content.split(b"\n")]
    for pattern in _FIRST_ERROR:
        for number, line in enumerate(lines, start=1):
            if pattern.search(line):
                return _cause(lines, number)
    return None


def _cause(lines: list[str], number: int) -> tuple[int, str]:
    """The line itself; for make's own word that a command failed, what the command said before it."""
    for before in range(number, max(number - _LINES_BACK, 0), -1):
        text = lines[before - 1].strip()
        if text and not _OF_MAKE.match(text):
            return before, text
    return number, lines[number - 1].strip()


def _last_line(content: bytes) -> tuple[int, str]:
    """The last line that says anything; 0 and nothing when none does."""
    lines = content.split(b"\n")
    for number in range(len(lines), 0, -1):
        if text := plain_line(lines[number - 1]).strip():
            return number, text
    return 0, ""


def _what(step: str, status: int | None) -> str:
    if status is not None and status < 0:
        return _("{step} was ended by signal {number}.").format(step=step, number=-status)
    return _("{step} ended with exit status {status}.").format(step=step, status=status)


def _advice(step: str, evidence: str, status: int | None) -> str:
    if re.search(r"No space left on device|Disk quota exceeded", evidence):
        return _("Make room on this disk, then resume: what is compiled stays.")
    if re.search(r"memory|Killed", evidence) or status == -9:
        return _("The build may have run out of memory: end other programs and resume, or start anew with --jobs 1.")
    if match := re.search(r"fatal error: (\S+\.h): No such file", evidence):
        return _("The header {name} is missing: install the package that holds it, then resume.").format(
            name=match[1]
        )
    if "attempt to run as root" in evidence:
        return _("Run it as an ordinary user; in a container, add --allow-run-as-root to mpirun.")
    if "not enough slots" in evidence:
        return _("Ask for fewer ranks with -n, or add --oversubscribe to mpirun to share the processors.")
    if "specified executable" in evidence:
        return _("Give mpirun the program with its path, such as ./program.")
    if match := re.search(r"cannot find -l(\S+)", evidence):
        return _("The library {name} is missing: install the package with its development files.").format(name=match[1])
    if step in ("fetch", "verify"):
        return _("Try another source: --source distro, --archive FILE, or --mirror URL.")
    if step == "configure":
        return _("Read config.log in the build folder; switch the option off that the line names, then start again.")
    if step:
        return _("Read the full log; resume repeats only this step.")
    return _("Read what stands around this line: it is the first error in the text.")
