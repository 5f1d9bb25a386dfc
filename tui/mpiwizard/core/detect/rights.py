"""What this process may do to another: the filter of its system calls, its right to trace, its user namespace."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpiwizard.core.detect.facts import Probe, Survey, lines_with, make_fact, unknown_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.i18n import _, ngettext

STATUS = "/proc/self/status"
UID_MAP = "/proc/self/uid_map"
CAP_SYS_PTRACE = 19  # linux/capability.h
_ALL_USERS = (0, 0, (1 << 32) - 1)  # the map of the namespace the box started with


def parse_seccomp(status: str) -> tuple[int, int] | None:
    """Mode and number of filters in /proc/self/status; 0 for a number that older kernels do not tell."""
    mode = re.search(r"^Seccomp:\s*([0-9])\s*$", status, re.MULTILINE)
    filters = re.search(r"^Seccomp_filters:\s*([0-9]{1,6})\s*$", status, re.MULTILINE)
    return (int(mode[1]), int(filters[1]) if filters else 0) if mode else None


def holds(capability: int, which: str, status: str) -> bool | None:
    """Whether a capability is in the set `which`, such as CapEff, of /proc/self/status; None when it does not tell."""
    found = re.search(rf"^{which}:\s*([0-9a-fA-F]{{1,32}})\s*$", status, re.MULTILINE)
    return bool(int(found[1], 16) >> capability & 1) if found else None


def parse_uid_map(text: str) -> list[tuple[int, int, int]]:
    """Lines of /proc/self/uid_map: first user here, first user outside, how many."""
    return [
        (int(inside), int(outside), int(count))
        for inside, outside, count in re.findall(
            r"^\s*([0-9]{1,10})\s+([0-9]{1,10})\s+([0-9]{1,10})\s*$", text, re.MULTILINE
        )
    ]


def read_seccomp(survey: Survey) -> Iterator[Fact]:
    see = f"grep Seccomp {STATUS}"
    status = survey.host.read(STATUS) or ""
    seccomp = parse_seccomp(status)
    if seccomp is None:
        why = _("/proc/self/status does not tell")
        yield unknown_fact("kernel.seccomp", why, read_from=STATUS, see_yourself=see)
        return
    mode, filters = seccomp
    text = {0: _("none"), 1: _("strict: only what was open before")}.get(mode) or (
        ngettext("{count} filter", "{count} filters", filters).format(count=filters) if filters else _("a filter")
    )
    yield make_fact(
        "kernel.seccomp",
        mode,
        text,
        "info" if mode else "ok",
        read_from=STATUS,
        raw=lines_with("^Seccomp", status),
        see_yourself=see,
        meaning=_("Containers and services put it around their programs. It may refuse what CMA needs: that is tried.")
        if mode
        else _("No system call is kept from programs here."),
    )


def read_ptrace(survey: Survey) -> Iterator[Fact]:
    see = f"grep Cap {STATUS}"
    status = survey.host.read(STATUS) or ""
    held = holds(CAP_SYS_PTRACE, "CapEff", status)
    if held is None:
        yield unknown_fact("kernel.ptrace", _("/proc/self/status does not tell"), read_from=STATUS, see_yourself=see)
        return
    possible = holds(CAP_SYS_PTRACE, "CapBnd", status)
    text = _("held") if held else _("not held, root here has it") if possible else _("not held, not even by root here")
    yield make_fact(
        "kernel.ptrace",
        held,
        text,
        read_from=STATUS,
        raw=lines_with("^Cap(Eff|Bnd)", status),
        see_yourself=see,
        meaning=_("mpiwizard may do here what jobs of ordinary users may not: keep that in mind where Yama is 2.")
        if held
        else _("Ranks of one user need it only where Yama is 2, or where a container asks for it."),
    )


def read_userns(survey: Survey) -> Iterator[Fact]:
    see = f"cat {UID_MAP}"
    text = survey.host.read(UID_MAP)
    if text is None:
        why = _("there is no /proc/self/uid_map")
        yield unknown_fact("kernel.userns", why, read_from=UID_MAP, see_yourself=see)
        return
    entries = parse_uid_map(text)
    if text.strip() and not entries:
        yield unknown_fact(
            "kernel.userns", _("its lines have another shape"), read_from=UID_MAP, raw=text, see_yourself=see
        )
        return
    own = entries != [_ALL_USERS]
    yield make_fact(
        "kernel.userns",
        own,
        _("one of our own") if own else _("the box's"),
        read_from=UID_MAP,
        raw=text.strip() or _("(empty)"),
        see_yourself=see,
        meaning=_("Ranks started inside share it. Ranks that get one each, a container per rank, cannot use CMA.")
        if own
        else "",
    )


PROBES = (
    Probe(("kernel.seccomp",), read_seccomp),
    Probe(("kernel.ptrace",), read_ptrace),
    Probe(("kernel.userns",), read_userns),
)
