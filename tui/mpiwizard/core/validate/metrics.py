"""Every metric of the report, each with its definition, unit, spread and method."""

from __future__ import annotations

from collections.abc import Iterator

from mpiwizard.core.detect.model import Machine
from mpiwizard.core.i18n import _
from mpiwizard.core.probes import Probes
from mpiwizard.core.recipes import Recipes
from mpiwizard.core.tune.model import Tuning
from mpiwizard.core.tune.trial import single_copy
from mpiwizard.core.validate.checks import settings_in_a_job
from mpiwizard.core.validate.measured import Judge, Measured
from mpiwizard.core.validate.memory import memory_metrics
from mpiwizard.core.validate.messages import message_metrics
from mpiwizard.core.validate.model import Metric
from mpiwizard.core.validate.starts import start_metrics


def all_metrics(probes: Probes, machine: Machine, recipes: Recipes, tuning: Tuning | None) -> Iterator[Metric]:
    """Every metric in the order it is shown. A probe that does not compile leaves its metrics empty."""
    judge = Judge(recipes, machine)
    yield from start_metrics(probes, judge)
    yield from message_metrics(probes, judge)
    yield from memory_metrics(probes, judge, machine)
    yield _between_hosts(judge)
    yield single_copy_metric(probes, judge, machine, tuning)


def _between_hosts(judge: Judge) -> Metric:
    return judge.metric(
        "latency-between-hosts",
        _("Latency between hosts"),
        "µs",
        _("Half the round trip of a small message between ranks of two hosts."),
        Measured(
            method=_("A ping-pong between two hosts; there is one here."),
            failure=_("Not measurable on one host: it takes two that reach each other."),
        ),
        claims=(47, 48),
    )


def single_copy_metric(probes: Probes, judge: Judge, machine: Machine, tuning: Tuning | None) -> Metric:
    """The mechanism a job is set to: the parameter as a rank sees it, and what the machine allows."""
    candidate = single_copy(probes.installation)
    value, source = settings_in_a_job(probes).get(candidate.parameter, ("", _("nothing")))
    off = value == candidate.off or machine.value("kernel.cma") == "refused"
    planned = tuning.parameters.get(candidate.parameter) if tuning else None
    if planned is None:
        word, verdict = "info", _("Left to Open MPI.")
    elif planned == value:
        word, verdict = "ok", _("As planned.")
    else:
        word, verdict = "info", _("Planned was {planned}; {value} is in effect.").format(planned=planned, value=value)
    return Metric(
        id="single-copy",
        label=_("Single copy"),
        unit="",
        value=None,
        spread=None,
        samples=0,
        definition=_("How a large message gets from one rank's memory to another's on this host."),
        method=_("{name} = {value}, from {source}, as a rank of a job sees it. Messages are not traced.").format(
            name=candidate.parameter, value=value or _("(empty)"), source=source
        ),
        word=word,
        verdict=verdict,
        expectations=judge.expectations_of("single-copy"),
        claims=(28, 50),
        text=_("two copies") if off else (value.upper() or "CMA"),
    )
