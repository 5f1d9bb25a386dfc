"""Free space and kind of file system where Open MPI would be built and installed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from mpiwizard.core.detect.disk import free_space
from mpiwizard.core.detect.facts import Probe, Survey, make_fact, unknown_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.detect.mounts import NETWORK_TYPES, WINDOWS_TYPES, Mount, mount_of, nearest_existing, read_mounts
from mpiwizard.core.format import size
from mpiwizard.core.i18n import _

LEAST_TO_BUILD = 300_000_000  # bytes; source and objects of a lean Open MPI 4.1.4 took 240 MB
LEAST_TO_INSTALL = 40_000_000  # bytes; a lean Open MPI 4.1.4 took 25 MB


def read_storage(survey: Survey) -> Iterator[Fact]:
    prefix = survey.prefix or f"{survey.home}/mpi"
    yield _storage_fact(survey, "storage.prefix", prefix, LEAST_TO_INSTALL)
    yield _storage_fact(survey, "storage.build", str(survey.folders.runs), LEAST_TO_BUILD)


def _storage_fact(survey: Survey, fact_id: str, path: str, least: int) -> Fact:
    host = survey.host
    existing = nearest_existing(host, path)
    quoted = shlex.quote(existing)
    see = f"df -h {quoted}; findmnt -T {quoted}"
    mount = mount_of(read_mounts(host), existing)
    space = free_space(host, existing)
    if space is None or mount is None:
        why = _("df gave no answer") if space is None else _("/proc/self/mountinfo does not tell")
        return unknown_fact(fact_id, why, see_yourself=see)
    state, meaning, action = _judge(mount, building=fact_id == "storage.build")
    if space.free < least and state != "problem":
        state = "problem"
        meaning = _("At least {least} are needed.").format(least=size(least))
        action = _("Make room, or choose another folder.")
    return make_fact(
        fact_id,
        {"path": path, "free": space.free, "type": mount.type},
        _("{free} free on {type}, {path}").format(free=size(space.free), type=mount.type, path=path),
        state,
        read_from=_("df and /proc/self/mountinfo for {folder}").format(folder=existing),
        see_yourself=see,
        meaning=meaning,
        action=action,
        claims=(10,) if mount.type in WINDOWS_TYPES else (),
    )


def _judge(mount: Mount, building: bool) -> tuple[str, str, str]:
    """State, meaning and action for a kind of file system."""
    elsewhere = _("Set XDG_STATE_HOME to a local folder.") if building else _("Choose a local folder with --prefix.")
    if "ro" in mount.options:
        return "problem", _("Nothing can be written here."), elsewhere
    if "noexec" in mount.options:
        return "problem", _("No program can be started from here, and configure starts many."), elsewhere
    if mount.type in WINDOWS_TYPES:
        return (
            "attention",
            _("A drive of Windows or of the host: many times slower, with rights of its own."),
            elsewhere,
        )
    if mount.type in NETWORK_TYPES and building:
        return "attention", _("A network drive: thousands of small files take their time."), elsewhere
    if mount.type in NETWORK_TYPES:
        return "attention", _("A network drive: right for a cluster, but every start reads from it."), ""
    if mount.type == "tmpfs":
        return "attention", _("It lives in memory: gone after a restart, and missing from what programs may use."), ""
    return "ok", "", ""


PROBES = (Probe(("storage.prefix", "storage.build"), read_storage),)
