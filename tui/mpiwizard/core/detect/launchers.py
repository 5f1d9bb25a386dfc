"""Where an mpirun may be: PATH, modules, conda and Python environments, vendors' and distributions' folders."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator

from mpiwizard.core.detect.facts import Survey
from mpiwizard.core.detect.hazards import windows_folders
from mpiwizard.core.detect.module_files import MPI_NAME
from mpiwizard.core.detect.patterns import expand
from mpiwizard.core.host import Host

PLACES = (  # patterns of prefixes; a star stands for one folder
    "/usr", "/usr/local", "/usr/local/*", "/usr/lib64/openmpi", "/usr/lib64/mpich", "/usr/lib64/mpi/gcc/*",
    "/usr/lib/*/openmpi", "/opt/*", "/opt/*/ompi", "/opt/amazon/*", "/opt/intel/oneapi/mpi/*",
)  # fmt: skip
CONDA = (  # its root under the names that its installers give it
    "~/miniconda3", "~/anaconda3", "~/miniforge3", "~/mambaforge", "~/micromamba", "/opt/conda",
)  # fmt: skip
ALTERNATIVES = ("/usr/bin/mpirun.openmpi", "/usr/bin/mpirun.mpich")  # Debian keeps several in one prefix
CRAY = "/opt/cray/pe/mpich/*/ofi/*/*"  # release, compiler and its release; started by the scheduler


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


def environments(survey: Survey) -> list[str]:
    """Prefixes of conda and of Python, whose packages bring an mpirun of their own."""
    host = survey.host
    variables = [host.environment.get(name, "") for name in ("CONDA_PREFIX", "MAMBA_ROOT_PREFIX", "VIRTUAL_ENV")]
    roots = [root.replace("~", survey.home, 1) for root in CONDA]
    listed = (host.read(f"{survey.home}/.conda/environments.txt") or "").split("\n")
    here = host.environment.get("PWD", "")
    found = [*variables, *roots, *(prefix for root in roots for prefix in expand(host, f"{root}/envs/*")), *listed]
    found += [f"{survey.home}/.local", *([f"{here}/.venv", f"{here}/venv"] if here else [])]
    return [prefix.strip().rstrip("/") for prefix in found if prefix.startswith("/")]


def spack_prefixes(survey: Survey) -> Iterator[str]:
    """Prefixes of Spack, below a folder of the architecture and, before Spack 1.0, one of the compiler."""
    host = survey.host
    for root in dict.fromkeys((host.environment.get("SPACK_ROOT", ""), f"{survey.home}/spack", "/opt/spack")):
        tree = f"{root}/opt/spack"
        for architecture in host.list(tree) if root.startswith("/") else ():
            for name in host.list(f"{tree}/{architecture}"):
                folder = f"{tree}/{architecture}/{name}"
                if MPI_NAME.match(name):
                    yield folder
                elif re.match(r"[a-z]+-\d[\d.]*$", name):  # a compiler, such as gcc-12.2.0: packages end in a hash
                    yield from (f"{folder}/{one}" for one in host.list(folder) if MPI_NAME.match(one))


def find_launchers(survey: Survey) -> list[str]:
    """Paths of mpirun, PATH's first; the same file is named once."""
    host = survey.host
    skipped = set(windows_folders(host))  # slow to look at, and no mpirun there is for us
    path = host.environment.get("PATH", "").split(":")
    on_path = [folder.rstrip("/") for folder in path if folder.startswith("/") and folder not in skipped]
    modules = [module["prefix"] for module in survey.found.value("mpi.modules", []) if "prefix" in module]
    named = [prefix for prefix in (survey.prefix, f"{survey.home}/mpi") if prefix]
    places = [*named, *(folder for pattern in (f"{survey.home}/mpi/*", *PLACES) for folder in expand(host, pattern))]
    prefixes = [*own_prefixes(survey), *modules, *environments(survey), *places, *spack_prefixes(survey)]
    launchers = [f"{folder}/mpirun" for folder in on_path]
    launchers += [f"{prefix}/bin/mpirun" for prefix in prefixes]
    found: dict[str, str] = {}
    for launcher in (*launchers, *ALTERNATIVES):
        if host.exists(launcher):
            found.setdefault(host.resolve(launcher), launcher)
    return list(found.values())


def find_cray(host: Host) -> list[tuple[str, str]]:
    """Prefix and release of each Cray MPICH: it has no mpirun."""
    prefixes = [prefix for prefix in expand(host, CRAY) if host.exists(f"{prefix}/include/mpi.h")]
    return [(prefix, prefix.split("/")[5]) for prefix in prefixes]


def prefix_of_program(host: Host, path: str) -> str:
    """The prefix a program belongs to, with its links followed."""
    return posixpath.dirname(posixpath.dirname(host.resolve(path)))
