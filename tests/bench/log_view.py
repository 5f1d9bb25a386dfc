"""Whether the log view keeps up: 20,000 lines a second into a file, keys pressed meanwhile.

    python tests/bench/log_view.py [LINES_PER_SECOND]

Prints how many lines were shown and how long a key took from its press to its handling.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from textual.app import App, ComposeResult
from textual.events import Key

from mpiwizard.ui.widgets.log_view import LogView

SECONDS = 5.0


class Viewer(App[None]):
    """One log view, and the delay of every key."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.delays: list[float] = []

    def compose(self) -> ComposeResult:
        yield LogView()

    def on_mount(self) -> None:
        self.query_one(LogView).open(self.path)

    def on_key(self, event: Key) -> None:
        self.delays.append(time.monotonic() - event.time)


async def measure(rate: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "make.log"
        path.write_bytes(b"")
        app = Viewer(path)
        async with app.run_test(size=(120, 40)) as pilot:
            started = time.monotonic()
            written = 0
            with path.open("ab", buffering=0) as log:
                while (passed := time.monotonic() - started) < SECONDS:
                    due = int(passed * rate) - written
                    log.write(b"".join(b"  CC       file_%d.lo\n" % (written + n) for n in range(due)))
                    written += due
                    await asyncio.sleep(0.02)
                    app.post_message(Key("x", "x"))
            await pilot.pause(0.2)
            shown = len(app.query_one(LogView).index or ())
        delays = sorted(1000 * delay for delay in app.delays)
        print(f"{written:,} lines written in {SECONDS:.0f} s, {shown:,} indexed and shown")
        print(f"keys: median {statistics.median(delays):.1f} ms, 95 % {delays[int(0.95 * len(delays))]:.1f} ms")


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
