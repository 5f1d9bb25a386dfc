"""The meter of a running step, on real processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from mpiwizard.worker.usage import UsageMeter

Start = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def shell() -> Iterator[Start]:
    """Starts shell commands; each is ended after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(commands: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["/bin/sh", "-c", commands, sys.executable], start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_commands_that_live_and_die_between_two_looks_are_counted(shell: Start) -> None:
    meter = UsageMeter(shell('while :; do "$0" -S -c "for i in range(400000): pass"; done').pid)
    assert meter.look().cpu is None
    time.sleep(1.0)
    cpu = meter.look().cpu
    assert cpu is not None
    assert cpu > 25  # one processor's worth, on a box that may be busy with other tests


def test_a_process_that_sleeps_uses_nothing(shell: Start) -> None:
    meter = UsageMeter(shell("sleep 60; :").pid)
    meter.look()
    time.sleep(0.3)
    assert meter.look().cpu == pytest.approx(0, abs=5)


def test_memory_is_that_of_the_whole_tree(shell: Start) -> None:
    meter = UsageMeter(shell('"$0" -S -c "import time; held = [0] * 7_000_000; time.sleep(60)"; :').pid)
    give_up = time.monotonic() + 10
    while (usage := meter.look()).memory < 50_000_000:
        assert time.monotonic() < give_up, usage
        time.sleep(0.05)
    assert usage.memory < usage.memory_of_box


def test_a_step_that_has_ended_uses_nothing(shell: Start) -> None:
    ended = shell(":")
    ended.wait()
    usage = UsageMeter(ended.pid).look()
    assert (usage.cpu, usage.memory) == (None, 0)
