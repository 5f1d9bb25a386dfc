"""The rail: six stages, where the person is, and how each stage stands."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from mpiwizard.ui.signs import STAGES, sign, stage_title, style, word


class Rail(Widget):
    """One line. The stage on screen carries its word; in a wide terminal every stage does."""

    states: reactive[tuple[str, ...]] = reactive(("waiting",) * len(STAGES))

    def __init__(self, here: str) -> None:
        super().__init__()
        self.here = here

    def render(self) -> Content:
        name = Content.assemble(("mpiwizard", "bold $primary"), "  ")
        for prefix, separator, wide in ((name, "  ", True), (name, " ", False), (Content(""), " ", False)):
            line = Content.assemble(prefix, Content(separator).join(self._stages(wide)))
            if line.cell_length <= self.size.width:
                break
        return line

    def _stages(self, wide: bool) -> list[Content]:
        return [
            self._stage(number, stage, state, wide)
            for number, (stage, state) in enumerate(zip(STAGES, self.states, strict=True), 1)
        ]

    def _stage(self, number: int, stage: str, state: str, wide: bool) -> Content:
        here = stage == self.here
        name = (f"{number} {stage_title(stage)}", "bold underline" if here else "")
        words = f" {word(state)}" if wide or here else ""
        return Content.assemble(name, " ", (sign(state) + words, style(state)))
