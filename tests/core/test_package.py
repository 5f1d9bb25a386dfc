"""What is shipped, and what loading it costs."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

PROJECT = Path(__file__).parents[2]
IMPORT_ALL_OF_CORE = """
import importlib, pkgutil, sys
import mpiwizard.core as core
for module in pkgutil.walk_packages(core.__path__, "mpiwizard.core."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(len([name for name in sys.modules if name.startswith("mpiwizard.core.")]))
print(sorted({"textual", "rich", "psutil", "pexpect"} & set(sys.modules)))
"""


def test_core_loads_without_any_screen_or_process_library() -> None:
    result = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL_OF_CORE],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(PROJECT / "tui")},
    )  # fmt: skip
    count, forbidden = result.stdout.splitlines()
    assert int(count) > 40
    assert forbidden == "[]"


def test_the_wheel_holds_every_recipe_and_every_module(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(PROJECT)],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        shipped = set(archive.namelist())
    recipes = {f"mpiwizard/{path.relative_to(PROJECT)}" for path in (PROJECT / "recipes").rglob("*") if path.is_file()}
    modules = {str(path.relative_to(PROJECT / "tui")) for path in (PROJECT / "tui").rglob("*.py")}
    styles = {str(path.relative_to(PROJECT / "tui")) for path in (PROJECT / "tui").rglob("*.tcss")}
    assert len(recipes) > 15
    assert recipes | modules | styles <= shipped
    assert {name.partition("/")[0] for name in shipped if ".dist-info" not in name} == {"mpiwizard"}
