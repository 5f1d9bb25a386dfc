"""The first paint costs little: what the first screen does not need is not imported for it."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("psutil", "pexpect", "httpx", "packaging", "distro", "truststore", "rich.table", "textual.widgets._data_table",
         "textual.widgets._markdown", "textual.widgets._text_area", "mpiwizard.core.configure", "mpiwizard.core.choose",
         "mpiwizard.core.validate", "mpiwizard.ui.screens.build", "mpiwizard.worker")  # fmt: skip


def loaded_by(statement: str) -> set[str]:
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def test_the_first_screen_imports_nothing_heavy() -> None:
    loaded = loaded_by("import mpiwizard.ui.app, mpiwizard.ui.stages, mpiwizard.ui.screens.detect")
    assert not loaded.intersection(HEAVY) - loaded_by("import textual.app")


def test_gnu_screen_gets_256_colours() -> None:
    program = (
        "import os; os.environ['STY'] = '1'; os.environ.pop('TMUX', None); os.environ.pop('TEXTUAL_COLOR_SYSTEM', 0)"
    )
    check = f"{program}\nimport mpiwizard.ui\nfrom textual import constants\nassert constants.COLOR_SYSTEM == '256'"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
