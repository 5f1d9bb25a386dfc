"""What there is to read about facts beside their texts, and in which order: the same on every face."""

from __future__ import annotations

from collections.abc import Callable

from mpiwizard.core.detect.model import Fact
from mpiwizard.core.i18n import _


def group_names() -> dict[str, str]:
    """What a person reads as the name of each group of facts, in their order."""
    return {
        "platform": _("Platform"),
        "cpu": _("CPU"),
        "memory": _("Memory"),
        "network": _("Network"),
        "tools": _("Tools"),
        "mpi": _("MPI already here"),
        "hazards": _("Hazards"),
        "sources": _("Sources of Open MPI"),
    }


def evidence(fact: Fact, label_of: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    """Pairs of a heading and a text, without `raw` and what is empty. A heading of several texts stands once.

    `label_of` gives the name of another fact by its id.
    """
    against = tuple(
        (_("Speaks against it") if place == 0 else "", sentence) for place, sentence in enumerate(fact.contradictions)
    )
    pairs = (
        (_("What to do") if fact.state == "problem" else _("What follows"), fact.action),
        *against,
        (_("Read from"), fact.read_from),
        (_("See it yourself"), fact.see_yourself),
        (_("Rests on"), ", ".join(map(label_of, fact.rests_on))),
    )
    return tuple((heading, text) for heading, text in pairs if text)


def what_breaks(fact: Fact) -> str:
    """Of a fact to look at: what goes wrong if nobody does, and in words whether that stops a build."""
    why = fact.meaning or fact.action
    return " ".join(filter(None, (_("Stops a build."), why))) if fact.state == "problem" else why
