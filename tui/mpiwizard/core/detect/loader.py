"""LD_LIBRARY_PATH: whose libraries the loader takes first, before those a program was built with."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, to_builtins

from mpiwizard.core.detect.facts import Probe, Survey, make_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.detect.mounts import is_below
from mpiwizard.core.i18n import _

# Libraries of MPI and of what Open MPI stands on: another one of these makes jobs crash, or take other paths.
_CONCERNED = re.compile(
    r"lib(?:mpi|mpi_cxx|mpi_mpifh|mpich|mpifort|open-pal|open-rte|pmix|prrte|ucp|ucs|uct|ucm|fabric|hwloc|"
    r"event(?:_core|_pthreads)?|psm2|rdmacm|ibverbs|hcoll)\.so(?:\.\d+)*"
)


class Entry(Struct, frozen=True):
    """One entry of LD_LIBRARY_PATH. `libraries` are the names, without .so, of those that matter to MPI."""

    folder: str  # "" is the current folder
    exists: bool
    libraries: list[str]


def read_entries(survey: Survey) -> list[Entry]:
    """The entries in their order, each once; none when the variable is not set."""
    host = survey.host
    value = host.environment.get("LD_LIBRARY_PATH", "")
    entries = []
    for folder in dict.fromkeys(re.split("[:;]", value)) if value else ():  # both separate: ld.so(8)
        names = host.list(folder) if folder.startswith("/") else ()
        found = {name.partition(".so")[0] for name in names if _CONCERNED.fullmatch(name)}
        exists = not folder.startswith("/") or bool(names) or host.exists(folder)
        entries.append(Entry(folder, exists, sorted(found)))
    return entries


def read_libraries(survey: Survey) -> Iterator[Fact]:
    entries = read_entries(survey)
    see = "echo \"$LD_LIBRARY_PATH\" | tr ':' '\\n'"
    if not entries:
        yield make_fact("environment.libraries", [], _("not set"), "ok", read_from="$LD_LIBRARY_PATH", see_yourself=see)
        return
    own = {f"{survey.prefix}/lib", f"{survey.prefix}/lib64"} if survey.prefix else set()
    foreign = [entry for entry in entries if entry.libraries and entry.folder.rstrip("/") not in own]
    current = [entry for entry in entries if not entry.folder.startswith("/")]
    silent = [entry for entry in entries if any(is_below(entry.folder, point) for point in survey.silent)]
    missing = [entry for entry in entries if not entry.exists and entry not in silent]
    meanings = []
    if foreign:
        shown = "; ".join(f"{entry.folder}: {', '.join(entry.libraries)}" for entry in foreign)
        meanings.append(
            _(
                "Programs take these libraries there, whatever they were linked with, since the variable outranks "
                "the run path that mpicc writes: {libraries}."
            ).format(libraries=shown)
        )
    if current:
        meanings.append(_("An entry that is empty or does not start with / depends on the folder one is in."))
    if silent:
        folders = ", ".join(entry.folder for entry in silent)
        meanings.append(
            _("Every program that starts looks there and waits, since the drive does not answer: {folders}.").format(
                folders=folders
            )
        )
    if missing:
        folders = ", ".join(entry.folder for entry in missing)
        meanings.append(
            _("These do not exist, which costs a look for each library: {folders}.").format(folders=folders)
        )
    text = ", ".join(entry.folder or _("the current folder") for entry in entries)
    yield make_fact(
        "environment.libraries",
        to_builtins(entries),
        text,
        "attention" if foreign or current or silent else "info",
        read_from="$LD_LIBRARY_PATH",
        raw=f"LD_LIBRARY_PATH={survey.host.environment['LD_LIBRARY_PATH']}",
        see_yourself=see,
        meaning=" ".join(meanings),
        action=_(
            "mpiwizard builds without the variable, and puts the new libraries first when it measures; in your shell: "
            "unset LD_LIBRARY_PATH"
        )
        if foreign or current or silent
        else "",
    )


PROBES = (Probe(("environment.libraries",), read_libraries),)
