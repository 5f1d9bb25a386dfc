"""LogView: the live log of a step. Holds no lines: it reads from the file what is visible."""

from __future__ import annotations

import re
from pathlib import Path

from rich.text import Text
from textual import work
from textual.binding import Binding
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mpiwizard.core.build.ansi import clean_line, plain_line
from mpiwizard.core.build.log_index import LogIndex

_REMEMBERED_LINES = 2048
_LONGEST_PAUSE = 0.5  # seconds between looks at a log that does not grow


class LogView(ScrollView, can_focus=True):
    """A growing file, drawn at most `hertz` times a second whatever its speed.

    `leave_out` is a folder that is not drawn in front of file names, so that what is said of them has room.
    """

    # The bar is always there: Textual would show it only at the next change of size.
    DEFAULT_CSS = """
    LogView {
        overflow-y: scroll;
        overflow-x: auto;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0;
    }
    """
    BINDINGS = [
        Binding("up", "scroll_up", show=False),
        Binding("down", "scroll_down", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown", "page_down", show=False),
        Binding("home", "scroll_home", show=False),
        Binding("end", "scroll_end", show=False),
    ]

    follow: var[bool] = var(True)
    marked: var[int | None] = var(None)

    class FollowChanged(Message):
        """The view began or ceased to follow the end of the log."""

    class Found(Message):
        """A search ended; `line` is None when nothing was found."""

        def __init__(self, line: int | None, pattern: str) -> None:
            super().__init__()
            self.line = line
            self.pattern = pattern

    def __init__(self, hertz: float = 30.0) -> None:
        super().__init__()
        self.hertz = hertz
        self.leave_out = ""
        self.path: Path | None = None
        self.index: LogIndex | None = None
        self._strips: LRUCache[int, Strip] = LRUCache(_REMEMBERED_LINES)
        self._widest = 0
        self._pause = 0.0

    def on_mount(self) -> None:
        self._keep_polling()

    def _keep_polling(self) -> None:
        self._pause = 1 / self.hertz if self.poll() else min(2 * self._pause or 1 / self.hertz, _LONGEST_PAUSE)
        self.set_timer(self._pause, self._keep_polling)

    def on_unmount(self) -> None:
        self._close()

    def open(self, path: Path) -> None:
        """Show this file from now on; it need not exist yet."""
        if path != self.path:
            self._close()
            self.path = path
            self.follow = True
            self.poll()
            self.refresh()

    def poll(self) -> bool:
        """Take in what was written since the last time; whether there was anything."""
        index = self.index or self._opened()
        if index is None:
            return False
        last = len(index) - 1
        if grew := index.poll():
            self._strips.discard(last)  # it may have been half written
            self.virtual_size = Size(self._widest, len(index))
            self.refresh()
        if self.follow and not self.is_vertical_scroll_end:
            # force: the scroll bar may not be laid out yet on the first lines
            self.scroll_end(animate=False, immediate=True, force=True, x_axis=False)
        return grew

    def line_text(self) -> str:
        """The marked line, or the last visible one, without colours."""
        if self.index is None or not len(self.index):
            return ""
        bottom = self.scroll_offset.y + self.scrollable_content_region.height - 1
        number = bottom if self.marked is None else self.marked
        return plain_line(self.index.line(max(0, min(number, len(self.index) - 1))))

    @work(thread=True, exclusive=True, exit_on_error=False)
    def find(self, pattern: str) -> None:
        """Look for the next line that matches, from the marked or the topmost one on; then post Found.

        A pattern that is no regular expression is taken literally.
        """
        index = self.index
        if index is None or not len(index):
            line = None
        else:
            first = self.scroll_offset.y if self.marked is None else self.marked + 1
            expression = _expression(pattern)
            line = index.find(expression, first)
            if line is None:
                line = index.find(expression, 0)
        self.post_message(self.Found(line, pattern))

    def on_log_view_found(self, event: Found) -> None:
        if event.line is not None:
            self.follow = False
            self.marked = event.line
            above = self.scrollable_content_region.height // 2
            self.scroll_to(y=max(event.line - above, 0), animate=False, immediate=True)

    def watch_marked(self, before: int | None, after: int | None) -> None:
        for number in (before, after):
            if number is not None:
                self._strips.discard(number)
        self.refresh()

    def watch_follow(self) -> None:
        self.post_message(self.FollowChanged())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self.is_vertical_scroll_end:  # also when another file is shorter
            self.follow = True
        elif new_value < old_value:
            self.follow = False

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        number, width = scroll_y + y, self.scrollable_content_region.width
        if self.index is None or number >= len(self.index):
            return Strip.blank(width, self.rich_style)
        strip = self._strips.get(number)
        if strip is None:
            strip = self._strips[number] = self._strip(self.index, number)
            self._widest = max(self._widest, strip.cell_length)
        return strip.crop_extend(scroll_x, scroll_x + width, self.rich_style)

    def _strip(self, index: LogIndex, number: int) -> Strip:
        line = clean_line(index.line(number))
        if self.leave_out:
            line = line.replace(self.leave_out, "")
        text = Text.from_ansi(line, no_wrap=True, end="")
        text.stylize_before(self.rich_style)
        if number == self.marked:
            text.stylize("reverse")
        return Strip(text.render(self.app.console), text.cell_len)

    def _opened(self) -> LogIndex | None:
        if self.path is None:
            return None
        try:
            self.index = LogIndex(self.path)
        except OSError:
            return None
        return self.index

    def _close(self) -> None:
        if self.index is not None:
            self.index.close()
        self.index = None
        self.marked = None
        self._strips.clear()
        self._widest = 0
        self.virtual_size = Size(0, 0)


def _expression(pattern: str) -> re.Pattern[bytes]:
    try:
        return re.compile(pattern.encode(), re.IGNORECASE)
    except re.error:
        return re.compile(re.escape(pattern).encode(), re.IGNORECASE)
