"""How probes make facts: names and groups of all facts, and what a probe is handed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import Thread
from time import monotonic
from typing import Any

from msgspec import Struct

from mpiwizard.core.context import Folders, Wishes
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.host import Host, Result
from mpiwizard.core.i18n import _

_GROUP_OF = {  # where it is not the id's first word
    "kernel": "platform", "tool": "tools", "path": "hazards", "storage": "hazards", "environment": "hazards",
    "source": "sources",
}  # fmt: skip
EXCERPT = 400  # characters of a file or an output that a fact keeps as its raw text
LONGEST_LINE = 4096  # characters of a first line; searching in one without end would keep all probes waiting


class Survey(Struct, frozen=True):
    """What a probe is handed: the box, what the person wants, and of the facts those that it needs."""

    host: Host
    folders: Folders
    wishes: Wishes
    now: float  # seconds since the epoch, by our clock
    found: Machine
    silent: tuple[str, ...] = ()  # where drives are mounted that do not answer; `host` takes them as absent

    @property
    def root(self) -> bool:
        """Whether mpiwizard runs as root."""
        return re.search(r"^Uid:\s+\d+\s+0\b", self.host.read("/proc/self/status") or "", re.MULTILINE) is not None

    @property
    def home(self) -> str:
        return self.host.environment.get("HOME", "/root" if self.root else "/")

    @property
    def prefix(self) -> str:
        """Where the person wants the installation, empty when it was not said."""
        prefix = self.wishes.prefix
        return self.home + prefix[1:] if prefix == "~" or prefix.startswith("~/") else prefix


class Probe(Struct, frozen=True):
    """A function that reads the facts named in `ids` from a box. It may raise, or take too long: see survey.py.

    It is called when the facts in `needs` are known, and is shown no others.
    """

    ids: tuple[str, ...]
    read: Callable[[Survey], Iterable[Fact]]
    needs: tuple[str, ...] = ()


def make_fact(
    fact_id: str,
    value: object,
    text: str,
    state: str = "info",
    *,
    read_from: str = "",
    raw: str = "",
    see_yourself: str = "",
    meaning: str = "",
    action: str = "",
    rests_on: tuple[str, ...] = (),
    contradictions: tuple[str, ...] = (),
    claims: tuple[int, ...] = (),
) -> Fact:
    """A fact with the label and the group that belong to its id; texts are made printable, `raw` is shortened too.

    What is read may come from strangers, and must be neither a command to a terminal nor be unfit for JSON.
    """
    first = fact_id.partition(".")[0]
    return Fact(
        fact_id,
        _GROUP_OF.get(first, first),
        labels().get(fact_id, fact_id),
        _encodable(value),
        printable(text),
        state,
        printable(read_from),
        excerpt(raw),
        printable(see_yourself),
        printable(meaning),
        printable(action),
        rests_on,
        tuple(map(printable, contradictions)),
        claims,
    )


def unknown_fact(fact_id: str, why: str, *, read_from: str = "", raw: str = "", see_yourself: str = "") -> Fact:
    """A fact that could not be read, and why."""
    text = _("not known: {reason}").format(reason=why)
    return make_fact(fact_id, None, text, "unknown", read_from=read_from, raw=raw, see_yourself=see_yourself)


def excerpt(text: str) -> str:
    """The beginning of a text, printable."""
    text = printable(text).strip()
    return text if len(text) <= EXCERPT else text[: EXCERPT - 1].rstrip() + "…"


def printable(text: str) -> str:
    """A text without what a terminal would take as a command, or could not show."""
    if text.isprintable():
        return text
    return "".join(character for character in text if character.isprintable() or character in "\n\t")


def _encodable(value: Any) -> Any:
    """A JSON value whose texts hold no halves of characters, as names of other encodings do (PEP 383)."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, (list, tuple)):
        return [_encodable(part) for part in value]
    if isinstance(value, dict):
        return {_encodable(name): _encodable(part) for name, part in value.items()}
    return value


def lines_with(pattern: str, text: str | None) -> str:
    """The lines of a text in which a regular expression is found: the raw text of a fact."""
    return "\n".join(line.strip() for line in (text or "").splitlines() if re.search(pattern, line))


def ask(host: Host, *argv: str, given: str = "", timeout: float = 1.8) -> Result:
    """Run a command that answers in English and in plain numbers; `timeout` in seconds, below a probe's patience.

    What is asked here changes nothing, so it may be killed at once.
    """
    return host.run(
        argv, timeout=timeout, given=given, grace=0.05, environment={**host.environment, "LC_ALL": "C"}
    )


def ask_all(host: Host, commands: Sequence[Sequence[str]]) -> list[Result]:
    """Run commands at the same time, each as by `ask`, so that the slowest costs only its own answer."""
    return at_once([partial(ask, host, *argv) for argv in commands])


