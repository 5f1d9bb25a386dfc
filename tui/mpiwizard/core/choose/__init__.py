"""Stage 2, choose: the ways to an MPI on this machine, best first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiwizard.core.choose.ways import choose, fallback_choice, matching_recipe, require_choice

__all__ = ["choose", "fallback_choice", "matching_recipe", "require_choice"]


def __getattr__(name: str) -> object:
    """Load the stage when it is first used: the interface imports `choose.model` before its first paint."""
    if name not in __all__:
        raise AttributeError(name)
    from mpiwizard.core.choose import ways

    return getattr(ways, name)
