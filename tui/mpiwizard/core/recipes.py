"""recipes/ as typed, validated values; a person's own files overlay the shipped ones."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from msgspec import Struct


class Expectation(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A value somebody published: `low` to `high` in `unit`, and what we think of it.

    `verdict` is the one of the guide's claim: correct, wrong, version-dependent, dangerous, unverifiable.
    """

    metric: str  # id of the metric, such as launcher-time
    who: str  # guide-wsl2, guide-cloud, or the name of the publisher
    text: str  # as shown, such as "50–100 ms"
    unit: str
    low: float | None = None
    high: float | None = None
    verdict: str = "unverifiable"
    remark: str = ""
    source: str = ""
    claim: int = 0


class Claim(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A statement of the guide, in our words, and what is right about it."""

    number: int
    stage: str  # detect, choose, configure, build, tune, validate or troubleshoot
    statement: str
    verdict: str
    correction: str = ""
    evidence: str = ""


def recipes_root() -> Traversable:
    """The folder with the shipped recipes: in the wheel, or in the checkout."""
    packaged = resources.files("mpiwizard") / "recipes"
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[3] / "recipes"
