"""`detect` and `capture` as a person meets them: real processes, recorded boxes, one sentence for each mistake."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.plain.conftest import Command

from mpiwizard.core.detect.model import Machine

MACHINES = Path(__file__).parents[1] / "machines"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def machine(result: subprocess.CompletedProcess[str]) -> Machine:
    assert result.returncode == 0, result.stderr
    return msgspec.json.decode(result.stdout, type=Machine)


def test_a_recorded_box_is_looked_at_in_place_of_this_one(mpiwizard: Command) -> None:
    found = machine(mpiwizard("detect", "--json", "--root", str(MACHINES / "ec2-efa")))
    assert (found.value("platform.provider"), found.value("platform.instance")) == ("aws", "c5n.18xlarge")


def test_a_captured_box_can_be_looked_at(mpiwizard: Command, tmp_path: Path) -> None:
    captured = mpiwizard("capture", "-o", "box.tar.gz")
    assert captured.returncode == 0, captured.stderr
    assert "/proc/cpuinfo" in captured.stdout and "Replaced:" in captured.stdout
    here = machine(mpiwizard("detect", "--json"))
    assert machine(mpiwizard("detect", "--json", "--root", "box.tar.gz")).headline == here.headline
    assert sorted(path.name for path in tmp_path.iterdir()) == ["box.tar.gz"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("detect", "--root", "nowhere"), "is no recording of a box"),
        (("detect", "--root", ""), "is no recording of a box"),
        (("detect", "--assume", "provider"), "provider"),
        (("detect", "--assume", "provider=narnia"), "narnia"),
        (("detect", "--assume", "colour=blue"), "colour"),
        (("detect", "--json", "--schema"), "not allowed with"),
        (("capture", "-o", "no/such/folder/box.tar.gz"), "cannot be written"),
    ],
)
def test_a_mistake_is_answered_in_one_sentence(mpiwizard: Command, arguments: tuple[str, ...], sentence: str) -> None:
    result = mpiwizard(*arguments)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


def test_the_person_overrules_the_platform(mpiwizard: Command) -> None:
    root = ("--root", str(MACHINES / "hyperv-guest"))
    found = machine(mpiwizard("detect", "--json", *root, "--assume", "provider=azure"))
    fact = found.fact("platform.provider")
    assert (fact.value, fact.read_from) == ("azure", "you")
    assert fact.contradictions
    assert found.headline.startswith("Azure")


def test_a_plan_follows_what_the_person_said_of_the_platform(mpiwizard: Command) -> None:
    archive = MACHINES.parent / "miniature" / "openmpi-5.0.11.tar.xz"
    arguments = ("plan", "--json", "--offline", "--archive", str(archive))
    said = json.loads(mpiwizard(*arguments, "--assume", "provider=google").stdout)
    assert said["choice"]["recipe"] == "google"
    assert said["wishes"]["assume"] == [["provider", "google"]]


def test_the_schema_describes_what_json_prints(mpiwizard: Command) -> None:
    schema = json.loads(mpiwizard("detect", "--schema").stdout)
    described = {name.rpartition(".")[2]: set(part["properties"]) for name, part in schema["$defs"].items()}
    printed = json.loads(mpiwizard("detect", "--json", "--root", str(MACHINES / "bare-metal")).stdout)
    assert set(printed) <= described["Machine"]
    assert set().union(*printed["facts"]) <= described["Fact"]


def test_evidence_shows_what_was_read(mpiwizard: Command) -> None:
    shown = mpiwizard("detect", "--evidence", "--root", str(MACHINES / "wsl2-ubuntu-22.04")).stdout
    assert "/proc/sys/kernel/osrelease" in shown
    assert "5.15.153.1-microsoft-standard-WSL2" in shown
