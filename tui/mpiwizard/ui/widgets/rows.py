"""Rows: the table every stage is shown as, one line per row, in groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.geometry import Offset
from textual.strip import Strip
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from mpiwizard.ui.signs import LOOK

_GAP = 2  # cells between columns
_STARVING = 10  # cells for the last column below which columns stand closer
_AMPLE = 1000  # cells to set a row in while the width is not known
MARGIN = 4  # cells for the marker of the highlighted row and the sign


class Row(NamedTuple):
    """One line: a sign with its style, and a text for each column. Without an `id` it cannot be highlighted."""

    id: str
    cells: tuple[str, ...]
    sign: str = " "
    style: str = ""
    dim: bool = False


class Column(NamedTuple):
    """How a column is set. The last one takes what is left; `limit` and `least` bound the others, in cells."""

    limit: int = 34
    right: bool = False
    least: int = 0


def heading(*cells: str, style: str = "") -> Row:
    """A line above rows."""
    return Row("", cells, style=style)


def remark(text: str) -> Row:
    """A line below a row that says more of it."""
    return Row("", (text,), dim=True)


class Rows(OptionList, inherit_bindings=False):
    """Textual's option list with columns. Enter is left to the screen: it goes on with the stage."""

    BINDINGS = [
        Binding("up", "cursor_up", show=False),
        Binding("down", "cursor_down", show=False),
        Binding("home", "first", show=False),
        Binding("end", "last", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown", "page_down", show=False),
    ]

    def __init__(self, *columns: Column) -> None:
        super().__init__(compact=True, markup=False)
        self.columns = columns
        self._rows: tuple[Row, ...] = ()
        self._moved = False  # whether the person has moved the highlight
        self._showing = False

    @property
    def row_id(self) -> str:
        """The id of the highlighted row; empty when there is none."""
        option = self.highlighted_option
        return (option.id or "") if option is not None else ""

    def show(self, rows: Sequence[Row], highlight: str = "") -> None:
        """Show these rows, with the one named by `highlight` highlighted if it is among them.

        Else the highlighted row stays so, on its line of the screen; where it is gone, the next one takes its place.
        A highlight on the first row that the person never moved stays on the first row.
        """
        before, self._rows = self._rows, tuple(rows)
        self._showing = True
        if [row.id for row in before] == [row.id for row in self._rows] and not highlight:
            self._replace_changed()
        else:
            self._set_all(highlight or self._kept(before), in_place=highlight in ("", self.row_id))
        self._showing = False

    def hold(self) -> None:
        """Keep the highlighted row, as if the person had gone to it."""
        self._moved = True

    def _kept(self, before: Sequence[Row]) -> str:
        ids = [row.id for row in before if row.id]
        if self.row_id not in ids or (self.row_id == ids[0] and not self._moved):
            return ""
        place, present = ids.index(self.row_id), {row.id for row in self._rows}
        return next((row_id for row_id in (*ids[place:], *ids[place::-1]) if row_id in present), "")

    def on_resize(self, event: events.Resize) -> None:
        self._replace_changed()
        self.scroll_to_highlight()

    def watch_highlighted(self, highlighted: int | None) -> None:
        super().watch_highlighted(highlighted)
        self._moved = self._moved or (highlighted is not None and not self._showing)
        self.call_after_refresh(self._place_cursor)

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        if self.highlighted is None or self.scroll_offset.y + y != self.highlighted:
            return strip
        marker = next((segment.style for segment in strip), None)
        strip = Strip.join([Strip([Segment("▸", marker)], 1), strip.crop(1)])
        return strip.apply_style(Style(reverse=True)) if self.app.no_color else strip

    def scroll_to_highlight(self, top: bool = False) -> None:
        super().scroll_to_highlight(top)
        if self.highlighted is not None and self.highlighted <= 1:  # show the heading above the first row too
            self.scroll_to(y=0, animate=False, immediate=True)

    def _place_cursor(self) -> None:
        """Braille displays and magnifiers follow the terminal's own cursor."""
        if self.is_attached and self.has_focus and self.highlighted is not None:
            line = self.highlighted - self.scroll_offset.y
            self.app.cursor_position = self.content_region.offset + Offset(0, line)
            self.refresh()

    def _set_all(self, highlight: str, in_place: bool) -> None:
        scrolled, before = self.scroll_offset.y, self.highlighted
        self.set_options(
            Option(prompt, id=row.id or None, disabled=not row.id)
            for row, prompt in zip(self._rows, self._prompts(), strict=True)
        )
        places = {row.id: place for place, row in enumerate(self._rows) if row.id}
        if places:
            place = places.get(highlight, next(iter(places.values())))
            if in_place and before is not None:
                scrolled += place - before
            self.scroll_to(y=scrolled, animate=False, immediate=True)
            self.highlighted = place

    def _replace_changed(self) -> None:
        for place, (option, prompt) in enumerate(zip(self.options, self._prompts(), strict=False)):
            if not isinstance(option.prompt, Content) or not prompt.is_same(option.prompt):
                self.replace_option_prompt_at_index(place, prompt)

    def _prompts(self) -> list[Content]:
        known = self.scrollable_content_region.width  # 0 before the first layout
        room = max(known - MARGIN, 1) if known else _AMPLE
        widths, gap = self._widths(room)
        return [self._prompt(row, widths, gap) for row in self._rows]

    def _widths(self, room: int) -> tuple[list[int], int]:
        """The cells of each column, and those between them: fewer where the last column would starve.

        Where that is not enough the first column gives way: the evidence has its text in full.
        """
        full = [row.cells for row in self._rows if len(row.cells) == len(self.columns)]
        wanted = [max((cell_len(cells[place]) for cells in full), default=0) for place in range(len(self.columns))]
        others = zip(wanted, self.columns[:-1], strict=False)
        widths = [max(min(cells, column.limit), column.least) for cells, column in others]
        left = room - sum(widths)
        gap = _GAP if left - _GAP * len(widths) >= _STARVING or len(widths) < 2 else 1
        last = left - gap * len(widths)
        if widths:
            given = max(0, min(min(wanted[-1], _STARVING) - last, widths[0] // 2))
            widths[0], last = widths[0] - given, last + given
        return [*widths, max(last, 0)], gap

    def _prompt(self, row: Row, widths: list[int], gap: int) -> Content:
        line = Content.assemble("  ", (row.sign, row.style), " ") if row.id else Content("  ")
        if not row.id and (len(row.cells) > 1 or row.dim):
            line = Content("    ")
        last = len(row.cells) - 1
        for place, (text, width, column) in enumerate(zip(row.cells, widths, self.columns, strict=False)):
            if place == last:  # a row with fewer cells than columns: the last one has all the room
                width = sum(widths[place:]) + gap * (len(widths) - 1 - place)
            cell = Content(text).truncate(width, ellipsis=True).stylize(_style(row, place == last))
            space = Content(" " * (width - cell.cell_length))
            alone = place == last and place < len(self.columns) - 1
            line += space + cell if column.right and not alone else cell + space
            line += Content(" " * (gap if place != last else 0))
        return line


def _style(row: Row, is_last: bool) -> str:
    if not row.id:
        return "" if row.dim else row.style or "bold dim"
    if row.dim:
        return "dim"
    return row.style if is_last and row.style == LOOK else ""
