"""Probes run at the same time, each with a deadline, and a failure costs only its own facts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import Event, Thread

import msgspec
import pytest
from msgspec.structs import astuple
from tests.core.detect.boxes import MACHINES, box, context_of, look

from mpiwizard.core.context import Context, Wishes
from mpiwizard.core.detect.facts import LONGEST_LINE, Probe, Survey, first_line, labels, make_fact
from mpiwizard.core.detect.model import GROUPS, Fact, Machine
from mpiwizard.core.detect.survey import PROBES, survey_machine
from mpiwizard.core.frontend import Frontend
from mpiwizard.core.host import MOST_OUTPUT, Result
from mpiwizard.core.recordings import RecordedHost


def survey(folder: Path, *probes: Probe, listener: Frontend | None = None, patience: float = 2.0) -> Machine:
    given = context_of(box(folder, {"/proc/version": "Linux"}))
    context = Context(given.host, given.folders, given.clock, offline=True, patience=patience)
    return survey_machine(context, Wishes(), listener, probes)


def tells(fact_id: str, value: object, after: float = 0.0, needs: tuple[str, ...] = ()) -> Probe:
    def read(survey: Survey) -> Iterator[Fact]:
        time.sleep(after)
        yield make_fact(fact_id, value, str(value))

    return Probe((fact_id,), read, needs)


class Listener(Frontend):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def fact(self, fact: Fact) -> None:
        self.heard.append(fact.id)


def test_probes_run_at_the_same_time(tmp_path: Path) -> None:
    slow = [tells(fact_id, 1, after=0.4) for fact_id in ("cpu.model", "cpu.online", "cpu.cores", "memory.total")]
    assert survey(tmp_path, *slow).seconds < 1.2  # one after the other they take 1.6 s


def test_facts_are_heard_as_they_come_and_stand_in_their_order(tmp_path: Path) -> None:
    listener = Listener()
    machine = survey(tmp_path, tells("cpu.model", 1, after=0.3), tells("memory.total", 2), listener=listener)
    assert listener.heard == ["memory.total", "cpu.model"]
    assert [fact.id for fact in machine.facts] == ["cpu.model", "memory.total"]


def test_a_probe_sees_the_facts_it_needs_and_no_others(tmp_path: Path) -> None:
    def read(survey: Survey) -> Iterator[Fact]:
        seen = [survey.found.value(fact_id) for fact_id in ("cpu.model", "cpu.online")]
        yield make_fact("cpu.hybrid", seen, "")

    needing = Probe(("cpu.hybrid",), read, ("cpu.model",))
    machine = survey(tmp_path, needing, tells("cpu.online", 3), tells("cpu.model", "x", after=0.1))
    assert machine.value("cpu.hybrid") == ["x", None]


def test_a_probe_that_hangs_costs_only_what_it_did_not_tell(tmp_path: Path) -> None:
    forever = Event()

    def read(survey: Survey) -> Iterator[Fact]:
        yield make_fact("cpu.online", 4, "4")
        forever.wait(20)
        yield make_fact("cpu.cores", 2, "2")

    hanging = Probe(("cpu.online", "cpu.cores"), read)
    machine = survey(tmp_path, hanging, tells("cpu.usable", 1, needs=("cpu.cores",)), patience=0.3)
    forever.set()
    assert machine.value("cpu.online") == 4
    assert machine.fact("cpu.cores").text == "not known: timed out after 0.3 s"
    assert machine.value("cpu.usable") == 1
    assert machine.seconds < 2


def test_what_a_probe_says_after_its_deadline_is_not_heard(tmp_path: Path) -> None:
    machine = survey(
        tmp_path, tells("cpu.model", "late", after=0.3), tells("memory.total", 1, after=0.5), patience=0.2
    )
    assert {fact.state for fact in machine.facts} == {"unknown"}


def test_a_probe_that_fails_costs_only_its_own_facts(tmp_path: Path) -> None:
    def broken(survey: Survey) -> Iterator[Fact]:
        yield make_fact("cpu.online", 3, "3")
        raise RuntimeError("no such thing")

    def broken_at_once(survey: Survey) -> Iterable[Fact]:
        return iter([1 / 0])  # type: ignore[list-item]

    machine = survey(
        tmp_path,
        Probe(("cpu.online", "cpu.cores"), broken),
        Probe(("cpu.model",), broken_at_once),
        tells("cpu.usable", 3, needs=("cpu.online", "cpu.cores")),
    )
    assert machine.value("cpu.online") == machine.value("cpu.usable") == 3
    assert "RuntimeError: no such thing" in machine.fact("cpu.cores").text
    assert {fact.id for fact in machine.of_state("unknown")} == {"cpu.cores", "cpu.model"}


def test_probes_that_wait_for_each_other_are_a_fault(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="wait for each other"):
        survey(tmp_path, tells("cpu.model", 1, needs=("cpu.cores",)), tells("cpu.cores", 1, needs=("cpu.model",)))


def test_every_fact_that_is_needed_is_told_by_a_probe() -> None:
    told = {fact_id for probe in PROBES for fact_id in probe.ids}
    assert {fact_id for probe in PROBES for fact_id in probe.needs} <= told


def test_every_fact_has_one_probe_and_a_place() -> None:
    ids = [fact_id for probe in PROBES for fact_id in probe.ids]
    assert sorted(ids) == sorted(set(ids))
    assert set(ids) <= set(labels())


def test_facts_of_one_group_stand_together() -> None:
    groups = [make_fact(fact_id, None, "").group for fact_id in labels()]
    assert [GROUPS.index(group) for group in groups] == sorted(GROUPS.index(group) for group in groups)


def test_a_raw_text_is_kept_short_and_cannot_command_a_terminal() -> None:
    raw = make_fact("cpu.model", 1, "", raw="\x1b[2J" + "x" * 1000).raw
    assert "\x1b" not in raw
    assert len(raw) <= 400


def test_a_line_without_end_is_cut() -> None:
    assert first_line("\n  gcc 12.2.0 \nmore") == "gcc 12.2.0"
    assert len(first_line("(" * (1 << 20))) == LONGEST_LINE


def test_where_no_more_threads_are_allowed_the_facts_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", refuse)
    assert "can't start new thread" in survey(tmp_path, tells("cpu.model", 1)).fact("cpu.model").text


class Babbling(RecordedHost):
    """A box where every program is there and prints a single line that is as long as we let it be."""

    said = "("

    def which(self, program: str) -> str | None:
        return f"/usr/bin/{program}"

    def run(self, argv: Sequence[str], **_options: object) -> Result:
        return Result(0, self.said * MOST_OUTPUT, self.said * MOST_OUTPUT)


@pytest.mark.parametrize("said", ["(", "x"])
def test_lines_without_end_do_not_keep_detection_from_ending(said: str) -> None:
    host = Babbling(MACHINES / "login-node")
    host.said = said
    assert look(host).seconds < 6


def test_what_strangers_wrote_commands_no_terminal_and_can_be_told_as_json(tmp_path: Path) -> None:
    evil = "\x1b[2J\x9b\x07"
    files = {
        "/etc/os-release": f'PRETTY_NAME="Evil {evil} Linux"\nNAME="Evil {evil}"\nID=evil\n',
        "/proc/sys/kernel/hostname": f"host{evil}\n",
        "/proc/sys/kernel/osrelease": f"6.1{evil}\n",
        "/proc/cpuinfo": f"model name\t: CPU {evil}\n",
    }
    half = "/a\udcff"  # a byte that is no text, as Python reads it from the environment and from folders
    variables = {"PATH": f"/{evil}:{half}", "LANG": evil + half, "HOME": half, "LD_LIBRARY_PATH": half, "OMPI_CC": half}
    commands = {"ip -json addr": {"output": json.dumps([{"ifname": half + evil, "addr_info": [{"local": half}]}])}}
    machine = look(box(tmp_path, files, commands, variables))
    told = msgspec.json.encode(machine).decode()
    assert "Evil" in machine.headline and half[:2] in told
    shown = [machine.headline, *(text for fact in machine.facts for text in (*astuple(fact)[4:], *fact.contradictions))]
    for text in filter(lambda part: isinstance(part, str), shown):
        assert text.replace("\n", " ").replace("\t", " ").isprintable()
