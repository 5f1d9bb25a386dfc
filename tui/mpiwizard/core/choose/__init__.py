"""Stage 2, choose: the ways to an MPI on this machine, best first."""

from mpiwizard.core.choose.ways import choose, fallback_choice, matching_recipe, require_choice

__all__ = ["choose", "fallback_choice", "matching_recipe", "require_choice"]
