"""The batch scheduler whose job we are in: it decides on hosts and slots, and ends what runs too long."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, to_builtins

from mpiwizard.core.detect.facts import Probe, Survey, make_fact, whole_number
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _, ngettext

Environment = Mapping[str, str]


class Job(Struct, frozen=True):
    """The job we are in. `nodes` and `tasks` are None where the scheduler does not tell."""

    name: str  # of the scheduler
    job: str
    nodes: int | None = None
    tasks: int | None = None


def slurm_job(_host: Host, environment: Environment) -> Job | None:
    job = environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID")
    if not job:
        return None
    nodes = _first_number(environment, "SLURM_JOB_NUM_NODES", "SLURM_NNODES")
    return Job("Slurm", job, nodes, _first_number(environment, "SLURM_NTASKS", "SLURM_NPROCS"))


def pbs_job(host: Host, environment: Environment) -> Job | None:
    """PBS and Torque write a line into a file for each CPU, with the name of its host."""
    job = environment.get("PBS_JOBID")
    if not job:
        return None
    lines = (host.read(environment.get("PBS_NODEFILE", "")) or "").split()
    return Job("PBS", job, len(set(lines)) or None, len(lines) or None)


def lsf_job(_host: Host, environment: Environment) -> Job | None:
    """LSF names a host once for each slot."""
    job = environment.get("LSB_JOBID")
    if not job:
        return None
    hosts = environment.get("LSB_HOSTS", "").split()
    if not hosts:  # a long list is left out; then a count stands behind each host
        words = environment.get("LSB_MCPU_HOSTS", "").split()
        hosts = [
            name
            for name, count in zip(words[::2], words[1::2], strict=False)
            for _slot in range(min(whole_number(count) or 1, 1 << 12))
        ]
    return Job("LSF", job, len(set(hosts)) or None, len(hosts) or None)


def gridengine_job(host: Host, environment: Environment) -> Job | None:
    """Grid Engine writes a line for each host: name, slots, queue."""
    job = environment.get("JOB_ID")
    if not job or not (environment.get("PE_HOSTFILE") or environment.get("SGE_ROOT")):
        return None
    lines = re.findall(r"^(\S+)\s+(\d{1,6})\b", host.read(environment.get("PE_HOSTFILE", "")) or "", re.MULTILINE)
    tasks = sum(int(slots) for _name, slots in lines) or _first_number(environment, "NSLOTS")
    return Job("Grid Engine", job, len({name for name, _slots in lines}) or None, tasks)


def flux_job(_host: Host, environment: Environment) -> Job | None:
    job = environment.get("FLUX_JOB_ID")
    if not job:
        return None
    nodes = _first_number(environment, "FLUX_JOB_NNODES")
    return Job("Flux", job, nodes, _first_number(environment, "FLUX_JOB_SIZE"))


def kubernetes_job(_host: Host, environment: Environment) -> Job | None:
    return Job("Kubernetes", environment.get("HOSTNAME", "")) if "KUBERNETES_SERVICE_HOST" in environment else None


def _first_number(environment: Environment, *names: str) -> int | None:
    return next((number for name in names if (number := whole_number(environment.get(name))) is not None), None)


_READERS: tuple[Callable[[Host, Environment], Job | None], ...] = (
    slurm_job, pbs_job, lsf_job, gridengine_job, flux_job, kubernetes_job,
)  # fmt: skip
_SHOWN = re.compile(  # variables that tell of the job and its size
    r"SLURM_JOB_?ID|SLURM_STEP_ID|SLURM_(?:JOB_NUM_NODES|NNODES|NTASKS|NPROCS|JOB_CPUS_PER_NODE|TASKS_PER_NODE)|PBS_JOBID|"
    r"PBS_NODEFILE|PBS_ENVIRONMENT|LSB_JOBID|LSB_HOSTS|LSB_MCPU_HOSTS|JOB_ID|PE_HOSTFILE|NSLOTS|FLUX_JOB_\w+|"
    r"KUBERNETES_SERVICE_HOST"
)


def find_job(host: Host) -> Job | None:
    """The job we are in, of the first scheduler whose marks are there."""
    jobs = (read(host, host.environment) for read in _READERS)
    return next((job for job in jobs if job is not None), None)


def read_scheduler(survey: Survey) -> Iterator[Fact]:
    environment = survey.host.environment
    see = "env | grep -E '^(SLURM|PBS|LSB|SGE|FLUX|KUBERNETES)_|^JOB_ID='"
    job = find_job(survey.host)
    if job is None:
        text = _("none")
        yield make_fact("environment.scheduler", None, text, "ok", read_from=_("environment"), see_yourself=see)
        return
    step = job.name == "Slurm" and "SLURM_STEP_ID" in environment
    usable = survey.found.value("cpu.usable")
    fewer = job.tasks is not None and job.nodes == 1 and usable is not None and job.tasks < usable
    yield make_fact(
        "environment.scheduler",
        to_builtins(job),
        _job_text(job),
        "info" if job.name == "Kubernetes" else "attention",
        read_from=_("environment"),
        raw="\n".join(f"{name}={value}" for name, value in sorted(environment.items()) if _SHOWN.fullmatch(name)),
        see_yourself=see,
        meaning=" ".join(_meanings(job, step, fewer)),
        action=_action(job),
    )


def _job_text(job: Job) -> str:
    parts = [_("{name} job {job}").format(name=job.name, job=job.job) if job.job else job.name]
    if job.name == "Kubernetes":
        parts = [_("Kubernetes pod {job}").format(job=job.job).strip()]
    if job.nodes is not None:
        parts.append(ngettext("{count} host", "{count} hosts", job.nodes).format(count=job.nodes))
    if job.tasks is not None:
        parts.append(ngettext("{count} task", "{count} tasks", job.tasks).format(count=job.tasks))
    return ", ".join(parts)


def _meanings(job: Job, step: bool, fewer: bool) -> Iterator[str]:
    if job.name == "Kubernetes":
        yield _(
            "A pod can be ended and moved at any time, and what was built in it is gone unless it lies on a volume."
        )
        return
    yield _("A build ends with the job, at its time limit at the latest.")
    yield {
        "Slurm": _(
            "mpirun takes hosts and slots from the allocation, and starts the other hosts through srun; programs "
            "started by srun itself need srun --mpi=pmix."
        ),
        "PBS": _(
            "mpirun takes hosts and slots from the job: that of 4.x when Open MPI was built with --with-tm, else those "
            "of this host; that of 5.0.11 reads them from the job's file."
        ),
        "LSF": _(
            "mpirun takes hosts and slots from the job when Open MPI was built with --with-lsf, else this host's."
        ),
        "Grid Engine": _(
            "mpirun takes hosts and slots from the job when Open MPI was built with --with-sge, else this host's."
        ),
        "Flux": _("Open MPI 4.x and 5.0 do not ask Flux for hosts and slots: mpirun takes those of this host."),
    }[job.name]
    if fewer:
        yield _("Ranks beyond the tasks of the job are refused: there are not enough slots.")
    if step:
        # open-mpi/ompi issue 11946: 4.1.4 hangs silently, since it starts its helpers by srun once more.
        yield _("This shell was started by srun, and an mpirun in it may hang; start it from salloc or sbatch.")


def _action(job: Job) -> str:
    if job.name == "Kubernetes":
        return _("Build into a volume, or in the image: mpiwizard plan --script.")
    return _(
        "Build where no job ends it, such as on a login node that allows it, or with time enough; then use it here."
    )


PROBES = (Probe(("environment.scheduler",), read_scheduler, ("cpu.usable",)),)
