"""Stage 3, configure: a choice becomes a plan, every option with its reason, every command in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiwizard.core.configure.plan import make_plan
    from mpiwizard.core.configure.preflight import check_plan
    from mpiwizard.core.configure.shell import script

__all__ = ["check_plan", "make_plan", "script"]


def __getattr__(name: str) -> object:
    """Load the stage when it is first used: the interface imports `configure.model` before its first paint."""
    from importlib import import_module

    places = {"check_plan": "preflight", "make_plan": "plan", "script": "shell"}
    if name not in places:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{places[name]}"), name)
