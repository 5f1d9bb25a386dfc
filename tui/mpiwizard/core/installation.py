"""Installation: an Open MPI on this box, and how its programs are called."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

_VERSION = re.compile(r"^(?:mpirun|mpiexec|prterun|orterun)\s+\(([^)]+)\)\s+(\d\S*)", re.MULTILINE)
_FOREIGN = ("OMPI_", "OPAL_", "PMIX_", "PRTE_")  # parameters, mpicc's OMPI_CC, what an mpirun around us set


class Installation(Struct, frozen=True):
    """An MPI in a prefix. Paths are absolute."""

    prefix: str
    release: str
    mpicc: str
    mpirun: str

    @property
    def major(self) -> int:
        """First number of the release: it decides the names of MCA parameters."""
        return int(self.release.partition(".")[0])

    @property
    def parameter_file(self) -> str:
        """The system-wide MCA parameter file of this installation."""
        return f"{self.prefix}/etc/openmpi-mca-params.conf"

    @property
    def own_folder(self) -> str:
        """Where mpiwizard keeps its own files beside this installation."""
        return f"{self.prefix}/share/mpiwizard"


def find_installation(host: Host, prefix: str) -> Installation:
    """The Open MPI in `prefix`, told by its own `mpirun --version`. WizardError when there is none."""
    prefix = os.path.normpath(prefix)
    mpirun = f"{prefix}/bin/mpirun"
    if not host.exists(mpirun):
        message = _("There is no MPI in {prefix}: bin/mpirun is missing. Give the folder that holds bin.")
        raise WizardError(message.format(prefix=prefix), ExitCode.NOT_POSSIBLE_HERE)
    answer = host.run([mpirun, "--version"], timeout=20, environment=cleared_environment(host, prefix))
    found = _VERSION.search(answer.output)
    if not found or found[1] != "Open MPI":
        said = _who_answers(answer.output + answer.errors)
        message = _("The mpirun in {prefix}/bin is not Open MPI's: {said}. Give another --prefix.")
        raise WizardError(message.format(prefix=prefix, said=said), ExitCode.NOT_POSSIBLE_HERE)
    return Installation(prefix, found[2], f"{prefix}/bin/mpicc", mpirun)


def launch(
    installation: Installation,
    ranks: int,
    program: Sequence[str],
    parameters: Mapping[str, str],
    *,
    oversubscribe: bool = False,
    bind: bool = True,
    root: bool = False,
) -> list[str]:
    """The command that starts `program` on so many ranks of this box.

    Each MCA parameter appears once: Open MPI refuses a job that is given one twice. `root` lets
    mpirun work for user 0, `oversubscribe` lets more ranks start than there are cores, and without `bind`
    ranks run wherever mpirun itself may.
    """
    command = [installation.mpirun, "-n", str(ranks)]
    if root:
        command.append("--allow-run-as-root")
    if oversubscribe:
        command += ["--oversubscribe"] if installation.major < 5 else ["--map-by", ":OVERSUBSCRIBE"]
    if not bind:
        command += ["--bind-to", "none"]
    for name, value in parameters.items():
        command += ["--mca", name, value]
    return [*command, *program]


def launch_environment(host: Host, installation: Installation, *, root: bool = False) -> dict[str, str]:
    """The environment for this installation's commands: its own folders first, no foreign parameters.

    `root` sets the two variables by which every release from 4.0 on works for user 0, programs that
    are started by mpirun included.
    """
    environment = cleared_environment(host, installation.prefix)
    if root:
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return environment


def cleared_environment(host: Host, prefix: str) -> dict[str, str]:
    """The person's environment with `prefix` first, and without what steers another Open MPI.

    OPAL_PREFIX and its like tell an installation that was moved where it is now: they stay when they name it.
    """
    environment = {
        name: value
        for name, value in host.environment.items()
        if not name.startswith(_FOREIGN) or value == prefix
    }
    environment["PATH"] = os.pathsep.join([f"{prefix}/bin", environment.get("PATH", "/usr/local/bin:/usr/bin:/bin")])
    if libraries := environment.get("LD_LIBRARY_PATH"):  # it outranks the run path of a program
        environment["LD_LIBRARY_PATH"] = os.pathsep.join([f"{prefix}/lib", libraries])
    return environment


def _who_answers(output: str) -> str:
    """Whose mpirun it is, as far as its `--version` tells; else the first line it prints."""
    if "HYDRA build details" in output:
        return _("it is MPICH's")
    if "Intel(R) MPI" in output:
        return _("it is Intel MPI's")
    first = next((line.strip() for line in output.splitlines() if line.strip()), _("nothing"))
    return _("it says {line}").format(line=first)
