"""Evidence: what is known about the highlighted row, and how it is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

if TYPE_CHECKING:
    from rich.console import RenderableType


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

    def compose(self) -> Iterable[Static]:
        yield self._text

    def show(
        self,
        title: str,
        sentences: Iterable[str] = (),
        pairs: Iterable[tuple[str, str]] = (),
        picture: str = "",
    ) -> None:
        """Replace what is shown; empty sentences and pairs are left out."""
        self._text.update(_compose(title, sentences, pairs, (picture, self.app.theme_variables["primary"])))
        self.scroll_home(animate=False)


def _compose(
    title: str, sentences: Iterable[str], pairs: Iterable[tuple[str, str]], picture: tuple[str, str]
) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for label, text in pairs:
        if text:
            grid.add_row(Text(label), Text(text))
    parts: list[RenderableType] = [Text(title, "bold")] if title else []
    parts += [Text(sentence) for sentence in sentences if sentence]
    if grid.row_count:
        parts.append(grid)
    if picture[0]:
        parts.append(Text(*picture, no_wrap=True))
    return Group(*parts)
