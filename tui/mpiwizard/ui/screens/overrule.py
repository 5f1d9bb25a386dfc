"""Overrule: the person knows better what the platform is. Asked as a small list over the facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mpiwizard.core.i18n import _
from mpiwizard.ui.screens.dialogs import Question, TextQuestion

if TYPE_CHECKING:
    from mpiwizard.core.context import Assumptions
    from mpiwizard.core.detect.model import Fact

AS_FOUND = "as found"  # the answer that takes back what was overruled; no value of an axis has a blank


def axis_of(fact_id: str, axes: Mapping[str, Mapping[str, str]]) -> str:
    """The axis of the platform that a fact is about; empty for a fact that cannot be overruled."""
    group, _dot, axis = fact_id.partition(".")
    return axis if group == "platform" and axis in axes else ""


def question(fact: Fact, names: Mapping[str, str], assume: Assumptions) -> Question | TextQuestion:
    """Asks for one of the values by their names, or for any text where there are none.

    The answer is a value, AS_FOUND, or empty to change nothing.
    """
    axis = fact.id.partition(".")[2]
    now = dict(assume).get(axis, "")
    title = _("{label}: what is it really?").format(label=fact.label)
    detail = _("Now: {text}.\nWhat you say counts in every later stage.").format(text=fact.text)
    if not names:
        return TextQuestion(title, f"{detail} {_('An empty line: as found.')}", now, empty=AS_FOUND)
    answers = ((AS_FOUND, _("as found by its signs")), *names.items())
    return Question(title, detail, answers, highlight=now or AS_FOUND)


def assumed(assume: Assumptions, axis: str, answer: str) -> Assumptions:
    """What is overruled once the question about this axis was answered."""
    others = tuple(pair for pair in assume if pair[0] != axis)
    return others if answer == AS_FOUND else (*others, (axis, answer))
