"""One real build of the distribution's Open MPI for all tests marked real.

It is made the way a person would: `mpiwizard run --yes` without a screen, killed once in the middle
of make with everything it had started, and resumed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from mpiwizard.core.build.model import RunState
from mpiwizard.core.build.resume import compiled_so_far
from mpiwizard.core.build.runs import newest_run
from mpiwizard.core.context import Context, Folders
from mpiwizard.core.errors import WizardError
from mpiwizard.core.host import RealHost

HOUR = 3600.0


class RealRun(Struct, frozen=True):
    """The installed Open MPI, and what was seen while it was built."""

    context: Context
    prefix: Path
    compiled_before_the_kill: dict[str, int]  # path -> time stamp in ns
    killed: RunState
    finished: RunState
    output: str  # standard output of the resume: the report
    talk: str
    status: int

    def environment(self) -> dict[str, str]:
        return environment(self.context.folders)


def environment(folders: Folders) -> dict[str, str]:
    return {
        **os.environ,
        "XDG_STATE_HOME": str(folders.state.parent),
        "XDG_CACHE_HOME": str(folders.cache.parent),
        "XDG_CONFIG_HOME": str(folders.config.parent),
        "PYTHONPATH": str(Path(__file__).parents[2] / "tui"),
    }


def mpiwizard(folders: Folders, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mpiwizard", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folders),
        start_new_session=True,
    )


@pytest.fixture(scope="session")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRun]:
    top = tmp_path_factory.mktemp("real")
    folders = Folders(*(top / name / "mpiwizard" for name in ("state", "cache", "config")))
    context = Context(RealHost(), folders)
    prefix = top / "openmpi"
    first = mpiwizard(folders, "run", "--yes", "--source", "distro", "--prefix", str(prefix))
    run = _wait_for_the_middle_of_make(first, folders)
    _kill_everything(first, run)
    killed = newest_run(folders)
    compiled = {str(path): path.stat().st_mtime_ns for path in Path(run.plan.build_folder).rglob("*.lo")}
    resumed = mpiwizard(folders, "resume", "--json")
    output, talk = resumed.communicate(timeout=HOUR)
    print(talk, file=sys.stderr)
    yield RealRun(context, prefix, compiled, killed, newest_run(folders), output, talk, resumed.returncode)


def _wait_for_the_middle_of_make(process: subprocess.Popen[str], folders: Folders) -> RunState:
    give_up = time.monotonic() + HOUR / 2
    while time.monotonic() < give_up:
        if process.poll() is not None:
            assert process.stderr is not None
            pytest.fail(f"the run ended early: {process.stderr.read()}")
        try:
            run = newest_run(folders)
        except WizardError:
            run = None
        if run and run.current and run.current.id == "make" and compiled_so_far(Path(run.plan.build_folder)) > 400:
            return run
        time.sleep(1)
    pytest.fail("make did not get to its middle within half an hour")


def _kill_everything(process: subprocess.Popen[str], run: RunState) -> None:
    from mpiwizard.worker import _processes_of

    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    give_up = time.monotonic() + 20
    while (alive := list(_processes_of(run, with_commands=True))) and time.monotonic() < give_up:
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.1)
