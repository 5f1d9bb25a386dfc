"""StageScreen: the one layout of all stages, and the way between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container
from textual.content import Content
from textual.screen import Screen
from textual.widgets import OptionList, Static

from mpiwizard.core.errors import WizardError
from mpiwizard.core.i18n import _
from mpiwizard.ui.signs import STAGES
from mpiwizard.ui.widgets.entry import Entry
from mpiwizard.ui.widgets.evidence import Evidence
from mpiwizard.ui.widgets.keys import Keys
from mpiwizard.ui.widgets.rail import Rail
from mpiwizard.ui.widgets.rows import Column, Rows

if TYPE_CHECKING:
    from mpiwizard.core.configure.model import Plan
    from mpiwizard.ui.app import WizardApp
    from mpiwizard.ui.watch import View

_Answer = TypeVar("_Answer")


class StageScreen(Screen[None]):
    """Rail, headline, rows, evidence, keys. A stage fills them in and says what Enter does."""

    stage: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]] = (Column(), Column())
    types_in = ("filter", "search")  # actions that open the line for typing

    AUTO_FOCUS = "Rows"
    BINDINGS = [
        Binding("e", "enlarge", _("more"), key_display="e"),
        Binding("left", "step(-1)", _("stages"), key_display="← →", tooltip=_("earlier, later stage")),
        Binding("right", "step(1)", show=False),
        *(Binding(str(number), f"visit('{stage}')", show=False) for number, stage in enumerate(STAGES, 1)),
        Binding("q", "quit", _("quit"), key_display="q"),
        Binding("question_mark", "help", _("help"), key_display="?"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.rail = Rail(self.stage)
        self.top = Static(id="headline", markup=False)
        self.rows = Rows(*self.columns)
        self.evidence = Evidence(id="evidence")
        self.entry = Entry()

    def compose(self) -> ComposeResult:
        yield self.rail
        yield self.top
        with Container(id="body"):
            yield self.rows
            yield from self.panes()
        yield from self.foot()
        yield self.entry
        yield Keys()
        yield Static(
            _("Enlarge the terminal to 80x24, or use `mpiwizard run --yes`."),
            id="too-small",
            markup=False,
        )

    def panes(self) -> ComposeResult:
        """What stands below or beside the rows."""
        yield self.evidence

    def foot(self) -> ComposeResult:
        """What stands above the keys."""
        yield from ()

    @property
    def wizard(self) -> WizardApp:
        return cast("WizardApp", self.app)

    @property
    def too_small(self) -> bool:
        return self.app.size.width < 60 or self.app.size.height < 16

    def headline(self, first: str, second: str = "") -> None:
        """The answer in one sentence, and what happens next in another."""
        self.top.update(Content.assemble((first, "bold"), "\n", (second, "dim")))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing happens unseen: in a terminal that is too small only Ctrl+Q works, which is the app's.

        What opens the line for typing goes before it, being of priority, and must leave it its keys.
        """
        if action in self.types_in and self.focused is self.entry:
            return False
        return not (self.is_mounted and self.too_small)

    def on_mount(self) -> None:
        self.refresh_rail()

    def on_screen_resume(self) -> None:
        self.refresh_rail()
        self.refresh_bindings()
        self.entered()

    def entered(self) -> None:
        """The person came to this stage, for the first time or again."""

    def run_changed(self, view: View) -> None:
        """The run that is watched moved on."""

    def run_lost(self, sentence: str) -> None:
        """The run that was watched cannot be read any more."""
        self.headline(sentence, _("1 goes to the start; Enter there leads to a new build."))
        self.rows.show([])
        self.evidence.show("")
        self.refresh_bindings()

    def refresh_rail(self) -> None:
        walk = self.wizard.walk
        self.rail.states = tuple(walk.state(stage) for stage in STAGES)

    def offers(self, action: str) -> bool:
        """Whether the line of keys names this action now. An action that is not offered says why when called."""
        return True

    def ask(self, question: Callable[[], _Answer], then: Callable[[_Answer], Any]) -> None:
        """Ask a stage in a thread; `then` gets the answer, a failure goes to `failed` as a sentence."""
        self.run_worker(lambda: self._ask(question, then), thread=True, group=self.stage)

    def _ask(self, question: Callable[[], _Answer], then: Callable[[_Answer], Any]) -> None:
        try:
            answer = question()
        except Exception as error:
            self.call_later(self.failed, as_sentence(error))
        else:
            self.call_later(then, answer)

    def failed(self, sentence: str) -> None:
        """A stage could not do what was asked."""
        self.wizard.walk.mark(self.stage, "failed")
        self.refresh_rail()
        self.headline(sentence)

    def refuse(self, why: str) -> None:
        """Say why a key does nothing now."""
        self.notify(why, markup=False, timeout=6)

    def copy(self, text: str) -> None:
        """Copy by the terminal's own clipboard; in GNU screen that does not work, so the text is shown too."""
        self.app.copy_to_clipboard(text)
        self.notify(_("Copied: {text}").format(text=text), markup=False, timeout=6)

    def type_in(self, placeholder: str, text: str = "") -> None:
        """Open the line for typing."""
        self.entry.open(placeholder, text)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self.show_evidence(event.option_id or "")

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A click. It only highlights; Enter goes on."""

    def show_evidence(self, row_id: str) -> None:
        """Show what is known of a row."""

    def action_enlarge(self) -> None:
        self.toggle_class("-evidence")

    def action_step(self, by: int) -> None:
        self.wizard.visit(STAGES[(STAGES.index(self.stage) + by) % len(STAGES)])

    def action_visit(self, stage: str) -> None:
        self.wizard.visit(stage)

    def action_quit(self) -> None:
        self.wizard.leave_now()

    def action_help(self) -> None:
        from mpiwizard.ui.screens.dialogs import Help

        self.app.push_screen(Help(self))

    def action_go_on(self) -> None:
        """What Enter does."""


def how_to_use(plan: Plan) -> str:
    """The line that makes a shell find what was built."""
    return _("Use it: . {prefix}/share/mpiwizard/environment.sh").format(prefix=plan.prefix)


def as_sentence(error: Exception) -> str:
    """What a person reads of a failure: our own sentence, or the admission that there was none."""
    if isinstance(error, WizardError):
        return str(error)
    return _("mpiwizard met a fault of its own ({error}); please report it.").format(
        error=f"{type(error).__name__}: {error}"
    )
