"""Stage 5, tune: what is measurably better is kept, with its undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiwizard.core.tune.stage import load_tuning, tune, undo_tuning

__all__ = ["load_tuning", "tune", "undo_tuning"]


def __getattr__(name: str) -> object:
    """Load the stage when it is first used: the interface imports `tune.model` before its first paint."""
    if name not in __all__:
        raise AttributeError(name)
    from mpiwizard.core.tune import stage

    return getattr(stage, name)
