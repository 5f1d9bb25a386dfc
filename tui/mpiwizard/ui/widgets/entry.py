"""Entry: one line to type a filter or a search into, just above the keys."""

from __future__ import annotations

from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input

from mpiwizard.core.i18n import _


class Entry(Input):
    """Posts Typed while the person types, and Closed with what was typed last; Esc empties it first."""

    BINDINGS = [
        Binding("escape", "give_up", _("give up"), key_display="Esc"),
        Binding("enter", "submit", _("keep"), key_display="Enter"),
    ]

    class Closed(Message):
        def __init__(self, text: str, given_up: bool) -> None:
            super().__init__()
            self.text = text
            self.given_up = given_up

    def __init__(self, placeholder: str, text: str = "") -> None:
        super().__init__(text, placeholder=placeholder, compact=True)

    def action_give_up(self) -> None:
        self._close("", given_up=True)

    async def action_submit(self) -> None:
        self._close(self.value, given_up=False)

    def _close(self, text: str, *, given_up: bool) -> None:
        self.post_message(self.Closed(text, given_up))
        self.remove()
