"""What all tests share: a pinned surrounding for the interface, and pictures of its screens.

Textual reads its settings when it is imported, so they are set before anything imports it.
"""

from __future__ import annotations

import difflib
import html
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.update(
    TEXTUAL_ANIMATIONS="none", TEXTUAL_COLOR_SYSTEM="truecolor", LANG="C.UTF-8", TZ="UTC", COLUMNS="80", LINES="24"
)  # fmt: skip
for _name in ("NO_COLOR", "TEXTUAL_FILTERS", "TEXTUAL_THEME", "COLORFGBG", "TEXTUAL_PRESS", "TEXTUAL_SCREENSHOT"):
    os.environ.pop(_name, None)

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

settings.register_profile("unhurried", deadline=None)  # a busy machine is no fault of what is tested
settings.load_profile("unhurried")

TESTS = Path(__file__).resolve().parent
SNAPSHOTS = TESTS.parent / "snapshots"
_PATIENCE = 3.0  # seconds
_CELL = 12.2  # width of a character in an exported picture


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--snapshot-update", action="store_true", help="accept the screens as they are now")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that wait for processes come first, so that those that compute fill their pauses."""
    waiting = [TESTS / "e2e", TESTS / "worker"]
    items.sort(key=lambda item: not any(folder in item.path.parents for folder in waiting))


def normalize(svg: str) -> str:
    """The picture without what changes while the screen does not: a content-derived id, web fonts."""
    prefix = re.search(r"terminal-\d+", svg)
    assert prefix is not None
    return re.sub(r"\s*@font-face \{.*?\}", "", svg.replace(prefix[0], "terminal"), flags=re.DOTALL)


def screen_text(svg: str) -> list[str]:
    """The characters of a picture, line by line, for a diff that can be read."""
    from rich.cells import cell_len

    rows: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in re.findall(r'<text[^>]*? x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>', svg):
        rows.setdefault(float(y), []).append((float(x), html.unescape(text).replace("\xa0", " ")))
    lines = []
    for y in sorted(rows):
        line = ""
        for x, text in sorted(rows[y]):
            line += " " * (round(x / _CELL) - cell_len(line)) + text
        lines.append(line.rstrip())
    return lines


def snapshot_file(node_id: str) -> Path:
    """Where the picture of a test lies: `snapshots/<test module>/<test name>.svg`."""
    module, _, name = node_id.partition("::")
    folder = SNAPSHOTS / Path(module).relative_to(TESTS.name).with_suffix("")
    return folder / (re.sub(r"[^\w.-]+", "_", name).strip("_") + ".svg")


Compare = Callable[..., Awaitable[None]]


@pytest.fixture
def snap_compare(request: pytest.FixtureRequest) -> Iterator[Compare]:
    """Compare the screen of an app with its picture; `--snapshot-update` draws the picture anew."""

    async def compare(
        app: Any,
        *,
        size: tuple[int, int] = (80, 24),
        press: tuple[str, ...] = (),
        before: Callable[[Any], Awaitable[None]] | None = None,
    ) -> None:
        async with app.run_test(size=size, notifications=True) as pilot:
            if before is not None:
                await before(pilot)
            await pilot.press(*press)
            await pilot.wait_for_scheduled_animations()
            await pilot.pause()
            path = snapshot_file(request.node.nodeid)
            want = path.read_text(encoding="utf-8") if path.exists() else ""
            got = await _settled(app, pilot, want)
        _compare_with_file(got, path, request.config.getoption("--snapshot-update"))

    yield compare


async def _settled(app: Any, pilot: Any, want: str) -> str:
    """The picture of the screen, once it is the wanted one or has had time enough on a busy machine."""
    end = time.monotonic() + _PATIENCE
    while True:
        got = normalize(app.export_screenshot(title="mpiwizard", simplify=True))
        if got == want or time.monotonic() > end:
            return got
        for screen in app.screen_stack:  # one below a question may not have been drawn when it was covered
            screen.refresh(layout=True)
        await pilot.pause(0.05)


def _compare_with_file(got: str, path: Path, update: bool) -> None:
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(got, encoding="utf-8", newline="\n")
        return
    if not path.exists():
        pytest.fail(f"no snapshot {path}; look at the screen, then: pytest --snapshot-update")
    want = path.read_text(encoding="utf-8")
    if got == want:
        return
    path.with_suffix(".actual.svg").write_text(got, encoding="utf-8", newline="\n")
    lines = difflib.unified_diff(screen_text(want), screen_text(got), "snapshot", "now", lineterm="")
    pytest.fail(f"{path.name} differs\n" + ("\n".join(lines) or "(only colours or styles differ)"), pytrace=False)
