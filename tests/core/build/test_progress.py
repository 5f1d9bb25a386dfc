"""Counts read from logs, the same however the bytes are cut."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiwizard.core.build.ansi import clean_line, plain_line
from mpiwizard.core.build.failure import explain_failure, first_error_in
from mpiwizard.core.build.log_index import LogIndex
from mpiwizard.core.build.makefiles import count_compilations
from mpiwizard.core.build.model import StepState
from mpiwizard.core.build.progress import Progress, fraction, remaining

LOG = b"""checking for gcc... gcc
checking whether the C compiler works... yes
+++ Configuring MCA framework btl
checking for MCA component btl:vader compile mode... static
  CC       btl_vader_component.lo
  CC       btl_vader_endpoint.lo
../src/btl_vader_fifo.h:122:14: warning: unused variable 'prev' [-Wunused-variable]
  122 |     int error = 1; // warning-free text
  CCLD     libmca_btl_vader.la
libtool: compile:  gcc -c one.c -o one.o
  GENERATE mpi.h
  FC       mpi-f08.lo
../src/two.c:3:9: error: 'x' undeclared
make[2]: *** [Makefile:1870: two.lo] Error 1
"""


def counts(progress: Progress) -> tuple[int, int, int, int]:
    return progress.checks, progress.compiled, progress.warnings, progress.errors


def test_each_kind_of_line_is_counted_once() -> None:
    progress = Progress()
    progress.feed(LOG)
    assert counts(progress) == (3, 4, 1, 2)


def test_a_large_log_is_counted_in_little_time() -> None:
    import time

    chunk, progress = LOG * (4_000_000 // len(LOG)), Progress()
    started = time.process_time()
    progress.feed(chunk)
    assert time.process_time() - started < 0.25  # no key is answered in it


@given(st.lists(st.integers(min_value=0, max_value=len(LOG)), max_size=30))
def test_the_counts_do_not_depend_on_where_the_log_was_cut(cuts: list[int]) -> None:
    progress, last = Progress(), 0
    for cut in sorted([*cuts, len(LOG)]):
        progress.feed(LOG[last:cut])
        last = cut
    assert counts(progress) == (3, 4, 1, 2)


@given(st.binary(max_size=300))
def test_no_bytes_can_stop_the_count(content: bytes) -> None:
    progress = Progress()
    progress.feed(content)
    clean_line(content)


def test_an_estimate_is_never_all_done() -> None:
    assert fraction(1700, 1631) == 0.99
    assert fraction(5, 0) is None


@pytest.mark.parametrize(("part", "expected"), [(None, 90.0), (0.05, 140.0), (0.5, 10.0)])
def test_the_time_left_moves_from_the_estimate_to_the_own_pace(part: float | None, expected: float) -> None:
    assert remaining(10.0, part, 100.0) == pytest.approx(expected)


def test_colours_stay_and_all_other_control_sequences_go() -> None:
    line = b"\x1b[01;31merror\x1b[m \x1b]0;title\x07\x1b[2Jx\x00\r\n"
    assert clean_line(line) == "\x1b[01;31merror\x1b[m x\ufffd"
    assert plain_line(line) == "error x\ufffd"
    assert clean_line(b"10 %\r20 %\r30 %\n") == "30 %"


@given(st.binary(max_size=200))
def test_a_cleaned_line_holds_no_escape_but_colours(raw: bytes) -> None:
    left = re.sub(r"\x1b\[[\d;:]*m", "", clean_line(raw))
    assert not re.search(r"[\x00-\x08\x0e-\x1f\x7f]", left)


@given(st.lists(st.binary(max_size=20).map(lambda text: text.replace(b"\n", b" ")), min_size=1, max_size=40))
def test_the_index_gives_back_every_line(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes(b"")
    index = LogIndex(path)
    for line in lines:
        with path.open("ab") as file:
            file.write(line + b"\n")
        index.poll()
    assert len(index) == len(lines)
    assert [index.line(number) for number in range(len(index))] == lines
    index.close()


def test_search_finds_the_first_line_from_where_it_starts(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo warning\nthree\nfour warning")
    index = LogIndex(path)
    index.poll()
    pattern = re.compile(rb"warning")
    assert index.find(pattern, 0) == 1
    assert index.find(pattern, 2) == 3
    assert index.find(re.compile(rb"nothing"), 0) is None
    index.close()


def test_compilations_are_counted_through_subfolders_and_references(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "Makefile").write_text(
        "OBJEXT = o\nSUBDIRS = . below gone\nLTLIBRARIES = $(lib_LTLIBRARIES)\nlib_LTLIBRARIES = lib-x.la\n"
        "am__objects_1 = b.lo \\\n\tc.lo\nlib_x_la_OBJECTS = a.lo $(am__objects_1)\n"
        "#lib_LTLIBRARIES = other.la\ncheck_PROGRAMS = test$(EXEEXT)\ntest_OBJECTS = test.$(OBJEXT)\n"
    )
    (tmp_path / "below" / "Makefile").write_text(
        "OBJEXT = o\nPROGRAMS = $(bin_PROGRAMS)\nbin_PROGRAMS = p$(EXEEXT)\nam_p_OBJECTS = p.$(OBJEXT)\n"
        "p_OBJECTS = $(am_p_OBJECTS)\n"
    )
    assert count_compilations(tmp_path) == 4
    assert count_compilations(tmp_path / "gone") == 0


def test_a_makefile_that_refers_to_itself_ends(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("SUBDIRS = . ..\nPROGRAMS = $(PROGRAMS)\n")
    assert count_compilations(tmp_path) == 0


@pytest.mark.parametrize(
    ("log", "evidence", "advice"),
    [
        (b"a.c:1:10: fatal error: zlib.h: No such file or directory\n", "fatal error", "zlib.h"),
        (b"as: cannot write: No space left on device\nx.c:1:1: error: y\n", "No space left", "Make room"),
        (b"checking for x\nconfigure: error: no x found\n", "configure: error", "around this line"),
        (b"/usr/bin/ld: cannot find -lz\ncollect2: error: ld returned 1 exit status\n", "-lz", "library z"),
        (b"mpirun has detected an attempt to run as root.\n", "root", "ordinary user"),
        (b"There are not enough slots available in the system\n", "slots", "--oversubscribe"),
        (b"mpirun noticed that process rank 1 exited on signal 11\n", "signal 11", "around this line"),
        (b"gcc: fatal error: Killed signal terminated program cc1\n", "Killed", "--jobs 1"),
    ],
)
def test_the_most_telling_first_error_is_shown_with_one_thing_to_try(log: bytes, evidence: str, advice: str) -> None:
    card = first_error_in(log)
    assert card is not None
    assert evidence in card.evidence
    assert advice in card.try_this


def test_a_log_without_errors_has_no_card() -> None:
    assert first_error_in(b"all is well\n") is None


def test_what_an_earlier_attempt_died_of_is_not_shown_again(tmp_path: Path) -> None:
    log, earlier = tmp_path / "make.log", b"a.c:1:1: fatal error: zlib.h: No such file or directory\n"
    log.write_bytes(earlier + b"  CC       a.lo\nb.c:2:2: error: 'x' undeclared\n")
    card = explain_failure(StepState("make", "", "failed", status=2, log_offset=len(earlier)), log)
    assert (card.line, card.evidence) == (3, "b.c:2:2: error: 'x' undeclared")


def test_of_a_command_that_failed_under_make_its_own_words_are_shown() -> None:
    log = b"  GEN      x\ncp: cannot stat 'y': No such file or directory\nmake[1]: *** [Makefile:9: all] Error 1\n"
    card = first_error_in(log)
    assert card is not None
    assert (card.line, card.evidence) == (2, "cp: cannot stat 'y': No such file or directory")


def test_a_failed_step_without_a_log_still_has_a_card(tmp_path: Path) -> None:
    card = explain_failure(StepState("make", "", "failed", status=-9), tmp_path / "none.log")
    assert "signal 9" in card.what
    assert "memory" in card.try_this
