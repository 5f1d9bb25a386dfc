"""Evidence: what is known about the highlighted row, and how it is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

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
