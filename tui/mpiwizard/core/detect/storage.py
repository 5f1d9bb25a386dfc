"""The file systems where Open MPI would be built and installed, and where its jobs keep temporary files."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from mpiwizard.core.detect.disk import Room, Space, room_at
from mpiwizard.core.detect.facts import Probe, Survey, make_fact, unknown_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.detect.mounts import (
    LINKLESS_TYPES,
    NETWORK_TYPES,
    SHARED_TYPES,
    WINDOWS_TYPES,
    Mount,
    is_below,
    mount_of,
    nearest_existing,
    parse_mountinfo,
)
from mpiwizard.core.format import size
from mpiwizard.core.i18n import _

MOUNTS = "/proc/self/mountinfo"
NEARLY_FULL = 0.9  # from here on it is said how full it is
_ORDER = ("problem", "attention", "info")  # the worst finding decides about a place
AMPLE = 3  # times the least: with less, somebody else's files can fill it before we are done


class Need(Struct, frozen=True):
    """What a folder must offer, and how to choose another one."""

    space: int  # bytes
    files: int  # inodes
    elsewhere: str


class Finding(Struct, frozen=True):
    """One thing that is wrong, or worth knowing, about a place."""

    state: str
    meaning: str
    action: str = ""


def needs() -> dict[str, Need]:
    """By fact. A lean Open MPI 4.1.4 took 240 MB in 15,308 files to build, and 25 MB in 624 files when installed."""
    return {
        "storage.prefix": Need(40_000_000, 1_000, _("Choose a local folder with --prefix.")),
        "storage.build": Need(300_000_000, 20_000, _("Set XDG_STATE_HOME to a local folder.")),
        "storage.temporary": Need(10_000_000, 200, _("Set TMPDIR to a local folder, such as /tmp.")),
    }


def read_prefix(survey: Survey) -> Iterator[Fact]:
    yield _place_fact(survey, "storage.prefix", survey.prefix or f"{survey.home}/mpi")


def read_build(survey: Survey) -> Iterator[Fact]:
    yield _place_fact(survey, "storage.build", str(survey.folders.runs))


def temporary_folder(survey: Survey) -> tuple[str, str]:
    """The folder and the variable that names it, in the order in which Open MPI looks (opal_tmp_directory)."""
    for variable in ("TMPDIR", "TEMP", "TMP"):
        if folder := survey.host.environment.get(variable):
            return folder, variable
    return "/tmp", ""


def read_temporary(survey: Survey) -> Iterator[Fact]:
    path, variable = temporary_folder(survey)
    if variable and not (path.startswith("/") and (_is_silent(survey, path) or survey.host.exists(path))):
        yield make_fact(
            "storage.temporary",
            {"path": path, "free": None, "type": ""},
            _("{path} does not exist").format(path=path),
            "attention",
            read_from=f"${variable}",
            raw=f"{variable}={path}",
            see_yourself=f'ls -ld "${variable}"',
            meaning=_("mpirun keeps its session there, and stops when the folder cannot be made."),
            action=f"unset {variable}",
        )
        return
    yield _place_fact(survey, "storage.temporary", path, variable)


def _is_silent(survey: Survey, path: str) -> bool:
    return any(is_below(path, point) for point in survey.silent)


def _place_fact(survey: Survey, fact_id: str, path: str, variable: str = "") -> Fact:
    host = survey.host
    text = host.read(MOUNTS) or ""
    silent = _is_silent(survey, path)
    existing = path if silent else nearest_existing(host, path)
    quoted = shlex.quote(existing)
    see = f"df -h {quoted}; df -i {quoted}; findmnt -T {quoted}"
    mount = mount_of(parse_mountinfo(text), existing)
    if mount is None:
        return unknown_fact(fact_id, _("/proc/self/mountinfo does not tell"), read_from=MOUNTS, see_yourself=see)
    line = next((line for line in reversed(text.split("\n")) if parse_mountinfo(line) == (mount,)), "")
    if silent:
        return _silent_fact(fact_id, path, mount, line)
    room = room_at(host, existing)
    if room.space is None and fact_id != "storage.temporary":
        return unknown_fact(fact_id, _("df gave no answer"), read_from=f"df {quoted}", raw=line, see_yourself=see)
    findings = sorted(_findings(fact_id, mount, room, _in_container(survey)), key=lambda one: _ORDER.index(one.state))
    read_from = _("df and /proc/self/mountinfo for {folder}").format(folder=existing)
    return make_fact(
        fact_id,
        {"path": path, "free": room.space.free if room.space else None, "type": mount.type},
        _place_text(path, mount, room.space),
        findings[0].state if findings else "ok",
        read_from=f"${variable}, {read_from}" if variable else read_from,
        raw=f"{room.raw}\n{line}",
        see_yourself=see,
        meaning=" ".join(dict.fromkeys(finding.meaning for finding in findings)),
        action=next((finding.action for finding in findings if finding.action), ""),
        claims=(10,) if mount.type in WINDOWS_TYPES else (),
    )


def _place_text(path: str, mount: Mount, space: Space | None) -> str:
    if space is None:
        return _("{type}, {path}").format(type=mount.type, path=path)
    full = 1 - space.free / space.size if space.size else 1.0
    if full < NEARLY_FULL:
        return _("{free} free on {type}, {path}").format(free=size(space.free), type=mount.type, path=path)
    return _("{free} free on {type}, {full} % full, {path}").format(
        free=size(space.free), type=mount.type, full=int(full * 100), path=path
    )


def _silent_fact(fact_id: str, path: str, mount: Mount, line: str) -> Fact:
    return make_fact(
        fact_id,
        {"path": path, "free": None, "type": mount.type},
        _("{point} does not answer").format(point=mount.point),
        "problem" if fact_id != "storage.temporary" else "attention",
        read_from=f"{MOUNTS}, stat -f {shlex.quote(mount.point)}",
        raw=line,
        see_yourself=f"timeout 2 stat -f {shlex.quote(mount.point)} || echo silent",
        meaning=_("Whatever looks there waits, perhaps for good."),
        action=needs()[fact_id].elsewhere,
    )


def _in_container(survey: Survey) -> bool:
    return survey.found.value("platform.layer", "none") not in ("none", "wsl1", "wsl2")


def _findings(fact_id: str, mount: Mount, room: Room, container: bool) -> Iterable[Finding]:
    """All there is to say about a place, in no order."""
    need = needs()[fact_id]
    judge = _temporary_findings if fact_id == "storage.temporary" else _lasting_findings
    yield from judge(fact_id, mount, container)
    yield from _full(room.space, need.space, size, _("At least {least} are needed."), need)
    yield from _full(room.files, need.files, str, _("At least {least} more files must fit (inodes)."), need)
    if mount.type in NETWORK_TYPES and room.space is not None and fact_id != "storage.temporary":
        yield Finding("info", _("Your quota may allow less than what is free (quota -s)."))


def _full(space: Space | None, least: int, shown: Callable[[int], str], sentence: str, need: Need) -> Iterator[Finding]:
    if space is None or space.free >= least * AMPLE:
        return
    state = "problem" if space.free < least else "attention"
    yield Finding(
        state, sentence.format(least=shown(least)), _("Make room, or choose another folder.") + " " + need.elsewhere
    )


def _read_only(mount: Mount) -> bool:
    return "ro" in mount.options or "ro" in mount.super_options


def _lasting_findings(fact_id: str, mount: Mount, container: bool) -> Iterator[Finding]:
    """About the kind of file system under a build or an installation."""
    building, elsewhere = fact_id == "storage.build", needs()[fact_id].elsewhere
    if _read_only(mount):
        yield Finding("problem", _("Nothing can be written here."), elsewhere)
    if "noexec" in mount.options:
        meaning = _("No program can be started from here, and configure starts many.")
        if not building:
            meaning = _("No program can be started from here, mpirun neither.")
        yield Finding("problem", meaning, elsewhere)
    if mount.type in WINDOWS_TYPES:
        meaning = _("A drive of Windows or of the host: many times slower, with rights of its own.")
        yield Finding("attention", meaning, elsewhere)
    elif mount.type in SHARED_TYPES:
        meaning = _(
            "A folder that the host shares: slow for many small files, with rights of its own, and not every kind "
            "knows the symbolic links that an installation has."
        )
        yield Finding("attention", meaning, elsewhere)
    elif mount.type in NETWORK_TYPES and building:
        meaning = _("A network drive: thousands of small files take their time.")
        yield Finding("attention", meaning, elsewhere)
    elif mount.type in NETWORK_TYPES:
        meaning = _("A network drive: right for a cluster, but every start reads from it.")
        yield Finding("attention", meaning)
    elif mount.type in LINKLESS_TYPES:
        meaning = _("This file system has no symbolic links, and Open MPI's libraries and commands need them.")
        yield Finding("attention", meaning, elsewhere)
    elif mount.type == "tmpfs":
        meaning = _("It lives in memory: gone after a restart, and missing from what programs may use.")
        yield Finding("attention", meaning)
    elif mount.type in ("overlay", "aufs") and container:
        yield Finding("info", _("It belongs to the container, and is gone with it."))


def _temporary_findings(fact_id: str, mount: Mount, container: bool) -> Iterator[Finding]:
    """About the kind of file system under the session folders of mpirun: help-opal-shmem-mmap, help-prte-runtime."""
    elsewhere = needs()[fact_id].elsewhere
    if _read_only(mount):
        meaning = _("Nothing can be written here: configure finds no type of build, and mpirun cannot begin a session.")
        yield Finding("problem", meaning, elsewhere)
    if "noexec" in mount.options:
        yield Finding("info", _("That no program can be started from here disturbs neither configure nor mpirun."))
    if mount.type in NETWORK_TYPES:
        meaning = _(
            "A network drive: Open MPI warns of it, shared memory that is backed by a file there is slow, and "
            "hosts that share the folder get into each other's way."
        )
        yield Finding("attention", meaning, elsewhere)
    elif mount.type in WINDOWS_TYPES:
        meaning = _("A drive of Windows or of the host: mpirun cannot set the rights of its session folder there.")
        yield Finding("attention", meaning, elsewhere)


PROBES = (
    Probe(("storage.prefix",), read_prefix, ("platform.layer",)),
    Probe(("storage.build",), read_build, ("platform.layer",)),
    Probe(("storage.temporary",), read_temporary),
)
