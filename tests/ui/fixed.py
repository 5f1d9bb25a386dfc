"""Stages with fixed answers, so that screens can be tested and drawn without a machine or a clock."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mpiwizard.core.build.failure import FailureCard
from mpiwizard.core.build.model import RunState, StepState
from mpiwizard.core.build.resume import Decision
from mpiwizard.core.choose.model import Choice
from mpiwizard.core.configure.model import Option, Plan, Step
from mpiwizard.core.context import Wishes
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.frontend import Frontend
from mpiwizard.core.recipes import Claim, Expectation
from mpiwizard.core.session import Session
from mpiwizard.core.tune.model import Trial, Tuning, Written
from mpiwizard.core.validate.model import Check, Metric, Report
from mpiwizard.worker.usage import Usage

START = 1_900_000_000.0
RUN = "20300317-174640-4.1.4"
PREFIX = "/home/ada/mpi/4.1.4"
FOLDER = f"/home/ada/.local/state/mpiwizard/runs/{RUN}"

FACTS = (
    Fact("platform.layer", "platform", "Container or WSL", "wsl2", "WSL2", "info",
         read_from="/proc/sys/kernel/osrelease", raw="5.15.153.1-microsoft-standard-WSL2",
         see_yourself="systemd-detect-virt --container; uname -r",
         meaning="A light virtual machine: memory and processors are those .wslconfig gives it."),
    Fact("platform.virtualisation", "platform", "Virtual machine", "hyper-v", "Hyper-V", "info",
         read_from="/proc/sys/kernel/osrelease", raw="5.15.153.1-microsoft-standard-WSL2",
         see_yourself="systemd-detect-virt --vm"),
    Fact("platform.provider", "platform", "Cloud", "none", "none that is known here", "info",
         read_from="/sys/class/dmi/id", see_yourself="head /sys/class/dmi/id/sys_vendor"),
    Fact("platform.distribution", "platform", "Distribution", {"id": "ubuntu", "name": "Ubuntu", "version": "22.04"},
         "Ubuntu 22.04.4 LTS", "info", read_from="/etc/os-release",
         raw='PRETTY_NAME="Ubuntu 22.04.4 LTS"\nVERSION_ID="22.04"', see_yourself="cat /etc/os-release"),
    Fact("kernel.release", "platform", "Kernel", "5.15.153.1-microsoft-standard-WSL2",
         "5.15.153.1-microsoft-standard-WSL2", "info", read_from="/proc/sys/kernel/osrelease",
         raw="5.15.153.1-microsoft-standard-WSL2", see_yourself="uname -r"),
    Fact("kernel.cma", "platform", "Single copy (CMA)", "works", "works, tried between two processes", "ok",
         read_from="process_vm_readv between two children", raw="siblings: 0\nwith PR_SET_PTRACER: 0",
         see_yourself="cat /proc/sys/kernel/yama/ptrace_scope",
         meaning="Large messages between ranks need one copy, not two."),
    Fact("kernel.single_copy", "platform", "Single copy in Open MPI", {"4": "cma", "5": "cma"}, "CMA in 4.x and 5.x",
         "ok", meaning="Large messages between ranks are copied once.",
         action="build with shared memory and CMA", see_yourself="cat /proc/sys/kernel/yama/ptrace_scope",
         rests_on=("kernel.release", "kernel.cma"),
         contradictions=("The kernel's configuration says CONFIG_CROSS_MEMORY_ATTACH is not set.",)),
    Fact("cpu.usable", "cpu", "Usable CPUs", 8, "8 of 16 threads (.wslconfig limits them)", "info",
         read_from="sched_getaffinity, cpu.max", raw="Cpus_allowed_list:\t0-7", see_yourself="nproc"),
    Fact("memory.available", "memory", "Available", 12_025_908_428, "11.2 of 15.5 GiB", "info",
         read_from="/proc/meminfo", raw="MemAvailable:   11744051 kB", see_yourself="free -h"),
    Fact("memory.shm", "memory", "Shared memory", None, "not known: /dev/shm cannot be read", "unknown",
         read_from="/dev/shm", see_yourself="df -h /dev/shm"),
    Fact("network.include", "network", "Network for TCP", "172.20.0.0/16", "172.20.0.0/16, on eth0", "info",
         read_from="/proc/net/route", raw="eth0\t000014AC\t00000000\t0001\t0\t0\t0\t0000FFFF",
         see_yourself="ip -brief address"),
    Fact("network.fabric", "network", "Fast fabric", [], "none", "info", read_from="/sys/class/infiniband",
         see_yourself="ls /sys/class/infiniband"),
    Fact("tool.cc", "tools", "C compiler", {"path": "/usr/bin/gcc"}, "gcc 11.4.0", "ok", read_from="gcc --version",
         raw="gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", see_yourself="gcc --version"),
    Fact("tool.perl", "tools", "perl", {"path": "/usr/bin/perl"}, "perl 5.34.0", "ok", read_from="perl -V:version",
         raw="version='5.34.0';", see_yourself="perl -v"),
    Fact("mpi.installations", "mpi", "MPI already here", [], "none", "info", read_from="PATH and the usual places",
         see_yourself="type -a mpirun"),
    Fact("path.windows", "hazards", "Windows folders in PATH", ["/mnt/c/Windows"], "14 entries, 3 with blanks",
         "attention", read_from="$PATH", raw="/mnt/c/Program Files/Git/cmd:/mnt/c/Windows/system32:/mnt/c/Windows",
         see_yourself="echo \"$PATH\" | tr ':' '\\n' | grep /mnt",
         meaning="configure may find Windows programs; blanks in folders break some make rules.",
         action="build with a cleaned PATH; your shell stays as it is", claims=(3,)),
    Fact("storage.prefix", "hazards", "Place to install", {"type": "ext4"}, "80.6 GB free on ext4, /home/ada/mpi", "ok",
         read_from="df and /proc/self/mountinfo", raw="/dev/sdc  263112772 94571208 80600000 40% /",
         see_yourself="df -h /home/ada"),
    Fact("storage.build", "hazards", "Place to build", {"type": "9p"}, "/mnt/c/src is 9p: many times slower",
         "attention", read_from="/proc/self/mountinfo",
         raw="75 73 0:52 / /mnt/c rw,noatime - 9p drvfs rw,dirsync,aname=drvfs;path=C:\\",
         see_yourself="stat -f -c %T /mnt/c/src",
         meaning="Each small file crosses from Linux to Windows.", action="build below your home folder instead",
         claims=(3,)),
    Fact("environment.locale", "hazards", "Language setting", "C.UTF-8", "C.UTF-8", "ok", read_from="$LANG",
         raw="C.UTF-8", see_yourself="locale"),
    Fact("source.release", "sources", "Official release", {"release": "5.0.8"}, "Open MPI 5.0.8, 30 MB", "ok",
         read_from="the official address"),
    Fact("sources.any", "sources", "Source of Open MPI", True, "release", "ok", see_yourself="mpiwizard plan",
         rests_on=("source.release",)),
)  # fmt: skip
FACTS_OF_BOX = tuple(fact for fact in FACTS if fact.group != "sources")
MACHINE = Machine(FACTS, "WSL2 on Ubuntu 22.04 · 8 usable cores · shared memory with CMA · no fast fabric", seconds=0.6)
NOTHING_REACHABLE = Machine(
    (
        *FACTS_OF_BOX,
        Fact("source.release", "sources", "Official release", None, "not within reach", "attention",
             meaning="The name could not be resolved.",
             action="Behind a proxy, set HTTPS_PROXY; with a mirror at hand, give --mirror URL."),
        Fact("source.distro", "sources", "Distribution's source", None, "not within reach", "attention",
             meaning="No mirror answered within 10 s."),
        Fact("sources.any", "sources", "Source of Open MPI", False, "none within reach", "problem",
             see_yourself="mpiwizard plan", meaning="There is nothing to build from.",
             action="Fetch an archive of Open MPI elsewhere and name it with --archive FILE, or set HTTPS_PROXY.",
             rests_on=("source.release", "source.distro")),
    ),
    MACHINE.headline, seconds=0.6,
)  # fmt: skip
AXES = {
    "layer": {"none": "none", "wsl2": "WSL2", "docker": "Docker"},
    "virtualisation": {"none": "none", "kvm": "KVM", "hyper-v": "Hyper-V"},
    "provider": {"none": "none", "aws": "AWS EC2", "azure": "Azure"},
    "instance": {},
}

CHOICES = (
    Choice("wsl2", "4.1.4", "distro", "Open MPI 4.1.4 from Ubuntu's source", (
        "the source is signed by the distribution", "4.1 is what most clusters still run"),
        ("UCX, since there is no fabric here", "OpenSHMEM"), 7, 1_400_000_000, guide="builds 4.1.4 too: right"),
    Choice("wsl2", "5.0.8", "release", "Open MPI 5.0.8, the newest", ("newest collective algorithms",),
           ("mpirun options of 4.1",), 11, 1_900_000_000),
    Choice("distro-package", "4.1.2", "distro", "Ubuntu's own package", ("ready in a minute",),
           ("tuning for this machine", "a prefix of its own"), 1, 60_000_000),
    Choice("ucx", "5.0.8", "release", "Open MPI 5.0.8 with UCX", (), (), 0, 0, False,
           "There is no fast network device for UCX to use."),
)  # fmt: skip

OPTIONS = (
    Option("prefix", f"--prefix={PREFIX}", True, "a folder of its own, removed as easily", fixed=True),
    Option("cma", "--with-cma", True, "large messages need one copy only", "bandwidth × 1.8 on this kind of box"),
    Option("oshmem", "--disable-oshmem", True, "nobody asked for OpenSHMEM", "minus 40 s of build",
           "OpenSHMEM programs"),
    Option("fortran", "--enable-mpi-fortran=no", True, "there is no Fortran compiler here", "minus 50 s of build",
           "Fortran programs"),
    Option("debug", "--enable-debug", False, "for finding faults in Open MPI itself", "", "full speed"),
)  # fmt: skip
CONFLICT = replace(OPTIONS[1], conflict="4.1.4 cannot use CMA without PR_SET_PTRACER; switch it off")

NOTE = (
    "Windows takes back no memory from this virtual machine while it runs: after the build, wsl --shutdown "
    "gives all of it back."
)
_STEPS = (
    ("fetch", "Fetch the source from Ubuntu", 5), ("verify", "Verify the SHA-256 sum", 1),
    ("unpack", "Unpack", 4), ("configure", "Configure", 80), ("make", "Compile", 260),
    ("install", "Install", 20), ("tune", "Tune", 30), ("validate", "Validate", 40),
)  # fmt: skip


def plan_for(choice: Choice, options: tuple[Option, ...] = OPTIONS, switches: Mapping[str, bool] | None = None) -> Plan:
    """A plan for the choice, with the switches applied."""
    options = tuple(replace(one, enabled=(switches or {}).get(one.id, one.enabled)) for one in options)
    arguments = tuple(option.argument for option in options if option.enabled)
    argv = {"configure": ("/usr/bin/bash", f"{FOLDER}/source/configure", *arguments), "make": ("make", "-j8")}
    steps = tuple(
        Step(name, title, argv.get(name, (name,)), "build", {}, (" ".join(argv.get(name, (name,))),), seconds, 3600.0)
        for name, title, seconds in _STEPS
    )
    return Plan(
        RUN, choice, Wishes(), PREFIX, 8, f"{FOLDER}/source", f"{FOLDER}/build", options, steps,
        seconds=440, disk=1_400_000_000, disk_kept=90_000_000, packages={},
        notes=(NOTE,),
    )  # fmt: skip


PLAN = plan_for(CHOICES[0])
_DETAILS = {
    "fetch": (2, "6.9 MB from Ubuntu, signature checked"),
    "verify": (0.1, "SHA-256 ddaee7db…"),
    "unpack": (3, "7,411 files"),
    "configure": (72, "shared memory with CMA yes · TCP yes · UCX no (not here)"),
    "make": (312, "1,599 files compiled, 316 warnings"),
    "install": (19, f"into {PREFIX}"),
    "tune": (31, "1 of 2 settings kept"),
    "validate": (38, "37 of 37 checks passed"),
}


def run_at(step_id: str, state: str, folder: Path | str = f"runs/{RUN}", run_state: str = "") -> RunState:
    """A run whose step `step_id` is in `state`: the steps before it are done, the later ones wait."""
    steps, reached = [], False
    for name, title, _seconds in _STEPS:
        seconds, detail = _DETAILS[name]
        if name == step_id:
            reached = True
            done = state == "done"
            steps.append(
                StepState(name, title, state, START + 80, seconds if done else 0.0, None, detail if done else "", 4711)
            )
        elif reached:
            steps.append(StepState(name, title, "waiting"))
        else:
            steps.append(StepState(name, title, "done", START, seconds, 0, detail))
    if state == "failed":
        steps = [replace(step, status=2, seconds=190.0) if step.state == "failed" else step for step in steps]
    over = state in ("failed", "stopped", "interrupted") or (step_id == "validate" and state == "done")
    return RunState(
        RUN, str(folder), PLAN, run_state or state, tuple(steps), START, START + 480 if over else 0.0,
        "make stopped in ompi/mca/btl: a header is missing." if state == "failed" else "",
    )  # fmt: skip


FAILURE = FailureCard(
    "make ended with exit status 2.", "btl_vader_xpmem.c, line 23", 8123,
    "btl_vader_xpmem.c:23:10: fatal error: xpmem.h: No such file or directory",
    "The header xpmem.h is missing: install the package that holds it, then resume.",
)  # fmt: skip
DECISIONS = (
    *(Decision(name, "keep", "") for name in ("fetch", "verify", "unpack", "configure")),
    Decision("make", "continue", "991 of 1,599 files are compiled"),
    *(Decision(name, "first", "") for name in ("install", "tune", "validate")),
)  # fmt: skip
TRIALS = (
    Trial("single-copy", "Single copy with CMA", "btl_vader_single_copy_mechanism = cma", "bandwidth", "GB/s",
          6.91, 12.53, 0.81, (0.74, 0.89), True, "Large messages are faster with one copy.",
          "5 pairs of runs, turn by turn, 4 MiB messages between two ranks", (6.9, 6.8, 7.0), (12.4, 12.5, 12.7)),
    Trial("eager", "Eager limit 8 KiB", "btl_vader_eager_limit = 8192", "latency", "µs", 0.36, 0.36, 0.004,
          (-0.02, 0.03), False, "No difference that can be told from noise.", "5 pairs of runs, turn by turn"),
)  # fmt: skip
TUNING = Tuning(
    PREFIX, "4.1.4", TRIALS, {"btl_vader_single_copy_mechanism": "cma"},
    (
        Written(f"{PREFIX}/etc/openmpi-mca-params.conf", "Parameter file", "mpiwizard uninstall --tuning"),
        Written(f"{PREFIX}/share/mpiwizard/env.sh", "Environment script", f"rm {PREFIX}/share/mpiwizard/env.sh"),
    ),
)  # fmt: skip
CHECKS = tuple(
    Check(f"ring-{ranks}", f"ring on {ranks} ranks", True, "the token came back", f"mpirun -n {ranks} ring")
    for ranks in (1, 2, 8)
)  # fmt: skip
_WSL2, _CLOUD = "guide-wsl2", "guide-cloud"
METRICS = (
    Metric("launcher-time", "Process start, launcher", "ms", 19.2, (18.1, 20.3), 7, "mpirun true, one rank",
           "7 starts after one that is not counted", "ok", "Between what the guide says of WSL2 and of a cloud.",
           (Expectation("launcher-time", _WSL2, "50–100 ms", "ms", 50, 100, remark="no source was found for it"),
            Expectation("launcher-time", _CLOUD, "5–10 ms", "ms", 5, 10, remark="no source was found for it"))),
    Metric("job-time", "Whole job, 2 ranks", "ms", 135, (131, 139), 7, "from mpirun to its end", "7 runs", "info",
           "Nobody published a value for this."),
    Metric("memory-bandwidth", "Memory bandwidth", "GB/s", 19.4, (18.6, 20.2), 5, "copy of 64 MiB, one core",
           "5 runs", "ok", "One core; the guide does not say how many it used.",
           (Expectation("memory-bandwidth", _WSL2, "12–15 GB/s", "GB/s", 12, 15),
            Expectation("memory-bandwidth", _CLOUD, "25–30 GB/s", "GB/s", 25, 30)), better="higher"),
    Metric("latency", "Latency, 2 ranks", "µs", 0.36, (0.35, 0.38), 9, "half of a round trip of 8 bytes",
           "9 runs of 10,000 round trips", "ok", "As shared memory should be.",
           curve=tuple((1 << power, 0.35 + (1 << power) / 9000) for power in range(3, 23))),
    Metric("latency-hosts", "Latency between hosts", "µs", None, None, 0, "needs two hosts", "", "none",
           "There is one host.",
           (Expectation("latency-hosts", _CLOUD, "1–2 µs", "µs", 1, 2, remark="with RDMA only"),)),
)  # fmt: skip
REPORT = Report(
    PREFIX, "4.1.4",
    "Open MPI 4.1.4 works on this machine: ranks talk through shared memory with CMA. "
    "Latency 0.36 µs, bandwidth 12.5 GB/s.",
    "WSL2, 8 usable cores", "2030-03-17T17:54:40Z", CHECKS, METRICS, TUNING,
)  # fmt: skip
CLAIM = Claim(3, "detect", "Keep sources off /mnt/c.", "correct", "Right, and this is why.")


class FixedStages:
    """Answers as told. `fails` maps the name of a call to the sentence it fails with.

    Detection stops before the fact of that number until `go_on` is set; the sources, if they are slow, until
    `sources_go_on` is.
    """

    def __init__(
        self,
        machine: Machine = MACHINE,
        run: RunState | None = None,
        *,
        options: tuple[Option, ...] = OPTIONS,
        fails: Mapping[str, str] | None = None,
        detecting_stops_at: int | None = None,
        slow_sources: bool = False,
        session: Session | None = None,
        choices: tuple[Choice, ...] = CHOICES,
    ) -> None:
        self.machine = machine
        self.run = run
        self.options = options
        self.fails = dict(fails or {})
        self.calls: list[tuple[Any, ...]] = []
        self.kept = session or Session()
        self.choices = choices
        self.go_on = threading.Event()
        self.sources_go_on = threading.Event()
        self._stops_at = detecting_stops_at
        if not slow_sources:
            self.sources_go_on.set()

    def _call(self, name: str, *values: Any) -> None:
        self.calls.append((name, *values))
        if name in self.fails:
            raise WizardError(self.fails[name], ExitCode.NOT_POSSIBLE_HERE)

    def called(self, name: str) -> int:
        return sum(call[0] == name for call in self.calls)

    def now(self) -> float:
        return START + 270

    def session(self) -> Session:
        return self.kept

    def remember(self, session: Session) -> None:
        self.kept = session or Session()

    def detect(self, listener: Frontend, wishes: Wishes) -> Machine:
        self._call("detect", dict(wishes.assume))
        facts = [_assumed(fact, dict(wishes.assume)) for fact in self.machine.facts if fact.group != "sources"]
        for place, fact in enumerate(facts):
            if place == self._stops_at:
                self.go_on.wait(timeout=20)
            listener.fact(fact)
        return replace(self.machine, facts=tuple(facts))

    def sources(self, machine: Machine, listener: Frontend) -> Machine:
        self._call("sources")
        self.sources_go_on.wait(timeout=20)
        facts = tuple(fact for fact in self.machine.facts if fact.group == "sources")
        for fact in facts:
            listener.fact(fact)
        return replace(machine, facts=(*machine.facts, *facts))

    def axes(self) -> dict[str, dict[str, str]]:
        return AXES

    def choose(self, machine: Machine, wishes: Wishes) -> tuple[Choice, ...]:
        self._call("choose", wishes.matters)
        return (self.choices[1], self.choices[0], *self.choices[2:]) if wishes.matters == "speed" else self.choices

    def plan(self, machine: Machine, choice: Choice, wishes: Wishes, switches: Mapping[str, bool]) -> Plan:
        self._call("plan", choice.id, dict(switches))
        plan = plan_for(choice, self.options, switches)
        return replace(plan, prefix=wishes.prefix) if wishes.prefix else plan

    def check(self, machine: Machine, plan: Plan) -> None:
        self._call("check")

    def start(self, plan: Plan) -> str:
        self._call("start", plan.configure_line)
        self.run = self.run or run_at("make", "running")
        return plan.run

    def runs(self) -> tuple[RunState, ...]:
        return (self.run,) if self.run is not None else ()

    def load_run(self, run_id: str) -> RunState:
        self._call("load_run")
        assert self.run is not None
        return self.run

    def stop(self, run_id: str) -> None:
        self._call("stop", run_id)
        self.run = run_at("make", "stopped", self.run.folder if self.run else "")

    def resume(self, run_id: str) -> None:
        self._call("resume", run_id)
        self.run = run_at("make", "running", self.run.folder if self.run else "")

    def decisions(self, run: RunState) -> tuple[Decision, ...]:
        return DECISIONS

    def failure(self, run: RunState) -> FailureCard | None:
        return FAILURE

    def usage(self, run: RunState) -> Usage | None:
        return Usage(197.0, 429_496_730, 16_642_998_272)

    def compilations(self, run: RunState) -> int:
        return 1599

    def _reached(self, run: RunState, step_id: str) -> bool:
        return any(step.id == step_id and step.state != "waiting" for step in run.steps)

    def trials(self, run: RunState) -> tuple[tuple[Trial, ...], Tuning | None]:
        if not self._reached(run, "tune"):
            return (), None
        return (TRIALS, TUNING) if self._reached(run, "validate") else (TRIALS[:1], None)

    def results(self, run: RunState) -> tuple[tuple[Check, ...], tuple[Metric, ...], Report | None]:
        if not self._reached(run, "validate"):
            return (), (), None
        return (CHECKS, METRICS, REPORT) if run.state == "done" else (CHECKS, METRICS[:2], None)

    def claims(self, numbers: tuple[int, ...]) -> tuple[Claim, ...]:
        return (CLAIM,) if 3 in numbers else ()


def _assumed(fact: Fact, assume: Mapping[str, str]) -> Fact:
    """The fact as it is when the person overrules it."""
    axis = fact.id.removeprefix("platform.")
    if axis not in assume:
        return fact
    name = AXES[axis].get(assume[axis], assume[axis])
    return replace(
        fact, value=assume[axis], text=f"{name}, as you said", read_from="you", raw=f"{axis}={assume[axis]}",
        contradictions=(f"Found here: {fact.text}.",),
    )  # fmt: skip


def write_make_log(folder: Path, compiled: int = 991) -> None:
    """A log of make as it looks while it compiles, with a coloured warning and a progress meter."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"  CC       btl_vader_{number:04}.lo" for number in range(compiled)]
    lines[-4] = "\x1b[01;35m\x1b[Kbtl_vader_fifo.h:122:14: warning: \x1b[munused variable 'prev' [-Wunused-variable]"
    lines.append(lines[0])
    (folder / "make.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
