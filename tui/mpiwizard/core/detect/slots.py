"""How many ranks mpirun starts when nobody says a number, and whether the box can carry them.

Tried with Open MPI 4.1.4 (its own hwloc 2.0.1) and 5.0.11 (its own 2.7.1), on a box and on the trees that
hwloc's authors recorded: both take one slot for each core hwloc sees. hwloc leaves out what a cpuset forbids,
but sees neither a quota nor an affinity mask, and binds ranks to CPUs outside of the mask. Where it sees no
cores there are no slots. In a Slurm job both take Slurm's tasks instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpiwizard.core.detect.cgroups import cpuset_for_hwloc
from mpiwizard.core.detect.cpu import allowed_cpus
from mpiwizard.core.detect.facts import Probe, Survey, make_fact, unknown_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.detect.topology import CpuSet, Topology, read_topology
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _


def parse_tasks_per_node(text: str) -> tuple[int, ...] | None:
    """Slurm's tasks of each node, such as `4(x2),3`; None for another shape."""
    tasks: list[int] = []
    for part in text.strip().split(","):
        found = re.fullmatch(r"([0-9]{1,6})(?:\(x([0-9]{1,5})\))?", part)
        if found is None:
            return None
        tasks += [int(found[1])] * int(found[2] or 1)
    return tuple(tasks)


def cpus_for_hwloc(host: Host, topology: Topology, version2: bool) -> CpuSet:
    """The CPUs that hwloc shows to Open MPI. `version2`: whether it knows control groups of version 2."""
    cpuset = cpuset_for_hwloc(host, version2=version2)
    return topology.threads if cpuset is None else topology.threads & cpuset[0]


def _see(survey: Survey) -> str:
    return f"mpirun {'--allow-run-as-root ' if survey.root else ''}hostname | wc -l"


def read_slots(survey: Survey) -> Iterator[Fact]:
    if "SLURM_JOBID" in survey.host.environment:
        yield _slurm(survey)
        return
    topology = read_topology(survey.host)
    if topology.core_files == ("/proc/cpuinfo",) and not topology.sockets:
        why = _("/sys shows no cores, where hwloc looks for them; give mpirun -n and --use-hwthread-cpus")
        yield unknown_fact("cpu.slots", why, read_from="/sys/devices/system/cpu", see_yourself=_see(survey))
        return
    yield _by_cores(survey, topology)


def _by_cores(survey: Survey, topology: Topology) -> Fact:
    seen = {"4": cpus_for_hwloc(survey.host, topology, False), "5": cpus_for_hwloc(survey.host, topology, True)}
    slots = {series: len(topology.cores_of(cpus)) for series, cpus in seen.items()}
    most = max(slots.values())
    text = str(most)
    if len(set(slots.values())) > 1:
        text = _("{four} in Open MPI 4, {five} in 5").format(four=slots["4"], five=slots["5"])
    carried = _ranks_at_a_time(survey, most)
    too_many = most > carried
    meaning, action = _("One for each core."), ""
    if not topology.cores:
        meaning = _("hwloc finds threads but no cores here, so that mpirun has no slots and starts nothing.")
        action = "mpirun --use-hwthread-cpus ./program"
    elif too_many:
        text = _("{slots}; {count} can run at a time").format(slots=text, count=carried)
        # Ranks are bound to CPUs hwloc sees, those first that come first, whether they are ours or not.
        unbound = " --bind-to none" if any(cpus - allowed_cpus(survey.host)[0] for cpus in seen.values()) else ""
        meaning = _(
            "mpirun counts cores and sees neither a quota nor an affinity mask: without -n it starts more ranks than "
            "can run here at a time, and those that wait take the time of those that work."
        )
        action = f"mpirun -n {carried}{unbound} ./program"
    if slots["4"] > slots["5"]:
        meaning += " " + _("The hwloc inside Open MPI 4.1 does not know the cpusets of control groups version 2.")
    if {"PBS_JOBID", "LSB_JOBID"} & survey.host.environment.keys():
        meaning += " " + _("An Open MPI that was built with the scheduler's library takes the slots of this job.")
    return make_fact(
        "cpu.slots",
        slots,
        text,
        "attention" if too_many or not topology.cores else "info",
        read_from=_("concluded from the facts above"),
        see_yourself=_see(survey),
        meaning=meaning,
        action=action,
        rests_on=("cpu.online", "cpu.affinity", "cpu.quota", "cpu.cores", "cpu.usable"),
        claims=(19, 57, 58),
    )


def _ranks_at_a_time(survey: Survey, otherwise: int) -> int:
    """As many as there are cores, and no more than the quota lets run."""
    usable = int(survey.found.value("cpu.usable", otherwise))
    return max(1, min(int(survey.found.value("cpu.cores", usable)), usable))


def _slurm(survey: Survey) -> Fact:
    """Slots of a Slurm job: its tasks, on all its nodes."""
    name = "SLURM_TASKS_PER_NODE"
    text = survey.host.environment.get(name, "")
    tasks = parse_tasks_per_node(text)
    see = f"echo ${name}"
    if tasks is None:
        why = _("this is a Slurm job, but ${name} does not tell its tasks").format(name=name)
        return unknown_fact("cpu.slots", why, read_from=f"${name}", raw=text, see_yourself=see)
    slots = sum(tasks)
    carried = _ranks_at_a_time(survey, slots)
    too_many = len(tasks) == 1 and slots > carried
    shown = _("{slots}, from Slurm").format(slots=slots)
    return make_fact(
        "cpu.slots",
        {"4": slots, "5": slots},
        _("{slots}; {count} can run at a time").format(slots=shown, count=carried) if too_many else shown,
        "attention" if too_many else "info",
        read_from=f"${name}",
        raw=f"{name}={text}",
        see_yourself=see,
        meaning=_("In a Slurm job mpirun takes the job's tasks as slots (salloc or sbatch -n), not the cores."),
        action=f"mpirun -n {carried} ./program" if too_many else "",
        claims=(57, 58),
    )


PROBES = (Probe(("cpu.slots",), read_slots, ("cpu.online", "cpu.affinity", "cpu.quota", "cpu.cores", "cpu.usable")),)
