"""The whole wizard in a real terminal: a person's keys in, what is on the screen out, real processes behind it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e.term import Term
from tests.worker.conftest import MINIATURE

from mpiwizard import worker
from mpiwizard.core.build.runs import list_runs
from mpiwizard.core.context import Context, Folders
from mpiwizard.core.host import RealHost

ENTER, ESCAPE, CONTROL_Q, CONTROL_Z = "\r", "\x1b", "\x11", "\x1a"
Open = Callable[..., Term]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    folders = Folders(*(tmp_path / name / "mpiwizard" for name in ("state", "cache", "config")))
    return Context(RealHost(), folders, offline=True)


@pytest.fixture
def wizard(tmp_path: Path, context: Context) -> Iterator[Open]:
    """Open `mpiwizard …`, or another program, in a terminal. `path` goes before PATH. All is ended after the test."""
    opened: list[Term] = []

    def start(
        *arguments: str,
        path: str = "",
        program: tuple[str, ...] = (sys.executable, "-m", "mpiwizard"),
        columns: int = 80,
        rows: int = 24,
        **environment: str,
    ) -> Term:
        term = Term(
            [*program, *arguments],
            columns,
            rows,
            HOME=str(tmp_path),
            XDG_STATE_HOME=str(tmp_path / "state"),
            XDG_CACHE_HOME=str(tmp_path / "cache"),
            XDG_CONFIG_HOME=str(tmp_path / "config"),
            PYTHONPATH=str(Path(__file__).parents[2] / "tui"),
            PATH=f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"],
            **environment,
        )
        opened.append(term)
        return term

    yield start
    for term in opened:
        term.close()
    for run in list_runs(context.folders):
        if run.active:
            worker.stop(context, run.id)


@pytest.fixture
def slow_compiler(tmp_path: Path) -> str:
    """A folder with a gcc that takes a second longer for each file of the miniature."""
    compiler = tmp_path / "slow" / "gcc"
    compiler.parent.mkdir()
    compiler.write_text('#!/bin/sh\ncase "$*" in *src/part*) sleep 1 ;; esac\nexec /usr/bin/gcc "$@"\n')
    compiler.chmod(0o755)
    return str(compiler.parent)


def start_arguments(tmp_path: Path) -> tuple[str, ...]:
    return ("--offline", "--archive", str(MINIATURE), "--prefix", str(tmp_path / "mpi"))


def to_the_build(term: Term) -> None:
    """From the first screen to a running build: Enter on each of the first three stages."""
    term.wait_for("Enter Choose")
    term.press(ENTER)
    term.wait_for("Best for you here")
    term.press(ENTER)
    term.wait_for("Never asks for root")
    term.press(ENTER)
    term.wait_for("Building Open MPI 5.0.11")


def test_three_enters_lead_from_nothing_to_a_validated_open_mpi(
    wizard: Open, tmp_path: Path, wheel_copy: Path
) -> None:
    term = wizard(*start_arguments(tmp_path), path=str(wheel_copy / "bin"))
    to_the_build(term)
    term.wait_for("GUIDE: WSL2", 150)
    term.wait_for("works on this machine", 60)
    assert (tmp_path / "mpi" / "share" / "mpiwizard" / "report.json").is_file()
    term.press("q")
    assert term.status() == 0


def test_leaving_a_build_says_how_to_come_back_and_attach_shows_it(
    wizard: Open, tmp_path: Path, context: Context, slow_compiler: str
) -> None:
    term = wizard(*start_arguments(tmp_path), path=slow_compiler)
    to_the_build(term)
    term.wait_for("make")
    term.press("q")
    assert term.status() == 0
    assert "mpiwizard attach" in term.text
    (run,) = list_runs(context.folders)
    assert run.state == "running"
    again = wizard("attach")
    again.wait_for("Building Open MPI 5.0.11")
    again.close()
    new = wizard()
    new.wait_for("Building Open MPI 5.0.11")


def test_closing_the_window_leaves_the_build_running(
    wizard: Open, tmp_path: Path, context: Context, slow_compiler: str
) -> None:
    term = wizard(*start_arguments(tmp_path), path=slow_compiler)
    to_the_build(term)
    term.child.kill(signal.SIGHUP)
    term.status()
    time.sleep(0.5)
    (run,) = list_runs(context.folders)
    assert run.state == "running"


def test_control_q_asks_while_a_build_runs(wizard: Open, tmp_path: Path, slow_compiler: str) -> None:
    term = wizard(*start_arguments(tmp_path), path=slow_compiler)
    to_the_build(term)
    term.press(CONTROL_Q)
    term.wait_for("goes on")
    term.press(ESCAPE)
    term.wait_for("Building Open MPI 5.0.11")


def test_after_a_crash_the_wizard_says_what_is_done_and_resumes(
    wizard: Open, tmp_path: Path, context: Context, slow_compiler: str
) -> None:
    term = wizard(*start_arguments(tmp_path), path=slow_compiler)
    to_the_build(term)
    (run,) = list_runs(context.folders)
    give_up = time.monotonic() + 30
    while len(list(Path(run.plan.build_folder).glob("src/*.o"))) < 4:
        term.pump(0.05)
        assert time.monotonic() < give_up, term.text
    term.child.kill(signal.SIGKILL)
    for pid in worker._processes_of(run, with_commands=True):
        os.kill(pid, signal.SIGKILL)
    again = wizard(path=slow_compiler)
    again.wait_for("cut off in make")
    again.wait_for("of 40 files are compiled")
    again.press("r")
    again.wait_for("Building Open MPI 5.0.11")
    assert list_runs(context.folders)[0].state == "running"


def test_sigterm_restores_the_terminal(wizard: Open, tmp_path: Path) -> None:
    term = wizard(*start_arguments(tmp_path))
    term.wait_for("Enter Choose")
    term.child.kill(signal.SIGTERM)
    assert term.status() == 143
    for restored in (b"\x1b[?1049l", b"\x1b[?25h"):  # the main screen, the cursor
        assert term.raw.rfind(restored) > term.raw.rfind(restored[:-1] + (b"h" if restored.endswith(b"l") else b"l"))


def test_a_dumb_terminal_gets_one_sentence(wizard: Open) -> None:
    term = wizard(TERM="dumb")
    assert term.status() == 2
    assert "TERM is dumb" in term.text.replace("\n", "")


@pytest.mark.parametrize(("columns", "rows"), [(59, 24), (80, 15), (40, 10), (20, 5)])
def test_a_terminal_that_is_too_small_says_so_and_quits_cleanly(wizard: Open, columns: int, rows: int) -> None:
    term = wizard("--offline", columns=columns, rows=rows)
    term.wait_for("80x24")
    term.press(CONTROL_Q)
    assert term.status() == 0


def test_without_any_source_the_wizard_says_what_to_do(wizard: Open) -> None:
    term = wizard("--offline")
    term.wait_for("--archive")
    term.press(CONTROL_Q)
    assert term.status() == 0


def test_control_z_gives_the_shell_back_and_fg_the_wizard(
    wizard: Open, tmp_path: Path, context: Context, slow_compiler: str
) -> None:
    command = shlex.join([sys.executable, "-m", "mpiwizard", *start_arguments(tmp_path)])
    term = wizard(path=slow_compiler, program=("/bin/bash", "--norc", "--noprofile", "-i"))
    term.press(command + ENTER)
    to_the_build(term)
    term.press(CONTROL_Z)
    term.wait_for("Stopped")
    (run,) = list_runs(context.folders)
    assert run.state == "running"
    term.press("fg" + ENTER)
    term.wait_for("Building Open MPI 5.0.11")
    term.press("q")
    term.wait_for("mpiwizard attach")
    term.press("exit" + ENTER)
    assert term.status() == 0
