"""How long a build takes and how much room it needs, scaled from measured builds."""

from __future__ import annotations

from collections.abc import Iterable

from mpiwizard.core.detect.model import Machine
from mpiwizard.core.recipes import ConfigureOption, Recipes, Series

GIB = 1 << 30
MEMORY_PER_JOB = 1 * GIB  # a safe rule of ours, not a measured need
FETCH_SECONDS = 10.0
VERIFY_SECONDS = 1.0
UNPACK_SECONDS = 4.0
TUNE_SECONDS = 10.0
VALIDATE_SECONDS = 20.0


def default_jobs(machine: Machine) -> int:
    """As many compilers as there are usable CPUs, and at least 1 GiB of memory for each."""
    cpus = int(machine.value("cpu.usable", 1))
    limits = [machine.value("memory.available"), machine.value("memory.limit")]
    memory = min((limit for limit in limits if limit), default=cpus * MEMORY_PER_JOB)
    return max(1, min(cpus, int(memory // MEMORY_PER_JOB)))


def estimate(series: Series, left_in: Iterable[ConfigureOption], jobs: int) -> dict[str, float]:
    """Seconds of each step, by its id, with `jobs` compilers. `left_in` are the lean options that are off.

    Each of them adds its compile steps to those of `series`; only make profits from more jobs.
    """
    extra = sum(option.saves_steps for option in left_in)
    make = series.make_seconds * (1 + extra / series.compile_steps) / max(jobs, 1)
    return {
        "fetch": FETCH_SECONDS,
        "verify": VERIFY_SECONDS,
        "unpack": UNPACK_SECONDS,
        "configure": series.configure_seconds,
        "make": make,
        "install": series.install_seconds,
        "tune": TUNE_SECONDS,
        "validate": VALIDATE_SECONDS,
    }


def left_in(recipes: Recipes, passed: Iterable[str]) -> tuple[ConfigureOption, ...]:
    """The options that would have saved compile steps, but are not among `passed`.

    Only those of the lean recipe count: the measured builds had all of them.
    """
    lean = {option.id for option in recipes.platforms["generic"].option}
    return tuple(recipes.options[name] for name in lean - set(passed) if recipes.options[name].saves_steps)
