"""What `detect` prints: for a terminal of 80 columns, for a pipe, with and without evidence."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace
from tests.ui.fixed import FACTS, MACHINE, NOTHING_REACHABLE

from mpiwizard.core.detect.model import Machine
from mpiwizard.plain import show


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is printed of a machine; `columns` makes it a terminal."""

    def print_machine(machine: Machine = MACHINE, *, columns: int = 0, evidence: bool = False) -> str:
        if columns:
            monkeypatch.setenv("COLUMNS", str(columns))
            monkeypatch.setenv("FORCE_COLOR", "1")
            monkeypatch.setenv("TERM", "xterm")
        show.machine(machine, evidence)
        return re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)

    return print_machine


def test_what_needs_a_look_comes_first_with_what_it_breaks_and_what_to_do(printed: Any) -> None:
    lines = printed(NOTHING_REACHABLE).splitlines()
    assert lines[2:7] == [
        "Look at this",
        "✗ Source of Open MPI: none within reach",
        "    Stops a build. There is nothing to build from.",
        "    Fetch an archive of Open MPI elsewhere and name it with --archive FILE, or set HTTPS_PROXY.",
        "! Windows folders in PATH: 14 entries, 3 with blanks",
    ]


def test_a_sign_in_a_group_is_never_alone(printed: Any) -> None:
    lines = printed(columns=80).splitlines()
    assert [line.split("  ")[0] for line in lines if line.rstrip().endswith("(see above)")] == [
        "! Windows folders in PATH", "! Place to build",
    ]  # fmt: skip


def test_groups_stand_in_their_order_by_name(printed: Any) -> None:
    lines = printed().splitlines()
    titles = ["Platform", "CPU", "Memory", "Network", "Tools", "MPI already here", "Hazards", "Sources of Open MPI"]
    assert [line for line in lines if line in titles] == titles


def test_what_speaks_against_a_conclusion_is_said_below_it(printed: Any) -> None:
    lines = printed(columns=140).splitlines()
    conclusion = next(number for number, line in enumerate(lines) if "Single copy in Open MPI" in line)
    assert "but: The kernel's configuration says" in lines[conclusion + 1]


@pytest.mark.parametrize("evidence", [False, True])
def test_in_80_columns_no_row_of_the_tables_is_wider_and_no_text_is_lost(printed: Any, evidence: bool) -> None:
    text = printed(columns=80, evidence=evidence)
    assert all(fact.text in text for fact in FACTS)
    if not evidence:
        assert max(map(len, text.splitlines())) <= 80
        assert "/proc/meminfo" not in text


def test_a_pipe_also_gets_where_each_fact_was_read(printed: Any) -> None:
    assert re.search(r"Available +11.2 of 15.5 GiB +/proc/meminfo", printed())


def test_evidence_is_printed_as_it_was_read_and_commands_stay_whole(printed: Any) -> None:
    see = "grep -r " + "x" * 150 + " /proc"
    fact = replace(FACTS[0], raw="first [bold]line[/bold]\n  second line", see_yourself=see)
    lines = printed(Machine((fact, *FACTS[1:])), columns=80, evidence=True).splitlines()
    assert "    | first [bold]line[/bold]" in lines
    assert "    |   second line" in lines
    assert f"    See it yourself: {see}" in lines
    assert "    Rests on: Kernel, Single copy (CMA)" in lines
    assert "    Speaks against it: The kernel's configuration says CONFIG_CROSS_MEMORY_ATTACH is not set." in lines