def at_once(questions: Sequence[Callable[[], Result]], patience: float = 1.85) -> list[Result]:
    """The answers of commands that run at the same time; what took longer than `patience` seconds timed out.

    A command that will not even be ended is left behind in its thread, which ends with this process at the latest.
    """
    answers = [Result(-9, timed_out=True, seconds=patience) for _question in questions]

    def answer(number: int, question: Callable[[], Result]) -> None:
        try:
            answers[number] = question()
        except (MemoryError, RuntimeError) as error:  # no memory, or no more threads are allowed here
            answers[number] = Result(126, errors=str(error))

    threads = [Thread(target=answer, args=pair, daemon=True) for pair in enumerate(questions)]
    end = monotonic() + patience
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(end - monotonic(), 0))
    return list(answers)


def first_line(text: str | None) -> str:
    """The first line that is not empty, without blanks around it, of one without end its beginning."""
    return next((line.strip()[:LONGEST_LINE] for line in (text or "").splitlines() if line.strip()), "")


def whole_number(text: str | None) -> int | None:
    """The number a file holds; None when it holds something else."""
    try:
        return int((text or "").strip())
    except ValueError:
        return None


def labels() -> dict[str, str]:
    """What a person reads as the name of each fact, in the order in which facts are shown."""
    return {
        "platform.layer": _("Container or WSL"),
        "platform.virtualisation": _("Virtual machine"),
        "platform.provider": _("Cloud"),
        "platform.instance": _("Type of instance"),
        "platform.opinion": _("What other tools say"),
        "platform.distribution": _("Distribution"),
        "platform.init": _("First process"),
        "platform.user": _("User"),
        "platform.clock": _("Clock"),
        "kernel.release": _("Kernel"),
        "kernel.version": _("Kernel's version"),
        "kernel.config": _("Kernel built with CMA"),
        "kernel.yama": _("Ptrace protection (Yama)"),
        "kernel.seccomp": _("System call filter (seccomp)"),
        "kernel.ptrace": _("Tracing (CAP_SYS_PTRACE)"),
        "kernel.userns": _("User namespace"),
        "kernel.cma": _("Single copy (CMA)"),
        "kernel.kcmp": _("Comparing processes (kcmp)"),
        "kernel.xpmem": _("XPMEM"),
        "kernel.knem": _("KNEM"),
        "kernel.single_copy": _("Single copy in Open MPI"),
        "cpu.model": _("Processor"),
        "cpu.architecture": _("Architecture"),
        "cpu.microarchitecture": _("Microarchitecture"),
        "cpu.online": _("Threads of the box"),
        "cpu.sockets": _("Sockets"),
        "cpu.numa": _("NUMA nodes"),
        "cpu.affinity": _("Threads allowed here"),
        "cpu.quota": _("CPU quota"),
        "cpu.cores": _("Cores behind them"),
        "cpu.hybrid": _("Kinds of cores"),
        "cpu.usable": _("Usable CPUs"),
        "cpu.slots": _("Slots mpirun will take"),
        "memory.total": _("Memory"),
        "memory.limit": _("Memory limit"),
        "memory.available": _("Available"),
        "memory.swap": _("Swap"),
        "memory.shm": _("Shared memory"),
        "memory.hugepages": _("Huge pages"),
        "memory.memlock": _("Memory a program may lock"),
        "memory.windows": _("Limits set in Windows"),
        "network.interfaces": _("Interfaces"),
        "network.route": _("Default route"),
        "network.include": _("Network for TCP"),
        "network.mode": _("Network mode of WSL"),
        "network.hostname": _("Name of this host"),
        "network.fabric": _("Fast fabric"),
        "network.libfabric": _("libfabric to build with"),
        "network.providers": _("libfabric here"),
        "network.ucx": _("UCX to build with"),
        "network.transports": _("UCX here"),
        "tool.cc": _("C compiler"),
        "tool.cxx": _("C++ compiler"),
        "tool.fortran": _("Fortran compiler"),
        "tool.make": _("make"),
        "tool.perl": _("perl"),
        "tool.bash": _("bash"),
        "tool.autotools": _("Autotools"),
        "tool.ccache": _("ccache"),
        "tool.hwloc": _("hwloc to build with"),
        "tool.libevent": _("libevent to build with"),
        "tool.pmix": _("PMIx to build with"),
        "mpi.installations": _("MPI already here"),
        "mpi.components": _("What they were built with"),
        "mpi.shell": _("MPI of this shell"),
        "mpi.modules": _("MPI in modules"),
        "mpi.settings": _("MPI settings already made"),
        "mpi.defaults": _("Defaults of an installed MPI"),
        "path.windows": _("Windows folders in PATH"),
        "path.blanks": _("Traps in PATH and folders"),
        "storage.prefix": _("Place to install"),
        "storage.build": _("Place to build"),
        "storage.temporary": _("Folder for temporary files"),
        "storage.silent": _("Drives that do not answer"),
        "storage.times": _("Times of files"),
        "environment.libraries": _("LD_LIBRARY_PATH"),
        "environment.variables": _("Variables that change MPI"),
        "environment.locale": _("Language setting"),
        "environment.files": _("Open files"),
        "environment.processes": _("Processes"),
        "environment.scheduler": _("Batch scheduler around us"),
        "source.release": _("Official release"),
        "source.distro": _("Distribution's source"),
        "source.archive": _("Local archive"),
        "sources.any": _("Source of Open MPI"),
    }
