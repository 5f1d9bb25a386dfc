"""Only a sourced expectation of machines like this one makes a value low or high; the rest is said, not scored."""

from __future__ import annotations

import pytest
from tests.core.fakes import machine_with

from mpiwizard.core.recipes import Expectation, load_recipes
from mpiwizard.core.validate.judge import judge, place
from mpiwizard.core.validate.measured import Judge

AZURE = {"platform.provider": "azure"}
SOURCED = Expectation(
    "memory-bandwidth", "Azure HBv3", "330–350 GB/s", "GB/s", 330, 350, "correct", source="vendor", when=AZURE
)
WSL2 = Expectation("launcher-time", "guide-wsl2", "50–100 ms", "ms", 50, 100)
CLOUD = Expectation("launcher-time", "guide-cloud", "5–10 ms", "ms", 5, 10)


@pytest.mark.parametrize(("value", "word"), [(12.0, "low"), (340.0, "ok"), (351.0, "high")])
def test_a_sourced_expectation_of_such_machines_decides(value: float, word: str) -> None:
    said, sentence = judge(value, "GB/s", [SOURCED], machine_with(platform_provider="azure"))
    assert said == word
    assert "330–350 GB/s" in sentence and "vendor" in sentence


def test_an_expectation_of_other_machines_decides_nothing() -> None:
    word, sentence = judge(12.0, "GB/s", [SOURCED], machine_with(platform_provider="aws"))
    assert word == "info" and "other machines" in sentence


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (1.0, "Below the guide's values"),
        (7.0, "expects of a cloud server"),
        (20.0, "Between the guide's values"),
        (70.0, "expects of WSL2"),
        (500.0, "Above the guide's values"),
    ],
)
def test_missing_the_guide_is_never_a_failure(milliseconds: float, words: str) -> None:
    word, sentence = judge(milliseconds, "ms", [WSL2, CLOUD], machine_with(platform_layer="wsl2"))
    assert word == "info"
    assert words in sentence and "no source" in sentence


def test_without_expectation_the_sentence_says_so() -> None:
    assert judge(1.0, "ms", [], machine_with()) == ("info", "Nobody published an expectation for this.")


@pytest.mark.parametrize(("value", "unit"), [(13_000, "MB/s"), (13, "GB/s")])
def test_units_are_converted(value: float, unit: str) -> None:
    expectation = Expectation("memory-bandwidth", "guide-wsl2", "12–15 GB/s", "GB/s", 12, 15)
    assert place(value, unit, expectation) == "ok"


def test_no_shipped_expectation_of_the_guide_can_fail_a_machine() -> None:
    for expectation in load_recipes().expectations:
        if expectation.who.startswith("guide-") and expectation.low is not None:
            everywhere = machine_with(platform_layer="wsl2", platform_provider="aws")
            assert judge(1e-6, expectation.unit, [expectation], everywhere)[0] == "info"


def test_a_published_figure_of_one_size_decides_on_the_whole_of_that_size_only() -> None:
    shipped = [one for one in load_recipes().expectations if one.metric == "memory-bandwidth"]
    size = "Standard_HB176rs_v4"
    assert judge(700.0, "GB/s", shipped, machine_with(platform_instance=size, cpu_usable=176))[0] == "ok"
    word, sentence = judge(400.0, "GB/s", shipped, machine_with(platform_instance=size, cpu_usable=176))
    assert word == "low" and "650–780 GB/s" in sentence
    assert judge(400.0, "GB/s", shipped, machine_with(platform_instance=size, cpu_usable=88))[0] == "info"
    assert judge(400.0, "GB/s", shipped, machine_with(platform_instance="Standard_D4s_v5", cpu_usable=2))[0] == "info"


def test_expectations_of_machines_like_this_one_stand_right_behind_the_guides() -> None:
    judged = Judge(load_recipes(), machine_with(platform_instance="Standard_HB176rs_v4", cpu_usable=176))
    names = [one.who for one in judged.expectations_of("memory-bandwidth")]
    assert names[:3] == ["guide-wsl2", "guide-cloud", "Azure HBv4"]
    assert set(names[3:]) == {"Azure HBv2", "Azure HBv3", "Azure HBv5"}
