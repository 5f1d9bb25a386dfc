"""What in PATH makes builds and jobs go wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpiwizard.core.detect.facts import Probe, Survey, make_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.detect.mounts import WINDOWS_TYPES, mount_of, read_mounts
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _, ngettext


def windows_folders(host: Host) -> list[str]:
    """Folders of PATH that lie on Windows drives."""
    mounts = read_mounts(host)
    folders = []
    for folder in host.environment.get("PATH", "").split(":"):
        mount = mount_of(mounts, folder)
        if re.match(r"/mnt/[a-z](/|$)", folder) or (mount is not None and mount.type in WINDOWS_TYPES):
            folders.append(folder)
    return folders


def read_path(survey: Survey) -> Iterator[Fact]:
    """Only under WSL, where Windows adds its own folders to PATH."""
    if survey.found.value("platform.layer") not in ("wsl1", "wsl2"):
        return
    folders = windows_folders(survey.host)
    blanks = sum(" " in folder for folder in folders)
    text = ngettext("{count} entry", "{count} entries", len(folders)).format(count=len(folders))
    if blanks:
        text += ", " + ngettext("{count} with blanks", "{count} with blanks", blanks).format(count=blanks)
    yield make_fact(
        "path.windows",
        folders,
        text if folders else _("none"),
        "attention" if folders else "ok",
        read_from="$PATH",
        see_yourself="echo \"$PATH\" | tr ':' '\\n' | grep /mnt",
        meaning=_("configure may find programs of Windows there, and some rules of make break at blanks.")
        if folders
        else "",
        action=_("mpiwizard builds with a PATH without them; your shell stays as it is.") if folders else "",
        claims=(10,),
    )


PROBES = (Probe(("path.windows",), read_path, ("platform.layer",)),)
