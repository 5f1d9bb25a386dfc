"""What in PATH, and in the names of the folders of a build, makes builds and jobs go wrong."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from msgspec import Struct, to_builtins

from mpiwizard.core.detect.facts import Probe, Survey, ask, make_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.detect.mounts import WINDOWS_TYPES, may_hang, mount_of, read_mounts
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _, ngettext

# In the path of a build or of an installation, anything else breaks make (blank, #, $, :), the linker's -Wl,
# lists (comma) or a shell in some makefile.
UNSAFE = re.compile(r"[^\w/.+@-]")


def windows_folders(host: Host) -> list[str]:
    """Folders of PATH that lie on Windows drives."""
    mounts = read_mounts(host)
    folders = []
    for folder in host.environment.get("PATH", "").split(":"):
        mount = mount_of(mounts, folder)
        if re.match(r"/mnt/[a-z](/|$)", folder) or (
            mount is not None and mount.type in WINDOWS_TYPES and mount.point != "/"
        ):
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
        raw="\n".join(folders),
        see_yourself="echo \"$PATH\" | tr ':' '\\n' | grep /mnt",
        meaning=_("configure may find programs of Windows there, and some rules of make break at blanks.")
        if folders
        else "",
        action=_("mpiwizard builds with a PATH without them; your shell stays as it is.") if folders else "",
        claims=(10,),
    )


class Trap(Struct, frozen=True):
    """A folder that makes something go wrong: `kind` is blank, current, relative, writable or unsafe."""

    folder: str
    kind: str
    where: str  # PATH, or the fact that tells of the place


def traps_in_names(path: str, windows: Iterable[str]) -> Iterator[Trap]:
    """What the entries of PATH tell by themselves; those of Windows are another fact's."""
    skipped = set(windows)
    for folder in dict.fromkeys(path.split(":")) if path else ():
        if folder in skipped:
            continue
        if folder in ("", "."):
            yield Trap(folder, "current", "PATH")
        elif not folder.startswith("/"):
            yield Trap(folder, "relative", "PATH")
        elif re.search(r"\s", folder):
            yield Trap(folder, "blank", "PATH")


def parse_modes(text: str) -> list[str]:
    """The folders anybody may write to, of what `stat -L -c '%a %n'` prints."""
    return [path for mode, path in re.findall(r"^([0-7]{1,5}) (/.*)$", text, re.MULTILINE) if int(mode, 8) & 0o002]


def _writable(survey: Survey, windows: Iterable[str]) -> tuple[list[Trap], str]:
    """Folders of PATH, on drives of our own, that anybody may write to, and what was printed about them."""
    mounts, skipped = read_mounts(survey.host), set(windows)
    folders = [
        folder
        for folder in dict.fromkeys(survey.host.environment.get("PATH", "").split(":"))
        if folder.startswith("/")
        and folder not in skipped
        and not ((mount := mount_of(mounts, folder)) and may_hang(mount))
        and survey.host.exists(folder)
    ]
    output = ask(survey.host, "stat", "-L", "-c", "%a %n", *folders).output if folders else ""
    writable = parse_modes(output)
    raw = "\n".join(line for line in output.splitlines() if line.partition(" ")[2] in writable)
    return [Trap(folder, "writable", "PATH") for folder in writable], raw


def read_traps(survey: Survey) -> Iterator[Fact]:
    windows = windows_folders(survey.host)
    path = survey.host.environment.get("PATH", "")
    writable, modes = _writable(survey, windows)
    places = {"storage.prefix": survey.prefix or f"{survey.home}/mpi", "storage.build": str(survey.folders.state)}
    unsafe = [Trap(place, "unsafe", fact_id) for fact_id, place in places.items() if UNSAFE.search(place)]
    traps = [*unsafe, *writable, *traps_in_names(path, windows)]
    see = "echo \"$PATH\" | tr ':' '\\n' | xargs -d '\\n' ls -ldL"
    if not traps:
        yield make_fact("path.blanks", [], _("none"), "ok", read_from="$PATH", see_yourself=see)
        return
    kinds = [kind for kind in _KINDS if any(trap.kind == kind for trap in traps)]
    named = [trap for trap in traps if trap.where != "PATH"]
    states = {_KINDS[kind] for kind in kinds}
    yield make_fact(
        "path.blanks",
        to_builtins(traps),
        ", ".join(dict.fromkeys(trap.folder or _("an empty entry") for trap in traps)),
        next(state for state in ("problem", "attention", "info") if state in states),
        read_from="$PATH, stat -L -c '%a %n'" if writable else "$PATH",
        raw="\n".join([*(trap.folder for trap in named), *filter(None, [modes]), f"PATH={path}"]),
        see_yourself=see,
        meaning=" ".join(_meaning(kind) for kind in kinds),
        action=_mend(traps),
    )


_KINDS = {  # kind of trap -> state of the fact, the worst first
    "unsafe": "problem", "writable": "attention", "current": "attention", "relative": "attention", "blank": "info",
}  # fmt: skip


def _meaning(kind: str) -> str:
    return {
        "unsafe": _("make and the linker break at blanks and the like in the path of a build or of an installation."),
        "writable": _("Anybody on this box can put a program into such a folder of PATH, which you would then run."),
        "current": _(
            "An entry of PATH stands for the current folder: a build can take a file that lies there for a tool."
        ),
        "relative": _("An entry of PATH depends on the current folder: what is found changes during a build."),
        "blank": _("Some rules of make break at blanks in the path of a tool."),
    }[kind]


def _mend(traps: list[Trap]) -> str:
    """What to do about the first, and worst, of the traps."""
    trap = traps[0]
    if trap.where == "storage.prefix":
        return _("Choose a folder without it: --prefix")
    if trap.where == "storage.build":
        return _("Set XDG_STATE_HOME to a folder without it.")
    if trap.kind == "writable":
        return f"chmod o-w {shlex.quote(trap.folder)}"
    return _("Take it out of PATH, where your shell sets it: ~/.profile, ~/.bashrc.")


PROBES = (
    Probe(("path.windows",), read_path, ("platform.layer",)),
    Probe(("path.blanks",), read_traps),
)
