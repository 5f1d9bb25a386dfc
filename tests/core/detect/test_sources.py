"""What the sources answer becomes facts with reasons."""

from __future__ import annotations

from mpiwizard.core.detect.sources import source_facts
from mpiwizard.core.sources.model import Availability

DISTRO = Availability("distro", True, "4.1.4", "openmpi_4.1.4.orig.tar.xz", 6_916_772, "dd" * 32, "Debian 12, signed")
AWAY = Availability("release", False, reason="the name of the server is not known here")


def test_a_source_within_reach_tells_release_file_size_and_sum() -> None:
    facts = {fact.id: fact for fact in source_facts((AWAY, DISTRO))}
    assert facts["source.distro"].text == "Open MPI 4.1.4, openmpi_4.1.4.orig.tar.xz, 6.9 MB"
    assert facts["source.distro"].value["sha256"] == "dd" * 32
    assert (facts["sources.any"].value, facts["sources.any"].state) == (True, "ok")


def test_a_source_out_of_reach_is_something_to_look_at_with_its_reason() -> None:
    fact = next(fact for fact in source_facts((AWAY, DISTRO)) if fact.id == "source.release")
    assert (fact.value, fact.state, fact.meaning) == (None, "attention", AWAY.reason)
    assert "HTTPS_PROXY" in fact.action


def test_offline_a_silent_source_is_no_surprise() -> None:
    fact = next(fact for fact in source_facts((AWAY,), offline=True) if fact.id == "source.release")
    assert (fact.state, fact.action) == ("info", "")


def test_nothing_within_reach_is_a_problem() -> None:
    fact = list(source_facts((AWAY,)))[-1]
    assert (fact.id, fact.value, fact.state) == ("sources.any", False, "problem")


def test_an_archive_nobody_named_is_no_fault() -> None:
    fact = next(fact for fact in source_facts((DISTRO,)) if fact.id == "source.archive")
    assert (fact.value, fact.state) == (None, "info")


def test_offline_the_way_out_is_to_leave_that_out() -> None:
    fact = {fact.id: fact for fact in source_facts((), offline=True)}["sources.any"]
    assert fact.action.startswith("Leave out --offline")
