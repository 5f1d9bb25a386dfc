"""The rail: six stages, where the person is, and how each stage stands."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from mpiwizard.ui.signs import STAGES, sign, stage_title, style, word


class Rail(Widget):
    """One line. The stage on screen carries its word; in a wide terminal all do, in a narrow one it alone is named."""

    states: reactive[tuple[str, ...]] = reactive(("waiting",) * len(STAGES))

    def __init__(self, here: str) -> None:
        super().__init__()
        self.here = here

    def render(self) -> Content:
        name = Content.assemble(("mpiwizard", "bold $primary"), "  ")
        settings = ((name, "  ", True, True), (name, " ", False, True), (Content(""), " ", False, True))
        for prefix, separator, wide, names in (*settings, (Content(""), "  ", False, False)):
            line = Content.assemble(prefix, Content(separator).join(self._stages(wide, names)))
            if line.cell_length <= self.size.width:
                break
        return line

    def _stages(self, wide: bool, names: bool) -> list[Content]:
        return [
            self._stage(number, stage, state, wide, names or stage == self.here)
            for number, (stage, state) in enumerate(zip(STAGES, self.states, strict=True), 1)
        ]

    def _stage(self, number: int, stage: str, state: str, wide: bool, named: bool) -> Content:
        here = stage == self.here
        name = (f"{number} {stage_title(stage)}" if named else str(number), "bold underline" if here else "")
        words = f" {word(state)}" if wide or here else ""
        return Content.assemble(name, " ", (sign(state) + words, style(state)))
