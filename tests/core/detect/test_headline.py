"""The machine in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from mpiwizard.core.detect.facts import make_fact
from mpiwizard.core.detect.headline import headline
from mpiwizard.core.detect.model import Machine


def sentence(**values: Any) -> str:
    """The headline of a machine with these facts; `kernel__cma` stands for `kernel.cma`."""
    facts = {
        "platform.layer": "wsl2",
        "platform.distribution": {"name": "Ubuntu", "version": "22.04"},
        "cpu.usable": 8,
        "network.fabric": [],
        **{name.replace("__", "."): value for name, value in values.items()},
    }
    return headline(Machine(tuple(make_fact(fact_id, value, "") for fact_id, value in facts.items())))


@pytest.mark.parametrize(
    ("four", "five", "copies"),
    [
        ("cma", "cma", "shared memory with CMA"),
        ("xpmem", "xpmem", "shared memory with XPMEM"),
        ("none", "none", "shared memory without single copy"),
        ("cma", "none", "shared memory with CMA (4.x only)"),
        ("none", "cma", "shared memory with CMA (5.x only)"),
        ("knem", "cma", "shared memory with KNEM (4.x) or CMA (5.x)"),
    ],
)
def test_it_names_the_single_copy_of_each_series_where_they_differ(four: str, five: str, copies: str) -> None:
    ways = {"4": four, "5": five}
    assert sentence(kernel__single_copy=ways) == f"WSL2 on Ubuntu 22.04 · 8 usable cores · {copies} · no fast fabric"


@pytest.mark.parametrize(
    ("cma", "copies"), [("works", "with CMA"), ("refused", "without CMA"), (None, ", CMA not tried")]
)
def test_without_a_conclusion_it_rests_on_what_was_tried(cma: str | None, copies: str) -> None:
    assert f"shared memory{'' if copies.startswith(',') else ' '}{copies} ·" in sentence(kernel__cma=cma)


def test_a_container_on_wsl2_names_both() -> None:
    inside = sentence(platform__layer="docker", kernel__release="5.15.167.4-microsoft-standard-WSL2")
    assert inside.startswith("Docker in WSL2 on Ubuntu 22.04 · ")
    assert sentence(platform__layer="docker", kernel__release="6.1.0-23-amd64").startswith("Docker on Ubuntu 22.04 · ")


def test_a_provider_that_has_no_name_here_is_no_fault() -> None:
    assert sentence(platform__layer="none", platform__provider="acme").startswith("acme on Ubuntu 22.04 · ")
