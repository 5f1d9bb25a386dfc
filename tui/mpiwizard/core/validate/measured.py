"""Samples become a metric: their median and spread, their method, and their place beside the expectations."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from mpiwizard.core.detect.model import Machine
from mpiwizard.core.errors import WizardError
from mpiwizard.core.i18n import _
from mpiwizard.core.probes import Probes
from mpiwizard.core.recipes import Expectation, Recipes
from mpiwizard.core.validate.judge import is_about, judge
from mpiwizard.core.validate.model import Metric


class Measured(Struct, frozen=True):
    """Samples of one quantity, how they were taken, and why there are none."""

    samples: tuple[float, ...] = ()
    method: str = ""
    failure: str = ""
    curve: tuple[tuple[int, float], ...] = ()


class Judge:
    """Turns what was measured into metrics: joins the expectations and says the word."""

    def __init__(self, recipes: Recipes, machine: Machine) -> None:
        self._machine = machine
        self._expectations = recipes.expectations

    def expectations_of(self, metric: str) -> tuple[Expectation, ...]:
        """Those of a metric: the guide's first, then those about machines like this one, then all others."""
        of_metric = [one for one in self._expectations if one.metric == metric]
        of_metric.sort(key=lambda one: (not one.who.startswith("guide-"), not is_about(one, self._machine)))
        return tuple(of_metric)

    def metric(
        self,
        id: str,
        label: str,
        unit: str,
        definition: str,
        measured: Measured,
        better: str = "lower",
        claims: tuple[int, ...] = (),
    ) -> Metric:
        """The median of the samples beside the expectations; word `none` when there are no samples."""
        expectations = self.expectations_of(id)
        if not measured.samples:
            return Metric(
                id, label, unit, None, None, 0, definition, measured.method, "none", measured.failure,
                expectations, better=better, claims=claims,
            )  # fmt: skip
        value = median(measured.samples)
        word, verdict = judge(value, unit, expectations, self._machine)
        return Metric(
            id, label, unit, value, (min(measured.samples), max(measured.samples)), len(measured.samples),
            definition, measured.method, word, verdict, expectations, measured.curve, better, claims,
        )  # fmt: skip


def compile_failure(probes: Probes, name: str) -> str:
    """Compile a probe; why it does not compile, or nothing."""
    try:
        probes.compile(name)
    except WizardError as error:
        return str(error)
    return ""


def measured_with(
    probes: Probes,
    samples: Sequence[float],
    method: str,
    command: Sequence[str],
    failure: str,
    curve: tuple[tuple[int, float], ...] = (),
) -> Measured:
    """Samples with their method: also the state of the machine and the command. A failure voids them."""
    load = (probes.host.read("/proc/loadavg") or "").partition(" ")[0]
    parts = [method, _("Load {load}, usable cores {cores}.").format(load=load or "–", cores=probes.cores)]
    if probes.cores == 1:
        parts.append(_("The ranks of a job share this core."))
    parts.append(_("Command: {command}").format(command=shlex.join(command)))
    return Measured(() if failure else tuple(samples), " ".join(parts), failure, curve)
