"""Evidence: what is known about the highlighted row, and how it is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import events
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from mpiwizard.core.i18n import _, ngettext

if TYPE_CHECKING:
    from rich.console import RenderableType

# Title, sentences, pairs, picture, verbatim text under its heading.
_Content = tuple[str, tuple[str, ...], tuple[tuple[str, str], ...], str, tuple[str, str]]


class Evidence(VerticalScroll, inherit_bindings=False):
    """A title, sentences, and labelled lines such as where a value was read. Tab leads here, to scroll."""

    # Not ← and →, which go from stage to stage.
    BINDINGS = [
        Binding("up", "scroll_up", show=False),
        Binding("down", "scroll_down", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown", "page_down", show=False),
        Binding("home", "scroll_home", show=False),
        Binding("end", "scroll_end", show=False),
    ]

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._text = Static("", markup=False)
        self._shown: _Content = ("", (), (), "", ("", ""))

    def compose(self) -> Iterable[Static]:
        yield self._text

    @property
    def text(self) -> str:
        """All that is shown, for another program."""
        title, sentences, pairs, picture, (heading, verbatim) = self._shown
        told = [f"{label + ': ' if label else ''}{text}" for label, text in pairs]
        return "\n".join(filter(None, [title, *sentences, *told, picture, heading and f"{heading}:", verbatim]))

    def show(
        self,
        title: str,
        sentences: Iterable[str] = (),
        pairs: Iterable[tuple[str, str]] = (),
        picture: str = "",
        verbatim: tuple[str, str] = ("", ""),
    ) -> None:
        """Replace what is shown; empty sentences and pairs are left out.

        `verbatim` is a heading and a text whose lines and blanks stay as they are; it is left out when it is empty.
        The same again changes nothing, so that a person can read on while other rows change.
        """
        content: _Content = (
            title,
            tuple(filter(None, sentences)),
            tuple((label, text) for label, text in pairs if text),
            picture,
            verbatim if verbatim[1] else ("", ""),
        )
        if content == self._shown:
            return
        same_row = title == self._shown[0]
        self._shown = content
        self._text.update(_compose(content, self.app.theme_variables["primary"]))
        if not same_row:
            self.scroll_home(animate=False)

    def watch_virtual_size(self) -> None:
        """Another text was laid out."""
        self.call_later(self._say_how_much_is_below)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._say_how_much_is_below)

    def on_focus(self, event: events.Focus) -> None:
        self._say_how_much_is_below()

    def on_blur(self, event: events.Blur) -> None:
        self._say_how_much_is_below()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._say_how_much_is_below()

    def _say_how_much_is_below(self) -> None:
        """In the line above, where there is one."""
        below = self.max_scroll_y - self.scroll_offset.y
        count = ngettext("{count} more line", "{count} more lines", below).format(count=below)
        how = "↓" if self.has_focus else _("Tab ↓")
        self.border_title = f" {count}: {how} " if below > 0 else ""


def _compose(content: _Content, colour: str) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    title, sentences, pairs, picture, (heading, verbatim) = content
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for label, text in pairs:
        grid.add_row(Text(label), Text(text))
    parts: list[RenderableType] = [Text(title, "bold")] if title else []
    parts += [Text(sentence) for sentence in sentences]
    if grid.row_count:
        parts.append(grid)
    if verbatim:
        parts += [Text(heading, "dim"), Padding(Text(verbatim, overflow="fold"), (0, 0, 0, 2))]
    if picture:
        parts.append(Text(picture, colour, no_wrap=True))
    return Group(*parts)
