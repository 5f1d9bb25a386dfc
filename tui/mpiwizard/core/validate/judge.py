"""A measured value beside what others expected of it: a word, and the sentence behind it.

Only an expectation with a source, and about machines like this one, can make a value low or high.
Missing any other is no failure, and the sentence says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpiwizard.core.detect.model import Machine
from mpiwizard.core.i18n import _
from mpiwizard.core.recipes import Expectation, fits

_IN_BASE = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "MB/s": 1e6, "GB/s": 1e9}  # seconds, bytes per second
_TRUSTED = ("correct", "version-dependent")


def judge(value: float, unit: str, expectations: Sequence[Expectation], machine: Machine) -> tuple[str, str]:
    """The word (ok, low, high or info) and its sentence."""
    numbers = [one for one in expectations if one.unit in _IN_BASE and (one.low, one.high) != (None, None)]
    for one in numbers:
        if one.source and one.verdict in _TRUSTED and is_about(one, machine):
            return _decide(place(value, unit, one), one)
    guide = [one for one in numbers if one.who.startswith("guide-")]
    if guide:
        return "info", _beside_the_guide(value, unit, guide)
    if numbers:
        where = {"ok": _("Within"), "low": _("Below"), "high": _("Above")}[place(value, unit, numbers[0])]
        return "info", _("{where} {text} ({who}), which is about other machines and decides nothing here.").format(
            where=where, text=numbers[0].text, who=numbers[0].who
        )
    return "info", _("Nobody published an expectation for this.")


def is_about(expectation: Expectation, machine: Machine) -> bool:
    """True when it was published for machines like this one."""
    return bool(expectation.when) and fits(machine.values, expectation.when)


def place(value: float, unit: str, expectation: Expectation) -> str:
    """Where the value lies to the expected range: ok (within), low or high."""
    scaled = value * _IN_BASE[unit] / _IN_BASE[expectation.unit]
    if expectation.low is not None and scaled < expectation.low:
        return "low"
    if expectation.high is not None and scaled > expectation.high:
        return "high"
    return "ok"


def _decide(word: str, expectation: Expectation) -> tuple[str, str]:
    sentence = {
        "ok": _("Within {text}, published by {who} for machines like this one ({source})."),
        "low": _("Below {text}, published by {who} for machines like this one ({source})."),
        "high": _("Above {text}, published by {who} for machines like this one ({source})."),
    }[word]
    return word, sentence.format(text=expectation.text, who=expectation.who, source=expectation.source)


def _beside_the_guide(value: float, unit: str, guide: Sequence[Expectation]) -> str:
    """Where the value lies to the guide's columns; no source was found for any of their values."""
    places = [place(value, unit, one) for one in guide]
    columns = {"guide-wsl2": _("WSL2"), "guide-cloud": _("a cloud server")}
    inside = [columns.get(one.who, one.who) for one, where in zip(guide, places, strict=True) if where == "ok"]
    if inside:
        where = _("As the guide expects of {columns}").format(columns=_(" and ").join(inside))
    elif {"low", "high"} <= set(places):
        where = _("Between the guide's values")
    elif places[0] == "low":
        where = _("Below the guide's values")
    else:
        where = _("Above the guide's values")
    return _("{where}; no source for this expectation.").format(where=where)
