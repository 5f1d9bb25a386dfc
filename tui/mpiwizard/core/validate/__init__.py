"""Stage 6, validate: it works, and this is how fast, beside what others expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiwizard.core.validate.stage import summary_rows, validate

__all__ = ["summary_rows", "validate"]


def __getattr__(name: str) -> object:
    """Load the stage when it is first used: the interface imports `validate.model` before its first paint."""
    if name not in __all__:
        raise AttributeError(name)
    from mpiwizard.core.validate import stage

    return getattr(stage, name)
