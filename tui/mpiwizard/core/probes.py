"""Our own MPI programs: compiled with the MPI under test, run with a deadline, read line by line.

A hang is a result, not a hung wizard, and a line that is not JSON belongs to some library: it is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mpiwizard.core.detect.model import Machine
from mpiwizard.core.errors import WizardError
from mpiwizard.core.host import Host, Result
from mpiwizard.core.i18n import _
from mpiwizard.core.installation import Installation, launch, launch_environment
from mpiwizard.core.recipes import recipes_root

COMPILE_DEADLINE = 120.0  # seconds
RUN_DEADLINE = 30.0  # seconds


class ProbeRun(Struct, frozen=True):
    """How a probe ended. `records` are its JSON lines; `failure` is empty when all was right."""

    command: tuple[str, ...]
    records: tuple[dict[str, Any], ...]
    failure: str
    seconds: float


class Probes:
    """The probe programs for one installation on one machine; `work` is a folder that may be filled.

    A job with more ranks than there are cores for is started oversubscribed. Its ranks yield, and so do those
    of a job for which the quota is too small: ranks that wait busily would use it up. Where mpirun sees cores
    that an affinity mask forbids, ranks are not bound: mpirun would bind them to those.
    """

    def __init__(self, host: Host, machine: Machine, installation: Installation, work: Path) -> None:
        self.host = host
        self.installation = installation
        self.folder = work / "probes"
        self.cores = usable_ranks(machine)
        self._processors = min(self.cores, machine.value("cpu.quota", self.cores))
        slots = machine.value("cpu.slots", {}).get("4" if installation.major < 5 else "5", 0)
        self._bind = slots <= machine.value("cpu.cores", slots)
        self.root = bool((machine.value("platform.user") or {}).get("root"))
        self.environment = launch_environment(host, installation, root=self.root)

    def compile(self, name: str) -> Path:
        """The program of recipes/probes/<name>.c. WizardError with the compiler's first error line."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for source in (recipes_root() / "probes").iterdir():
            (self.folder / source.name).write_bytes(source.read_bytes())
        command = [self.installation.mpicc, "-std=c99", "-O3", "-o", name, f"{name}.c"]
        result = self.host.run(command, timeout=COMPILE_DEADLINE, environment=self.environment, folder=str(self.folder))
        if not result.succeeded:
            raise WizardError(
                _("{mpicc} cannot compile a small MPI program: {line}. Look at {mpicc} --showme.").format(
                    mpicc=self.installation.mpicc, line=_first_error(result)
                )
            )
        return self.folder / name

    def command(self, ranks: int, program: Sequence[str], parameters: Mapping[str, str]) -> list[str]:
        """The command for a job on so many ranks of this machine."""
        if ranks > self._processors:
            parameters = {"mpi_yield_when_idle": "1", **parameters}
        return launch(
            self.installation,
            ranks,
            program,
            parameters,
            oversubscribe=ranks > self.cores,
            bind=self._bind,
            root=self.root,
        )

    def run(
        self,
        ranks: int,
        program: Sequence[str],
        parameters: Mapping[str, str] | None = None,
        deadline: float = RUN_DEADLINE,
    ) -> ProbeRun:
        """Run a program on so many ranks, at most `deadline` seconds."""
        return self.run_command(self.command(ranks, program, parameters or {}), deadline)

    def run_command(self, command: Sequence[str], deadline: float = RUN_DEADLINE) -> ProbeRun:
        """Run a command in the environment of this installation, at most `deadline` seconds."""
        result = self.host.run(command, timeout=deadline, environment=self.environment, folder=str(self.folder))
        return ProbeRun(tuple(command), read_records(result.output), _failure(result, deadline), result.seconds)


def usable_ranks(machine: Machine) -> int:
    """How many ranks may compute at once: usable processors, but not more than cores. At least 1."""
    usable = int(machine.value("cpu.usable", 1))
    return max(min(usable, int(machine.value("cpu.cores", usable))), 1)


def read_records(output: str) -> tuple[dict[str, Any], ...]:
    """The JSON objects among the lines of an output; every other line is skipped."""
    records = []
    for line in output.splitlines():
        if line.lstrip().startswith("{"):
            try:
                record = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeEncodeError):
                continue
            records.append(record)
    return tuple(records)


def _failure(result: Result, deadline: float) -> str:
    if result.timed_out:
        return _("hung after {seconds:.0f} s").format(seconds=deadline)
    if result.status == 0:
        return ""
    line = _first_words(result.errors) or _first_words(result.output)
    return _("ended with status {status}: {line}").format(status=result.status, line=line or _("no message"))


def _first_error(result: Result) -> str:
    """The line of a compiler that names the error."""
    if result.timed_out:
        return _("the compiler was still busy after {seconds:.0f} s").format(seconds=COMPILE_DEADLINE)
    lines = (result.errors + result.output).splitlines()
    return next((line.strip() for line in lines if "error" in line), _first_words(result.errors))


def _first_words(text: str) -> str:
    """The first line that says something; launchers frame their messages with hyphens."""
    return next((line.strip() for line in text.splitlines() if line.strip(" -\t")), "")
