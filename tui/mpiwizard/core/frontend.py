"""The events an interface may listen to. All methods do nothing, so a listener overrides what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiwizard.core.detect.model import Fact
    from mpiwizard.core.tune.model import Trial
    from mpiwizard.core.validate.model import Check, Metric


class Frontend:
    """Listens to what a stage finds while it works."""

    def note(self, text: str) -> None:
        """A short sentence about what happens now."""

    def fact(self, fact: Fact) -> None:
        """Detection found a fact."""

    def trial(self, trial: Trial) -> None:
        """Tuning finished a trial."""

    def check(self, check: Check) -> None:
        """Validation finished a correctness check."""

    def metric(self, metric: Metric) -> None:
        """Validation finished a measurement."""
