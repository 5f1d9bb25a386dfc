"""How probes make facts: names and groups of all facts, and what a probe is handed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from mpiwizard.core.context import Folders, Wishes
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.host import Host, Result
from mpiwizard.core.i18n import _

_GROUP_OF = {"tool": "tools", "path": "tools", "source": "sources"}  # where it is not the id's first word


class Survey(Struct, frozen=True):
    """What a probe is handed: the box, what the person wants, and the facts found before."""

    host: Host
    folders: Folders
    wishes: Wishes
    now: float  # seconds since the epoch, by our clock
    found: Machine

    @property
    def root(self) -> bool:
        """Whether mpiwizard runs as root."""
        return bool(self.found.value("platform.user", {}).get("root"))

    @property
    def home(self) -> str:
        return self.host.environment.get("HOME", "/root" if self.root else "/")

    @property
    def prefix(self) -> str:
        """Where the person wants the installation, empty when it was not said."""
        prefix = self.wishes.prefix
        return self.home + prefix[1:] if prefix == "~" or prefix.startswith("~/") else prefix


class Probe(Struct, frozen=True):
    """A function that reads the facts named in `ids` from a box. It may raise: see survey.py."""

    ids: tuple[str, ...]
    read: Callable[[Survey], Iterable[Fact]]


def make_fact(
    fact_id: str,
    value: object,
    text: str,
    state: str = "info",
    *,
    read_from: str = "",
    see_yourself: str = "",
    meaning: str = "",
    action: str = "",
    rests_on: tuple[str, ...] = (),
    claims: tuple[int, ...] = (),
) -> Fact:
    """A fact with the label and the group that belong to its id."""
    first = fact_id.partition(".")[0]
    return Fact(
        fact_id,
        _GROUP_OF.get(first, first),
        labels().get(fact_id, fact_id),
        value,
        text,
        state,
        read_from,
        see_yourself,
        meaning,
        action,
        rests_on,
        claims,
    )


def unknown_fact(fact_id: str, why: str, *, read_from: str = "", see_yourself: str = "") -> Fact:
    """A fact that could not be read, and why."""
    text = _("not known: {reason}").format(reason=why)
    return make_fact(fact_id, None, text, "unknown", read_from=read_from, see_yourself=see_yourself)


def ask(host: Host, *argv: str, given: str = "", timeout: float = 3.0) -> Result:
    """Run a command that answers in English and in plain numbers; `timeout` in seconds."""
    return host.run(argv, timeout=timeout, given=given, environment={**host.environment, "LC_ALL": "C"})


def first_line(text: str | None) -> str:
    """The first line that is not empty, without blanks around it."""
    return next((line.strip() for line in (text or "").splitlines() if line.strip()), "")


def whole_number(text: str | None) -> int | None:
    """The number a file holds; None when it holds something else."""
    try:
        return int((text or "").strip())
    except ValueError:
        return None


def labels() -> dict[str, str]:
    """What a person reads as the name of each fact."""
    return {
        "platform.layer": _("Container or WSL"),
        "platform.virtualisation": _("Virtual machine"),
        "platform.provider": _("Cloud"),
        "platform.instance": _("Type of instance"),
        "platform.distribution": _("Distribution"),
        "platform.init": _("First process"),
        "platform.user": _("User"),
        "platform.clock": _("Clock"),
        "kernel.release": _("Kernel"),
        "kernel.yama": _("Ptrace protection (Yama)"),
        "kernel.cma": _("Single copy (CMA)"),
        "kernel.kcmp": _("Comparing processes (kcmp)"),
        "cpu.model": _("Processor"),
        "cpu.architecture": _("Architecture"),
        "cpu.online": _("Threads of the box"),
        "cpu.affinity": _("Threads allowed here"),
        "cpu.quota": _("CPU quota"),
        "cpu.cores": _("Cores behind them"),
        "cpu.usable": _("Usable CPUs"),
        "memory.total": _("Memory"),
        "memory.limit": _("Memory limit"),
        "memory.available": _("Available"),
        "memory.shm": _("Shared memory"),
        "network.interfaces": _("Interfaces"),
        "network.include": _("Network for TCP"),
        "network.mode": _("Network mode of WSL"),
        "network.fabric": _("Fast fabric"),
        "network.memlock": _("Memory a program may lock"),
        "network.libfabric": _("libfabric to build with"),
        "network.ucx": _("UCX to build with"),
        "tool.cc": _("C compiler"),
        "tool.cxx": _("C++ compiler"),
        "tool.fortran": _("Fortran compiler"),
        "tool.make": _("make"),
        "tool.perl": _("perl"),
        "tool.bash": _("bash"),
        "path.windows": _("Windows folders in PATH"),
        "mpi.installations": _("MPI already here"),
        "mpi.settings": _("MPI settings already made"),
        "storage.prefix": _("Place to install"),
        "storage.build": _("Place to build"),
        "source.release": _("Official release"),
        "source.distro": _("Distribution's source"),
        "source.archive": _("Local archive"),
        "sources.any": _("Source of Open MPI"),
    }
