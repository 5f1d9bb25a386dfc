"""MCA parameters that are set already: by the person for every job, and by files of an installed MPI."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from mpiwizard.core.detect.facts import Probe, Survey, make_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

VARIABLES = ("OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_")
PERSONAL = (".openmpi/mca-params.conf", ".pmix/mca-params.conf", ".prte/mca-params.conf")  # 5.x reads the last two
FILES = (  # the names Open MPI, PMIx and PRRTE look for in etc; an override file outranks the command line
    "openmpi-mca-params.conf", "openmpi-mca-params-override.conf", "pmix-mca-params.conf", "prte-mca-params.conf",
)  # fmt: skip
MOST_SHOWN = 3
_FOLDER = re.compile(r"(openmpi|pmix|prrte|prte)[\w.-]*$")  # of /etc, such as Debian's openmpi, Fedora's openmpi-x86_64
_SELECTORS = {"ucx": ("pml",), "ofi": ("pml", "mtl")}  # frameworks whose choice decides about a library
_FABRICS = {"ucx": ("InfiniBand", "RoCE", "eRDMA"), "ofi": ("EFA", "Omni-Path", "irdma")}  # the library for each


def parse_parameters(text: str) -> dict[str, str]:
    """The settings of an MCA parameter file: `name = value`, comments after #."""
    settings = {}
    for line in text.splitlines():
        name, equals, value = line.partition("#")[0].partition("=")
        if equals and name.strip():
            settings[name.strip()] = value.strip()
    return settings


def read_file(host: Host, path: str) -> list[dict[str, str]]:
    settings = parse_parameters(host.read(path) or "")
    return [{"where": path, "name": name, "value": value} for name, value in settings.items()]


def _lines(settings: list[dict[str, str]]) -> str:
    return "\n".join(f"{one['where']}: {one['name']} = {one['value']}" for one in settings)


def _shown(settings: list[dict[str, str]]) -> str:
    shown = ", ".join(f"{one['name']} = {one['value']}" for one in settings[:MOST_SHOWN])
    if len(settings) > MOST_SHOWN:
        shown += " " + _("and {count} more").format(count=len(settings) - MOST_SHOWN)
    return shown or _("none")


def read_settings(survey: Survey) -> Iterator[Fact]:
    """What the person has set for every job, in the environment and in the home folder."""
    host = survey.host
    paths = [f"{survey.home}/{path}" for path in PERSONAL]
    settings = [
        {"where": f"${name}", "name": name.partition("_MCA_")[2], "value": value}
        for name, value in sorted(host.environment.items())
        if name.startswith(VARIABLES)
    ]
    settings += [setting for path in paths for setting in read_file(host, path)]
    yield make_fact(
        "mpi.settings",
        settings,
        _shown(settings),
        "attention" if settings else "info",
        read_from=", ".join((_("environment"), *(path for path in paths if host.exists(path)))),
        raw=_lines(settings),
        see_yourself=f"env | grep _MCA_; cat {shlex.quote(paths[0])}",
        meaning=_("They change every job of yours, also those that measure the new installation.") if settings else "",
        action=_("mpiwizard leaves the variables out when it measures; a file in your home stays in force.")
        if settings
        else "",
    )


def parameter_files(survey: Survey) -> list[str]:
    """Parameter files of the installations found, without those of one prefix twice."""
    host = survey.host
    folders = []
    for installation in survey.found.value("mpi.installations", []):
        prefix = installation["prefix"]
        folders.append(f"{prefix}/etc")
        if prefix == "/usr" or prefix.startswith("/usr/lib"):  # a distribution's: its files are in /etc
            folders += ["/etc", *(f"/etc/{name}" for name in host.list("/etc") if _FOLDER.match(name))]
    return list(dict.fromkeys(f"{folder}/{name}" for folder in folders for name in FILES))


def excludes(settings: dict[str, str], library: str) -> bool:
    """Whether these parameters keep Open MPI from using UCX or libfabric."""
    return any(_leaves_out(settings.get(framework, ""), library, framework) for framework in _SELECTORS[library])


def _leaves_out(value: str, library: str, framework: str) -> bool:
    names = [name.strip() for name in value.lstrip("^").split(",") if name.strip()]
    wanted = "cm" if framework == "pml" and library == "ofi" else library  # the pml that hands on to an mtl
    return bool(names) and (wanted in names) == value.startswith("^")


def read_defaults(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    by_file = {path: found for path in parameter_files(survey) if (found := read_file(host, path))}
    settings = [setting for found in by_file.values() for setting in found]
    lost = _lost_fabrics(survey, by_file)
    meaning, action = "", ""
    if lost:
        meaning = _("{fabrics} is here, and {path} turns it off: messages would go through TCP, many times slower.")
        meaning = meaning.format(fabrics=", ".join(lost), path=next(iter(lost.values()))[0])
        action = _("For one job: mpirun {options} …; an installation by mpiwizard does not read this file.").format(
            options=next(iter(lost.values()))[1]
        )
    elif any(excludes({one["name"]: one["value"] for one in found}, "ucx") for found in by_file.values()):
        meaning = _("They turn fast fabrics off, and none is here. Only the installations they belong to read them.")
    elif settings:
        meaning = _("Only the installations they belong to read them; a command line outranks them.")
    yield make_fact(
        "mpi.defaults",
        settings,
        _shown(settings),
        "attention" if lost else "info",
        read_from=", ".join(by_file),
        raw=_lines(settings),
        see_yourself="grep -v '^#' /etc/openmpi*/openmpi-mca-params.conf $(dirname $(dirname $(command -v mpirun)))"
        "/etc/openmpi-mca-params.conf",
        meaning=meaning,
        action=action,
        rests_on=("network.fabric",) if lost else (),
    )


def _lost_fabrics(survey: Survey, by_file: dict[str, list[dict[str, str]]]) -> dict[str, tuple[str, str]]:
    """Kinds of fabric that are here and turned off, each with the file that does it and what undoes it for a job."""
    lost: dict[str, tuple[str, str]] = {}
    options = {"ucx": "--mca pml ucx", "ofi": "--mca pml cm --mca mtl ofi"}
    for device in survey.found.value("network.fabric", []):
        kind = str(device).rpartition(": ")[2]
        for library, kinds in _FABRICS.items():
            for path, found in by_file.items():
                if kind in kinds and excludes({one["name"]: one["value"] for one in found}, library):
                    lost.setdefault(kind, (path, options[library]))
    return lost


PROBES = (
    Probe(("mpi.settings",), read_settings),
    Probe(("mpi.defaults",), read_defaults, ("mpi.installations", "network.fabric")),
)
