"""`python -m mpiwizard.worker run FOLDER` drives a run; `… step NAME FOLDER` does one of our own steps."""

from __future__ import annotations

import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Exit status of the worker or of the step."""
    if arguments[:1] == ["run"] and len(arguments) == 2:
        from mpiwizard.worker.runner import run

        return run(Path(arguments[1]))
    if arguments[:1] == ["step"] and len(arguments) == 3:
        from mpiwizard.worker.steps import run_step

        return run_step(arguments[1], Path(arguments[2]))
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
