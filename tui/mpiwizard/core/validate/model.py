"""Report, Check and Metric: what was proven and what was measured."""

from __future__ import annotations

from msgspec import Struct

from mpiwizard.core.format import quantity
from mpiwizard.core.recipes import Expectation
from mpiwizard.core.tune.model import Tuning


class Check(Struct, frozen=True, omit_defaults=True):
    """One thing that must be right. `detail` says what was seen; `next` what to do when it failed."""

    id: str
    label: str
    passed: bool
    detail: str
    command: str = ""
    next: str = ""
    seconds: float = 0.0


class Metric(Struct, frozen=True, omit_defaults=True):
    """One measured quantity: the median of `samples`, its spread, and how it stands to the expectations.

    `word` is ok, low, high, none (not measurable here) or info (no expectation that deserves a verdict);
    `low` and `high` are only said against a sourced expectation of this kind of machine; `verdict` is the
    sentence behind the word. `curve` holds (message size in bytes, value) pairs.
    """

    id: str
    label: str
    unit: str
    value: float | None
    spread: tuple[float, float] | None  # smallest and largest sample
    samples: int
    definition: str
    method: str
    word: str
    verdict: str
    expectations: tuple[Expectation, ...] = ()
    curve: tuple[tuple[int, float], ...] = ()
    better: str = "lower"  # lower or higher
    claims: tuple[int, ...] = ()
    text: str = ""  # what was found, where it is not a number

    @property
    def shown(self) -> str:
        """What was measured, as a person reads it."""
        return self.text or quantity(self.value, self.unit, self.spread)

    @property
    def missed(self) -> bool:
        """Worse than a sourced expectation of this kind of machine."""
        return self.word == ("low" if self.better == "higher" else "high")


class SummaryRow(Struct, frozen=True):
    """A row of the guide's table of metrics, filled in: texts as a person reads them."""

    metric: str  # id of the metric
    label: str
    wsl2: str  # expected by the guide on WSL2; empty when it says nothing
    cloud: str  # expected by the guide on a cloud server
    here: str
    word: str
    verdict: str


class Report(Struct, frozen=True):
    """The result of the stage, kept beside the installation."""

    prefix: str
    release: str
    headline: str
    machine: str  # one line about the box
    when: str  # ISO 8601, UTC
    checks: tuple[Check, ...]
    metrics: tuple[Metric, ...]
    tuning: Tuning | None = None
    schema: int = 1

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)
