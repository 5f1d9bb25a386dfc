"""Tuning and Trial: which settings were tried, what they gave, what was written."""

from __future__ import annotations

from msgspec import Struct


class Trial(Struct, frozen=True, omit_defaults=True):
    """One setting, measured without and with it, turn by turn. `gain` is after/before - 1, positive is better.

    `interval` is a 95 % confidence interval of the gain, None when nothing could be measured.
    """

    id: str
    label: str
    setting: str  # the line of the parameter file, such as btl_vader_single_copy_mechanism = cma
    metric: str
    unit: str
    before: float
    after: float
    gain: float
    interval: tuple[float, float] | None
    kept: bool
    verdict: str  # one sentence
    method: str
    samples_before: tuple[float, ...] = ()
    samples_after: tuple[float, ...] = ()


class Written(Struct, frozen=True, omit_defaults=True):
    """A file that was written, and how to undo it."""

    path: str
    what: str
    undo: str  # a sentence with the exact command


class Tuning(Struct, frozen=True):
    """The result of the stage."""

    prefix: str
    release: str
    trials: tuple[Trial, ...]
    parameters: dict[str, str]  # what stands in the parameter file's marked block
    written: tuple[Written, ...]
    schema: int = 1
