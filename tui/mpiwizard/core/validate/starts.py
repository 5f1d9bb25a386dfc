"""Starting a process is four things: the operating system alone, the launcher, MPI_Init, a whole job.

All four are measured, turn by turn, and shown apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mpiwizard.core.i18n import _
from mpiwizard.core.probes import ProbeRun, Probes
from mpiwizard.core.validate.measured import Judge, compile_failure, measured_with
from mpiwizard.core.validate.model import Metric

TURNS = 7


def start_metrics(probes: Probes, judge: Judge) -> Iterator[Metric]:
    """The four kinds of start. MPI_Init tells its own time in the runs of the whole job."""
    true = probes.host.which("true") or "/bin/true"
    missing = compile_failure(probes, "start")
    whole_job = probes.command(2, [str(probes.folder / "start")], {})
    commands = {"fork-exec-time": [true], "launcher-time": probes.command(1, [true], {})}
    if not missing:
        commands["whole-job-time"] = whole_job
    runs = _in_turn(probes, commands)
    commands |= {"whole-job-time": whole_job, "init-time": whole_job}
    for name, label, definition in _kinds_of_start():
        of_job = runs.get("whole-job-time" if name == "init-time" else name, [])
        if name == "init-time":
            samples = [ms for run in of_job for record in run.records for ms in record.get("samples", ())]
        else:
            samples = [1000 * run.seconds for run in of_job]
        failure = next((run.failure for run in of_job if run.failure), "" if of_job else missing)
        method = _("{turns} turns after one to warm up, all kinds of start in each.").format(turns=TURNS)
        measured = measured_with(probes, samples, method, commands[name], failure)
        yield judge.metric(name, label, "ms", definition, measured, claims=(45,))


def _in_turn(probes: Probes, commands: Mapping[str, Sequence[str]]) -> dict[str, list[ProbeRun]]:
    """Run the commands turn by turn, so that all see the same state of the machine.

    A command that fails is not run again; its failure is then its only run.
    """
    runs: dict[str, list[ProbeRun]] = {name: [] for name in commands}
    for turn in range(-1, TURNS):
        for name, command in commands.items():
            if not any(run.failure for run in runs[name]):
                run = probes.run_command(command)
                if run.failure:
                    runs[name] = [run]
                elif turn >= 0:
                    runs[name].append(run)
    return runs


def _kinds_of_start() -> tuple[tuple[str, str, str], ...]:
    """Id, label and definition."""
    return (
        (
            "fork-exec-time",
            _("Process start, system alone"),
            _("The time to start /bin/true without MPI and to see it end."),
        ),
        (
            "launcher-time",
            _("Process start, launcher"),
            _("The time of a whole mpirun of /bin/true on one rank: the launcher without any MPI."),
        ),
        (
            "init-time",
            _("MPI_Init, 2 ranks"),
            _("The time MPI_Init takes in rank 0 of a job with two ranks."),
        ),
        (
            "whole-job-time",
            _("Whole job, 2 ranks"),
            _("The time of a whole mpirun of two ranks that only call MPI_Init and MPI_Finalize."),
        ),
    )
