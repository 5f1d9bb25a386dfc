"""Machine and Fact: what is known of a box, and how it is known."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from mpiwizard.core.errors import WizardError

GROUPS = ("platform", "cpu", "memory", "network", "tools", "mpi", "hazards", "sources")
STATES = ("ok", "info", "attention", "problem", "unknown")


class Fact(Struct, frozen=True, omit_defaults=True):
    """One thing that is known of a box, or known to be unknown (`state` unknown, `value` null).

    `value` is what recipes and later stages use (a JSON value, sizes in bytes, times in seconds);
    `text` is what a person reads. `state` is ok, info, attention (look at this before you build),
    problem (a build cannot start) or unknown.
    """

    id: str
    group: Annotated[str, Meta(extra_json_schema={"enum": GROUPS})]
    label: str
    value: Any
    text: str
    state: Annotated[str, Meta(extra_json_schema={"enum": STATES})]
    read_from: str = ""  # where mpiwizard read it: a file, a variable or a command line
    raw: str = ""  # the very text it was read from, shortened where it is long
    see_yourself: str = ""  # a command that shows it to the person
    meaning: str = ""  # what it means for MPI
    action: str = ""  # what mpiwizard will do about it, or the exact command for the person
    rests_on: tuple[str, ...] = ()  # ids of the facts a conclusion was drawn from
    contradictions: tuple[str, ...] = ()  # signs that speak against it, one sentence each
    claims: tuple[int, ...] = ()  # numbers of the guide's claims that touch it


class Machine(Struct, frozen=True):
    """All facts of a box in the order they are shown, and one sentence that sums them up."""

    facts: tuple[Fact, ...]
    headline: str = ""
    seconds: float = 0.0
    schema: int = 2

    def fact(self, fact_id: str) -> Fact:
        """The fact with this id; an unknown one when detection never spoke of it."""
        for fact in self.facts:
            if fact.id == fact_id:
                return fact
        group = fact_id.partition(".")[0]
        return Fact(fact_id, group, fact_id, None, "not known", "unknown")

    def value(self, fact_id: str, otherwise: Any = None) -> Any:
        """The value of a fact, or `otherwise` when it is unknown."""
        value = self.fact(fact_id).value
        return otherwise if value is None else value

    @property
    def values(self) -> dict[str, Any]:
        """The facts' values by id, as recipes match them."""
        return {fact.id: fact.value for fact in self.facts}

    def of_state(self, state: str) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.facts if fact.state == state)


def check_fact(fact: Fact) -> Fact:
    """The fact itself; WizardError when its group or state is not one of ours."""
    if fact.group not in GROUPS or fact.state not in STATES:
        raise WizardError(f"fact {fact.id} has an unknown group or state: {fact.group}, {fact.state}")
    return fact
