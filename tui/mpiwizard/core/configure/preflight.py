"""What must hold before a plan may start: tools, prefix, folders, room on the disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from mpiwizard.core.configure.model import Plan
from mpiwizard.core.context import Context, home_folder
from mpiwizard.core.detect.hazards import UNSAFE
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.format import size
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

_LONGEST_PATH = 1024  # characters; PATH_MAX is 4096 bytes, and the installation goes deeper
_LONGEST_NAME = 255  # bytes, NAME_MAX of every common file system
_OURS = "share/mpiwizard/manifest.txt"  # what an installation of ours begins with (core/build/manifest.py)


def check_plan(context: Context, machine: Machine, plan: Plan) -> None:
    """Raise WizardError for the first thing that would make the plan fail; nothing is left written.

    USAGE for a prefix that could never work, NOT_POSSIBLE_HERE for what this box lacks.
    """
    checked_prefix(plan.prefix, context.host)
    _check_tools(machine)
    _check_folders(context)
    _check_apart(context, plan.prefix)
    check_prefix_is_free(context.host, plan.prefix)
    _check_writable(context, plan.prefix)
    _check_room(context, plan)
    _check_storage(machine, plan)


def checked_prefix(text: str, host: Host) -> str:
    """The prefix as an absolute path without `~`, `.` or `..`. Raises WizardError (USAGE)."""
    path = str(home_folder(host.environment)) + text[1:] if text == "~" or text.startswith("~/") else text
    if not path.startswith("/"):
        message = _("The prefix {prefix} is not an absolute path; give one that starts with / or ~/.")
        raise WizardError(message.format(prefix=_shown(text)), ExitCode.USAGE)
    if bad := UNSAFE.search(path):
        message = _(
            "The prefix {prefix} holds {character}, which breaks make or the linker; "
            "use letters, digits and / . _ + @ - only."
        )
        raise WizardError(message.format(prefix=_shown(text), character=_character(bad[0])), ExitCode.USAGE)
    path = os.path.normpath(path).replace("//", "/")
    if len(path) > _LONGEST_PATH or any(len(os.fsencode(part)) > _LONGEST_NAME for part in path.split("/")):
        raise WizardError(_("The prefix {prefix} is too long for a path.").format(prefix=_shown(text)), ExitCode.USAGE)
    if path == "/":
        raise WizardError(
            _("The prefix / would mix Open MPI with the system; give a folder of its own."), ExitCode.USAGE
        )
    return path


def _shown(text: str) -> str:
    return repr(text) if len(text) <= 80 else repr(text[:77]) + "…"


def _character(character: str) -> str:
    return {" ": _("a blank"), ":": _("a colon")}.get(character, repr(character))


def _check_tools(machine: Machine) -> None:
    for fact in machine.facts:
        if fact.group == "tools" and (fact.state == "problem" or _is_missing_shell(fact)):
            message = _("{label}: {text}, and nothing can be built without it; what to do: {action}")
            raise WizardError(
                message.format(label=fact.label, text=fact.text, action=fact.action), ExitCode.NOT_POSSIBLE_HERE
            )


def _is_missing_shell(fact: Fact) -> bool:
    """configure goes wrong with some other shells, and only bash was tried."""
    return fact.id == "tool.bash" and fact.value is None and bool(fact.action)


def _check_folders(context: Context) -> None:
    """Ours: the state folder, where make works, must be free of what make cannot bear; both must be writable."""
    state, cache = str(context.folders.state), str(context.folders.cache)
    if bad := UNSAFE.search(state):
        message = _(
            "mpiwizard would build in {folder}, but {character} in a path breaks make; "
            "set XDG_STATE_HOME to a folder without it."
        )
        raise WizardError(message.format(folder=state, character=_character(bad[0])), ExitCode.NOT_POSSIBLE_HERE)
    for variable, folder in (("XDG_STATE_HOME", state), ("XDG_CACHE_HOME", cache)):
        if context.host.is_real and (reason := _why_not_writable(folder)):
            message = _("mpiwizard cannot write to {folder} ({reason}); set {variable} to a folder of yours.")
            raise WizardError(
                message.format(folder=folder, reason=reason, variable=variable), ExitCode.NOT_POSSIBLE_HERE
            )


def _check_apart(context: Context, prefix: str) -> None:
    """Raise WizardError (USAGE) when prefix and a folder of ours are one in the other: uninstall would remove both."""
    place = Path(context.host.resolve(prefix))
    for folder in (context.folders.state, context.folders.cache, context.folders.config):
        own = Path(context.host.resolve(str(folder)))
        if place.is_relative_to(own) or own.is_relative_to(place):
            message = _("The prefix {prefix} and mpiwizard's own folder {folder} lie one in the other; give another.")
            raise WizardError(message.format(prefix=prefix, folder=folder), ExitCode.USAGE)


def check_prefix_is_free(host: Host, prefix: str) -> None:
    """Raise WizardError (NOT_POSSIBLE_HERE) when the prefix holds what mpiwizard did not put there."""
    if host.exists(prefix) and host.is_real and not Path(prefix).is_dir():
        message = _("The prefix {prefix} is a file; give a folder with --prefix.")
        raise WizardError(message.format(prefix=prefix), ExitCode.NOT_POSSIBLE_HERE)
    if host.list(prefix) and not host.exists(f"{prefix}/{_OURS}"):
        message = _(
            "The folder {prefix} holds files that mpiwizard did not put there; give an empty one with --prefix."
        )
        raise WizardError(message.format(prefix=prefix), ExitCode.NOT_POSSIBLE_HERE)


def _check_writable(context: Context, prefix: str) -> None:
    if not context.host.is_real or not (reason := _why_not_writable(prefix)):
        return
    message = _("The prefix {prefix} cannot be written ({reason}); give a folder of yours with --prefix{command}.")
    user = context.host.environment.get("USER") or str(os.getuid())
    command = _(", or make it first: sudo install -d -o {user} {prefix}").format(user=user, prefix=prefix)
    raise WizardError(
        message.format(prefix=prefix, reason=reason, command=command if os.getuid() else ""),
        ExitCode.NOT_POSSIBLE_HERE,
    )


def _why_not_writable(path: str) -> str:
    """Why no folder can be made at or below a path, found by making one; empty when it can be."""
    existing = _existing(path)
    try:
        with TemporaryDirectory(prefix=".mpiwizard-", dir=existing):
            return ""
    except OSError as error:
        return f"{existing}: {error.strerror}"


def _existing(path: str) -> Path:
    """The path, or the nearest folder above it that exists."""
    try:
        return next(place for place in (Path(path), *Path(path).parents) if os.path.lexists(place))
    except OSError:
        return Path("/")


def _check_room(context: Context, plan: Plan) -> None:
    if not context.host.is_real:
        return
    needed: dict[int, tuple[Path, int]] = {}  # device -> a folder on it, bytes
    for path, count in ((str(context.folders.runs), plan.disk), (plan.prefix, plan.disk_kept)):
        existing = _existing(path)
        device = existing.stat().st_dev
        place, sum_so_far = needed.get(device, (existing, 0))
        needed[device] = (place, sum_so_far + count)
    for place, count in needed.values():
        free = shutil.disk_usage(place).free
        if free < count:
            message = _(
                "The disk of {place} has {free} free, but {needed} are needed; free some space, or choose "
                "another disk with --prefix for the installation, XDG_STATE_HOME for the build."
            )
            raise WizardError(
                message.format(place=place, free=size(free), needed=size(count)),
                ExitCode.NOT_POSSIBLE_HERE,
            )


def _check_storage(machine: Machine, plan: Plan) -> None:
    """What detection said of the file systems, such as that programs cannot be started from there."""
    for fact in (machine.fact("storage.build"), machine.fact("storage.prefix")):
        folder = fact.value["path"] if isinstance(fact.value, dict) else ""
        concerns = fact.id == "storage.build" or Path(plan.prefix).is_relative_to(folder or "/nowhere")
        if fact.state == "problem" and concerns:
            message = _("{folder} cannot be used: {meaning} {action}")
            raise WizardError(
                message.format(folder=folder, meaning=fact.meaning, action=fact.action),
                ExitCode.NOT_POSSIBLE_HERE,
            )
