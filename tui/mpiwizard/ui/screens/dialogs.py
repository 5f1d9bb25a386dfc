"""What lies over a stage for a moment: a question, a line to type, the help."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static

from mpiwizard.core.i18n import _
from mpiwizard.ui.screens.stage import StageScreen
from mpiwizard.ui.signs import sign, word
from mpiwizard.ui.widgets.rows import Column, Row, Rows

_STAY = "stay"


class Question(ModalScreen[str]):
    """A question with its answers, (value, text) each; Enter takes the highlighted one, Esc answers "".

    `highlight` is the value that is highlighted first, if it is not the first of them.
    """

    CSS_PATH = "dialogs.tcss"
    BINDINGS = [Binding("escape", "stay", show=False), Binding("enter", "take", show=False)]

    def __init__(self, title: str, detail: str, answers: tuple[tuple[str, str], ...], highlight: str = "") -> None:
        super().__init__()
        self._title = title
        self._detail = detail
        self._answers = answers
        self._highlight = highlight

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(Content.assemble((self._title, "bold"), "\n", self._detail))
            yield Rows(Column())
            yield Static(_("↑↓ and Enter; Esc stays here"), classes="hint")

    def on_mount(self) -> None:
        self.query_one(Rows).show([Row(value or _STAY, (text,)) for value, text in self._answers], self._highlight)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.action_take()

    def action_take(self) -> None:
        answer = self.query_one(Rows).row_id
        self.dismiss("" if answer == _STAY else answer)

    def action_stay(self) -> None:
        self.dismiss("")


class TextQuestion(ModalScreen[str]):
    """A question that is answered by typing; an empty line answers `empty`, Esc with an empty text."""

    CSS_PATH = "dialogs.tcss"
    BINDINGS = [Binding("escape", "stay", show=False)]

    def __init__(self, title: str, detail: str, text: str, empty: str = "") -> None:
        super().__init__()
        self._title = title
        self._detail = detail
        self._text = text
        self._empty = empty

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(Content.assemble((self._title, "bold"), "\n", self._detail))
            yield Input(self._text, compact=True)
            yield Static(_("Enter takes it; Esc leaves everything as it was"), classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or self._empty)

    def action_stay(self) -> None:
        self.dismiss("")


class Help(ModalScreen[None]):
    """All keys of a stage, and what the signs mean."""

    AUTO_FOCUS = "VerticalScroll"
    CSS_PATH = "dialogs.tcss"
    BINDINGS = [Binding("escape,question_mark,enter,q", "close", show=False)]

    def __init__(self, stage: StageScreen) -> None:
        super().__init__()
        common = {binding.key for binding in StageScreen.BINDINGS if isinstance(binding, Binding)}
        bindings = [one.binding for one in stage.active_bindings.values()]
        self._lines = [
            (binding.key_display or binding.key, binding.tooltip or binding.description)
            for binding in sorted(bindings, key=lambda binding: binding.key in common)
            if binding.description and (binding.show or binding.key_display)
        ]

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="sheet"):
            yield Static(Content("\n").join(self._all_lines()))

    def _all_lines(self) -> list[Content]:
        moves = [
            ("↑ ↓", _("rows")),
            ("Tab", _("next pane")),
            ("1…6", _("go to a stage; on Choose, 1 to 4 answer the question")),
            ("Ctrl+P", _("all commands, found by typing")),
        ]
        signs = ("done", "running", "waiting", "outdated", "interrupted", "failed")
        return [
            Content.assemble((_("Keys"), "bold"), "   ", (_("Esc closes this"), "dim")),
            *(_line(key, text) for key, text in self._lines + moves),
            Content(""),
            Content.assemble((_("Signs"), "bold")),
            Content("   ").join([Content(f"{sign(state)} {word(state)}") for state in signs]),
            Content(_("! look at this   ✗ stops a build   ? not known   = fixed")),
        ]

    def action_close(self) -> None:
        self.dismiss()


def _line(key: str, text: str) -> Content:
    return Content.assemble((f"{key:<8}", "bold $accent"), text)
