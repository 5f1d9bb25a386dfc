"""Stage 5, tune: what is measurably better is kept, with its undo."""

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


def tune(
    context: Context,
    machine: Machine,
    recipes: Recipes,
    installation: Installation,
    work: Path,
    listener: Frontend | None = None,
) -> Tuning:
    """Try settings turn by turn, keep what is better beyond doubt, and write it for this installation.

    Takes about ten seconds. Writes our block in the parameter file, the environment script, the
    modulefile and tuning.json below the prefix. `work` is a folder that may be filled. Raises
    WizardError when the prefix cannot be written or its mpicc does not compile.
    """
    from mpiwizard.core.tune.stage import tune_installation

    return tune_installation(context, machine, recipes, installation, work, listener)


def undo_tuning(prefix: str) -> tuple[str, ...]:
    """Remove our block and the files of this stage; the paths that changed. Nothing else is touched."""
    from mpiwizard.core.tune.stage import undo_tuning as undo

    return undo(prefix)


def load_tuning(prefix: str) -> Tuning | None:
    """The result that is kept beside the installation; None when there is none that can be read."""
    from mpiwizard.core.tune.stage import load_tuning as load

    return load(prefix)
