"""The command line as a real process, with folders of the test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TUI = Path(__file__).parents[2] / "tui"
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def mpiwizard(tmp_path: Path) -> Command:
    """Run `mpiwizard …` with folders of the test and no network."""

    def run(*arguments: str, env: dict[str, str] | None = None, **options: object) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "HOME": str(tmp_path),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "PYTHONPATH": str(TUI),
            "COLUMNS": "120",
            **(env or {}),
        }
        return subprocess.run(  # type: ignore[call-overload,no-any-return]
            [sys.executable, "-m", "mpiwizard", *arguments],
            capture_output=True,
            text=True,
            env=environment,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
            **options,
        )

    return run
