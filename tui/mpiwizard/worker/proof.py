"""Tune and validate an installation by its prefix: the same for a step of a run and for a person's command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mpiwizard.core.context import Assumptions, Context, Wishes
from mpiwizard.core.frontend import Frontend

if TYPE_CHECKING:
    from mpiwizard.core.detect.model import Machine
    from mpiwizard.core.installation import Installation
    from mpiwizard.core.tune.model import Tuning
    from mpiwizard.core.validate.model import Report


def tune_prefix(context: Context, prefix: str, work: Path, listener: Frontend, assume: Assumptions = ()) -> Tuning:
    """Measure settings and keep what helps; probes are compiled in `work`. Raises WizardError."""
    from mpiwizard.core.recipes import load_recipes
    from mpiwizard.core.tune import tune

    machine, installation = _look(context, prefix, assume)
    return tune(context, machine, load_recipes(context.folders.config), installation, work, listener)


def validate_prefix(context: Context, prefix: str, work: Path, listener: Frontend, assume: Assumptions = ()) -> Report:
    """Prove and measure; what was tuned there before is taken into account. Raises WizardError."""
    from mpiwizard.core.recipes import load_recipes
    from mpiwizard.core.tune import load_tuning
    from mpiwizard.core.validate import validate

    machine, installation = _look(context, prefix, assume)
    recipes = load_recipes(context.folders.config)
    return validate(context, machine, recipes, installation, work, listener, load_tuning(installation.prefix))


def _look(context: Context, prefix: str, assume: Assumptions) -> tuple[Machine, Installation]:
    """The machine, and the MPI in the prefix."""
    from mpiwizard.core.detect import detect
    from mpiwizard.core.installation import find_installation

    installation = find_installation(context.host, prefix)
    return detect(context, Wishes(prefix=prefix, assume=assume)), installation
