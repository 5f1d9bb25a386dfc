"""Entry: one line to type a filter or a search into, just above the keys."""

from __future__ import annotations

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input

from mpiwizard.core.i18n import _


class Entry(Input):
    """Hidden until it is opened. Posts Changed while the person types, and Closed with what was typed last."""

    BINDINGS = [
        Binding("escape", "give_up", _("give up"), key_display="Esc"),
        Binding("enter", "submit", _("keep"), key_display="Enter"),
    ]

    class Closed(Message):
        def __init__(self, text: str, given_up: bool) -> None:
            super().__init__()
            self.text = text
            self.given_up = given_up

    def __init__(self) -> None:
        super().__init__(compact=True)

    def open(self, placeholder: str, text: str) -> None:
        """Show the line, with a text that typing replaces. It has the focus at once: keys may come in a burst."""
        self.placeholder, self.value = placeholder, text
        self.display = True
        self.screen.set_focus(self)

    def on_key(self, event: events.Key) -> None:
        if not self.display:  # sent before the focus had left
            event.prevent_default()

    def action_give_up(self) -> None:
        self._close("", given_up=True)

    async def action_submit(self) -> None:
        self._close(self.value, given_up=False)

    def _close(self, text: str, *, given_up: bool) -> None:
        self.display = False
        self.post_message(self.Closed(text, given_up))
