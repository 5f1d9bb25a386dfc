"""The line of keys at the bottom: what can be pressed now, most useful first, as many as fit."""

from __future__ import annotations

from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

_AT_THE_RIGHT = ("e", "q", "?")  # the same on every screen
_WHERE_ROOM_IS = "← →"  # and this one, where the others leave room


class Keys(Widget):
    """Reads the screen's own bindings, so that the line can never disagree with the keys."""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, screen: Screen[object]) -> None:
        self.refresh()

    def render(self) -> Content:
        offers = getattr(self.screen, "offers", lambda action: True)
        typing = self.screen.focused if isinstance(self.screen.focused, Input) else None
        shown = [
            (binding.key_display or binding.key, binding.description)
            for node, binding, enabled, _ in self.screen.active_bindings.values()
            if binding.show and enabled and offers(binding.action) and (node is typing or typing is None)
        ]
        last = [key for key in shown if key[0] in _AT_THE_RIGHT]
        room = self.size.width - sum(_width(key) for key in last)
        line = Content("")
        others = [key for key in shown if key[0] not in _AT_THE_RIGHT]
        for key in sorted(others, key=lambda key: key[0] == _WHERE_ROOM_IS):
            if line.cell_length + _width(key) <= room:
                line += _key(*key)
        line += Content(" " * max(room - line.cell_length, 0))
        for key in last:
            line += _key(*key)
        return line.rstrip()


def _key(key: str, description: str) -> Content:
    return Content.assemble((key, "bold $accent"), " ", description, "  ")


def _width(key: tuple[str, str]) -> int:
    return _key(*key).cell_length
