"""How long a person waits: `mpiwizard --version` and the first paint, each as a ratio taken in turn.

    python tests/bench/startup.py [RUNS]

Run by hand in the environment mpiwizard is installed in; the machine should have nothing else to do.
The ratios are to `python -c pass` and to `python -c "import textual.app"`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pexpect

PYTHON = sys.executable
MPIWIZARD = str(Path(PYTHON).parent / "mpiwizard")


def seconds(argv: list[str]) -> float:
    """Time of a whole process."""
    started = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def first_paint() -> float:
    """Time until the stage rail is on the terminal, in a fresh home."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "TERM": "xterm-256color", "HOME": home, "XDG_STATE_HOME": home}
        started = time.perf_counter()
        child = pexpect.spawn(MPIWIZARD, ["--offline"], dimensions=(24, 80), env=environment)
        child.expect(b"Validate", timeout=30)
        passed = time.perf_counter() - started
        child.close(force=True)
        return passed


def compare(name: str, ours: Callable[[], float], other: Callable[[], float], runs: int) -> None:
    """Print medians of both and the median of the ratios, pair by pair."""
    ours(), other()
    pairs = [(ours(), other()) for _run in range(runs)]
    ratio = statistics.median(first / second for first, second in pairs)
    first, second = (1000 * statistics.median(side) for side in zip(*pairs, strict=True))
    print(f"{name}: {first:.0f} ms against {second:.0f} ms, ratio {ratio:.2f} (median of {runs} pairs)")


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    compare("--version", lambda: seconds([MPIWIZARD, "--version"]), lambda: seconds([PYTHON, "-c", "pass"]), runs)
    compare("first paint", first_paint, lambda: seconds([PYTHON, "-c", "import textual.app"]), runs)


if __name__ == "__main__":
    main()
