"""Every command of the real box ends: by itself, by its deadline, or by being left behind."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from mpiwizard.core.host import MOST_OUTPUT, RealHost


def test_how_a_command_ended_is_a_value() -> None:
    host = RealHost()
    assert host.run(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"]).status == 3
    assert host.run(["no-such-program"]).status == 127
    assert host.run(["/etc/passwd"]).status == 126
    assert host.run(["cat"], given="text").output == "text"


@pytest.mark.parametrize("stubborn", ["", "trap '' TERM; "])
def test_a_deadline_ends_a_command_and_keeps_what_it_said(stubborn: str) -> None:
    begin = time.monotonic()
    result = RealHost().run(["/bin/sh", "-c", f"{stubborn}echo said; while :; do sleep 0.1; done"], timeout=0.5)
    assert result.timed_out and not result.succeeded and result.output == "said\n"
    assert time.monotonic() - begin < 6


def test_a_grandchild_that_holds_the_output_is_left_behind(tmp_path: Path) -> None:
    begin = time.monotonic()
    script = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 60' & sleep 60"
    result = RealHost().run(["/bin/sh", "-c", script], timeout=0.5)
    assert result.timed_out and time.monotonic() - begin < 8
    RealHost().run(["kill", (tmp_path / "pid").read_text().strip()])


def test_no_command_escapes_that_is_started_in_the_moment_the_person_leaves() -> None:
    for delay in range(40):
        host = RealHost()
        thread = threading.Thread(target=host.run, args=(["sleep", "60"],), kwargs={"timeout": 60.0}, daemon=True)
        thread.start()
        time.sleep(delay / 10_000)
        host.end_commands()
        thread.join(5)
        assert not thread.is_alive()


@pytest.mark.parametrize("stream", [1, 2])
def test_a_command_that_prints_without_end_is_ended_and_its_beginning_kept(stream: int) -> None:
    begin = time.monotonic()
    result = RealHost().run(["/bin/sh", "-c", f"echo begin >&{stream}; exec yes {'x' * 500} >&{stream}"], timeout=20)
    assert time.monotonic() - begin < 10
    assert not result.succeeded and not result.timed_out
    kept = (result.output, result.errors)[stream - 1]
    assert kept.startswith("begin\n") and len(kept) == MOST_OUTPUT


def test_a_command_is_given_more_than_a_pipe_holds_and_may_leave_it() -> None:
    given = "line\n" * 100_000
    assert RealHost().run(["cat"], given=given).output == given
    assert RealHost().run(["head", "-n", "1"], given=given).output == "line\n"


@pytest.mark.parametrize("argv", [["echo", "nothing\0more"], ["echo\0"], ["echo", "\ud800"]])
def test_what_no_command_line_can_hold_is_not_started(argv: list[str]) -> None:
    assert RealHost().run(argv).status == 126
