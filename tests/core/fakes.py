"""An Open MPI whose answers a test decides: shell scripts in the place of mpirun, mpicc and ompi_info."""

from __future__ import annotations

from pathlib import Path

from mpiwizard.core.context import Context, Folders
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.host import RealHost
from mpiwizard.core.installation import Installation, find_installation


def machine_with(**values: object) -> Machine:
    """A machine of which only these facts are known; `cpu_usable=2` is the fact cpu.usable."""
    ids = {name.replace("_", ".", 1): value for name, value in values.items()}
    facts = (Fact(key, key.partition(".")[0], key, value, str(value), "info") for key, value in ids.items())
    return Machine(tuple(facts), headline="a machine of the tests")


def context_in(folder: Path) -> Context:
    """The real box, with mpiwizard's own folders below `folder`."""
    return Context(RealHost(), Folders(folder / "state", folder / "cache", folder / "config"), offline=True)


def scripted_mpi(prefix: Path, release: str, answers: str, mpicc: str = 'touch "$4"') -> Installation:
    """An installation whose mpirun runs the cases `answers`, shell code that sees all arguments as $*."""
    write_program(
        prefix / "bin" / "mpirun",
        f'case "$*" in\n*--version*) echo "mpirun (Open MPI) {release}";;\n{answers}\nesac\n',
    )
    write_program(prefix / "bin" / "mpicc", mpicc)
    return find_installation(RealHost(), str(prefix))


def write_program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
