"""Stage 6, validate: it works, and this is how fast, beside what others expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from mpiwizard.core.context import Context
    from mpiwizard.core.detect.model import Machine
    from mpiwizard.core.frontend import Frontend
    from mpiwizard.core.installation import Installation
    from mpiwizard.core.recipes import Recipes
    from mpiwizard.core.tune.model import Tuning
    from mpiwizard.core.validate.model import Report, SummaryRow


def validate(
    context: Context,
    machine: Machine,
    recipes: Recipes,
    installation: Installation,
    work: Path,
    listener: Frontend | None = None,
    tuning: Tuning | None = None,
) -> Report:
    """Check that the installation is right and measure how fast it is; the report is kept beside it.

    Takes about twenty seconds. What fails is a failed check or an empty metric, not an error. Without
    `tuning` the one kept beside the installation is used. `work` is a folder that may be filled.
    """
    from mpiwizard.core.validate.stage import validate_installation

    return validate_installation(context, machine, recipes, installation, work, listener, tuning)


def summary_rows(report: Report) -> tuple[SummaryRow, ...]:
    """The guide's table of metrics with what was measured here, and the rows it should have had."""
    from mpiwizard.core.validate.stage import summary_rows as rows

    return rows(report)
