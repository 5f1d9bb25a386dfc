"""What the worker costs: a build by `mpiwizard run` against the same commands typed by hand, one after the other.

    python tests/bench/build_overhead.py FOLDER [RUN]

Takes the newest finished run (or the named one), does its configure, make and install again by hand
with the same arguments and environment in FOLDER, and prints both times and their ratio. About as
long as the run itself; the machine should have nothing else to do.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from mpiwizard.core.build.environment import step_environment
from mpiwizard.core.build.runs import load_run, newest_run
from mpiwizard.core.context import Folders

STEPS = ("configure", "make", "install")


def main() -> None:
    folder = Path(sys.argv[1]).absolute()
    folders = Folders.of_person()
    run = load_run(folders, sys.argv[2]) if len(sys.argv) > 2 else newest_run(folders)
    worker = {step.id: step.seconds for step in run.steps}
    build, prefix = folder / "build", folder / "prefix"
    build.mkdir(parents=True)
    by_hand = {}
    for name in STEPS:
        step = run.plan.step(name)
        argv = [argument.replace(run.plan.prefix, str(prefix)) for argument in step.argv]
        environment = step_environment(os.environ, step.environment, folder)
        with (folder / f"{name}.log").open("wb") as log:
            started = time.monotonic()
            subprocess.run(argv, cwd=build, env=environment, stdout=log, stderr=log, check=True)
            by_hand[name] = time.monotonic() - started
        print(f"{name}: {worker[name]:.1f} s by mpiwizard, {by_hand[name]:.1f} s by hand", flush=True)
    first, second = (sum(times[name] for name in STEPS) for times in (worker, by_hand))
    print(f"all three: {first:.1f} s against {second:.1f} s, ratio {first / second:.3f}")


if __name__ == "__main__":
    main()
