"""How long detection takes: here, beside the slowest command it runs, and on each recorded machine.

    python tests/bench/detect.py

Limits: `detect --json` at most 1.0 s and at most 1.3 times the slowest command plus start-up; a recorded
machine at most 0.3 s. Start-up is the same command on a recording that holds nothing.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from mpiwizard.core.context import Context, Wishes
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.recordings import RememberingHost

ROUNDS = 7
MACHINES = Path(__file__).resolve().parents[1] / "machines"


def seconds(*arguments: str) -> float:
    """The median wall time of `mpiwizard detect --json` with these arguments."""
    command = [sys.executable, "-m", "mpiwizard", "detect", "--json", *arguments]
    times = []
    for _round in range(ROUNDS):
        started = perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(perf_counter() - started)
    return median(times)


def commands() -> list[tuple[float, str]]:
    """What detection runs here, with the median of each, the slowest first."""
    context = Context.of_person(offline=True)
    times: dict[str, list[float]] = {}
    for _round in range(ROUNDS):
        host = RememberingHost(context.host)
        survey_machine(context, Wishes(), None, host=host)
        for question, answer in host.answers().items():
            if question[0] == "run":
                times.setdefault(" ".join(question[1:]), []).append(answer.seconds)
    return sorted(((median(found), line) for line, found in times.items()), reverse=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as empty:
        (Path(empty) / "root").mkdir()
        startup = seconds("--root", empty)
    here = seconds()
    slowest = commands()
    print(f"start-up {startup:.3f} s")
    for duration, line in slowest[:5]:
        print(f"  {duration:.3f} s  {line[:90]}")
    print(f"detect --json here: {here:.3f} s (limit 1.0)")
    print(f"over slowest command and start-up: {here / (slowest[0][0] * 1.3 + startup):.2f} (limit 1)")
    recorded = sorted((seconds("--root", str(path)), path.name) for path in MACHINES.iterdir() if path.is_dir())
    print(f"recorded machines, with start-up: {recorded[0][0]:.3f} to {recorded[-1][0]:.3f} s ({recorded[-1][1]})")
    inside = []
    for path in (path for path in MACHINES.iterdir() if path.is_dir()):
        context = Context.of_recording(path)
        inside.append((median(survey_machine(context, Wishes(), None).seconds for _round in range(3)), path.name))
    print(f"recorded machines, detection alone: at most {max(inside)[0]:.3f} s ({max(inside)[1]}) (limit 0.3)")


if __name__ == "__main__":
    main()
