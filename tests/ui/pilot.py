"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


async def until(pilot: Any, condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Return when the condition holds; fail after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"it never came true; the screen was:\n{screen(pilot.app)}")
        await pilot.pause(0.02)


def screen(app: Any) -> str:
    """The characters on the screen."""
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line).rstrip() for line in lines)
