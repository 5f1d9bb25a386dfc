"""MPI installations that are already on the box, and settings of theirs that would change every job."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from mpiwizard.core.detect.facts import Probe, Survey, ask, make_fact
from mpiwizard.core.detect.hazards import windows_folders
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

MOST = 12  # launchers that are asked; a cluster can have hundreds below /opt
PLACES = (  # patterns of prefixes; a star stands for one folder
    "/usr", "/usr/local", "/usr/local/*", "/usr/lib64/openmpi", "/usr/lib64/mpich", "/usr/lib64/mpi/gcc/*",
    "/usr/lib/*/openmpi", "/opt/*", "/opt/*/ompi", "/opt/amazon/*", "/opt/intel/oneapi/mpi/*",
)  # fmt: skip


def expand(host: Host, pattern: str) -> list[str]:
    """The folders a pattern stands for, in the order of their names."""
    if "*" not in pattern:
        return [pattern]
    before, _star, after = pattern.partition("*")
    folders = [f"{before}{name}{after}" for name in host.list(before.rstrip("/")) if not name.startswith(".")]
    return [found for folder in folders for found in expand(host, folder)]


def own_prefixes(survey: Survey) -> list[str]:
    """Prefixes mpiwizard has built into, as the plans of its runs tell."""
    prefixes = []
    runs = str(survey.folders.runs)
    for run in survey.host.list(runs):
        try:
            plan = json.loads(survey.host.read(f"{runs}/{run}/plan.json") or "")
            prefixes.append(str(plan["prefix"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return prefixes


def find_launchers(survey: Survey) -> list[str]:
    """Paths of mpirun, PATH's first; the same file is named once."""
    host = survey.host
    skipped = set(windows_folders(host))  # slow to look at, and no mpirun there is for us
    path = host.environment.get("PATH", "").split(":")
    on_path = [folder.rstrip("/") for folder in path if folder.startswith("/") and folder not in skipped]
    prefixes = [survey.prefix, f"{survey.home}/mpi", f"{survey.home}/mpi/*", *PLACES]
    elsewhere = [folder for pattern in prefixes if pattern for folder in expand(host, pattern)]
    launchers = [f"{folder}/mpirun" for folder in on_path]
    launchers += [f"{prefix}/bin/mpirun" for prefix in (*own_prefixes(survey), *elsewhere)]
    found: dict[str, str] = {}
    for launcher in launchers:
        if host.exists(launcher):
            found.setdefault(host.resolve(launcher), launcher)
    return list(found.values())


def classify_launcher(output: str) -> tuple[str, str] | None:
    """Kind and release by what `mpirun --version` prints; None when it printed nothing."""
    if not output.strip():
        return None
    patterns = {
        "Open MPI": r"\((?:Open MPI|OpenRTE)\)\s+v?(\S+)",
        "Intel MPI": r"Intel\(R\) MPI Library.*?Version\s+(\S+)",
        "MPICH": r"HYDRA build details:\s+Version:\s+(\S+)",
    }
    for kind, pattern in patterns.items():
        if found := re.search(pattern, output, re.DOTALL):
            return kind, found[1]
    return "other", ""


def read_installations(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    launchers = find_launchers(survey)[:MOST]
    with ThreadPoolExecutor(max_workers=4) as pool:
        results = list(pool.map(lambda launcher: ask(host, launcher, "--version"), launchers))
    installations = []
    for launcher, result in zip(launchers, results, strict=True):
        kind, release = classify_launcher(result.output) or ("other", "")
        installations.append(
            {"prefix": posixpath.dirname(posixpath.dirname(launcher)), "kind": kind, "release": release}
        )
    first = host.which("mpirun")
    shown = ", ".join(
        _("{kind} {release} in {prefix}").format(**installation).replace("  ", " ") for installation in installations
    )
    yield make_fact(
        "mpi.installations",
        installations,
        shown or _("none"),
        read_from=_("PATH, usual places and the prefixes of earlier runs"),
        see_yourself="command -v mpirun; mpirun --version",
        meaning=_("The one on PATH is {path}. Programs must be started by the MPI they were compiled with.").format(
            path=first
        )
        if first
        else "",
        claims=(7, 8, 41, 52),
    )


def parse_parameters(text: str) -> dict[str, str]:
    """The settings of an MCA parameter file: `name = value`, comments after #."""
    settings = {}
    for line in text.splitlines():
        name, equals, value = line.partition("#")[0].partition("=")
        if equals and name.strip():
            settings[name.strip()] = value.strip()
    return settings


def read_settings(survey: Survey) -> Iterator[Fact]:
    """What the person has set for every job, in the environment and in the home folder."""
    host = survey.host
    path = f"{survey.home}/.openmpi/mca-params.conf"
    prefixes = ("OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_")
    settings = [
        {"where": f"${name}", "name": name.partition("_MCA_")[2], "value": value}
        for name, value in sorted(host.environment.items())
        if name.startswith(prefixes)
    ]
    settings += [
        {"where": path, "name": name, "value": value} for name, value in parse_parameters(host.read(path) or "").items()
    ]
    yield make_fact(
        "mpi.settings",
        settings,
        ", ".join(f"{setting['name']} = {setting['value']}" for setting in settings) or _("none"),
        "attention" if settings else "info",
        read_from=_("environment and {path}").format(path=path),
        see_yourself=f"env | grep _MCA_; cat {path}",
        meaning=_("They change every job of yours, also those that measure the new installation.") if settings else "",
        action=_("mpiwizard leaves the variables out when it measures; a file in your home stays in force.")
        if settings
        else "",
    )


PROBES = (
    Probe(("mpi.installations",), read_installations),
    Probe(("mpi.settings",), read_settings),
)
