"""Drives that do not answer: a single look at one would hold up whoever takes it, so they are found first.

A server that is down, a laptop that left the network, a hanging helper of FUSE: the kernel then lets a
program wait for good, and often nobody may end it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial

from mpiwizard.core.detect.facts import Probe, Survey, at_once, make_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.detect.mounts import Mount, is_below, may_hang, parse_mountinfo, read_mounts
from mpiwizard.core.host import Host, Result
from mpiwizard.core.i18n import _

PATIENCE = 0.5  # seconds a drive may take to tell what it is; one that is well takes a few milliseconds
MOST = 32  # drives that are asked; a login node can have hundreds
_LISTED = ("/opt", "/usr/local")  # folders whose every folder detection looks into
_LISTS = ("PATH", "LD_LIBRARY_PATH", "MODULEPATH")  # variables with folders that detection looks into


def silent_mounts(survey: Survey) -> tuple[str, ...]:
    """Where drives are mounted that detection would look at and that do not answer. It takes no longer than a second.

    The drives are asked at the same time, by a program each, which can be left behind.
    """
    points = _asked(survey)
    questions = [partial(_ask_drive, survey.host, point) for point in points]
    answers = at_once(questions, PATIENCE + 0.3) if points else []
    return tuple(point for point, answer in zip(points, answers, strict=True) if answer.timed_out)


def _asked(survey: Survey) -> list[str]:
    """The drives that might not answer, of those detection would look at."""
    mounts = [mount for mount in read_mounts(survey.host) if may_hang(mount) and mount.point != "/"]
    places = _places(survey) if mounts else []
    return list(dict.fromkeys(mount.point for mount in mounts if _matters(mount, places)))[:MOST]


def _matters(mount: Mount, places: list[str]) -> bool:
    return any(is_below(place, mount.point) for place in places) or any(
        is_below(mount.point, folder) for folder in _LISTED
    )


def _places(survey: Survey) -> list[str]:
    environment = survey.host.environment
    named = [survey.home, survey.prefix, environment.get("TMPDIR", ""), survey.wishes.archive]
    listed = [folder for variable in _LISTS for folder in environment.get(variable, "").split(":")]
    own = [str(survey.folders.state), str(survey.folders.cache), str(survey.folders.config)]
    return [place for place in (*named, *listed, *own) if place.startswith("/")]


def _ask_drive(host: Host, point: str) -> Result:
    """What kind of file system it is: the kernel asks the drive. PATH itself may lie on one that is silent."""
    plain = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    return host.run(["stat", "-f", "-c", "%T", point], timeout=PATIENCE, environment=plain, grace=0.05)


def read_silent(survey: Survey) -> Iterator[Fact]:
    path = "/proc/self/mountinfo"
    points = survey.silent
    if not points:
        see = "findmnt -t nfs,nfs4,cifs,9p,fuse"
        yield make_fact("storage.silent", [], _("none"), "ok", read_from=path, see_yourself=see)
        return
    text = survey.host.read(path) or ""
    lines = (line for line in text.split("\n") for mount in parse_mountinfo(line) if mount.point in points)
    words = " ".join(map(shlex.quote, points))
    yield make_fact(
        "storage.silent",
        list(points),
        ", ".join(points),
        "attention",
        read_from=f"{path}, stat -f -c %T {words}",
        raw="\n".join(lines),
        see_yourself=f"timeout 2 stat -f {words} || echo silent",
        meaning=_(
            "Whoever looks there waits, perhaps for good: a shell that searches PATH, configure, mpirun. "
            "Detection looked at nothing there."
        ),
        action=_(
            "Bring the drive back, take its folders out of your variables, or detach it: umount -l {words}"
        ).format(words=words),
    )


PROBES = (Probe(("storage.silent",), read_silent),)
