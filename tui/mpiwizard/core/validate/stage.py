"""The stage itself: checks, then measurements, then one report beside the installation."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import msgspec

from mpiwizard.core.context import Context
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.files import replace_file
from mpiwizard.core.format import quantity
from mpiwizard.core.frontend import Frontend
from mpiwizard.core.i18n import _
from mpiwizard.core.installation import Installation
from mpiwizard.core.probes import Probes
from mpiwizard.core.recipes import Recipes
from mpiwizard.core.tune import load_tuning
from mpiwizard.core.tune.model import Tuning
from mpiwizard.core.validate.checks import all_checks, is_broken_job
from mpiwizard.core.validate.metrics import all_metrics
from mpiwizard.core.validate.model import Check, Metric, Report, SummaryRow


def validate(
    context: Context,
    machine: Machine,
    recipes: Recipes,
    installation: Installation,
    work: Path,
    listener: Frontend | None = None,
    tuning: Tuning | None = None,
) -> Report:
    """Check that the installation is right and measure how fast it is; the report is kept beside it.

    Takes about twenty seconds. What fails is a failed check or an empty metric, not an error. Without
    `tuning` the one kept beside the installation is used. `work` is a folder that may be filled.
    """
    listener = listener or Frontend()
    tuning = tuning or load_tuning(installation.prefix)
    probes = Probes(context.host, machine, installation, work)
    checks: list[Check] = []
    for check in all_checks(probes, tuning.parameters if tuning else {}):
        checks.append(check)
        listener.check(check)
    metrics: list[Metric] = []
    if any(check.id == "compile" and check.passed for check in checks) and not any(map(is_broken_job, checks)):
        for metric in all_metrics(probes, machine, recipes, tuning):
            metrics.append(metric)
            listener.metric(metric)
    report = Report(
        prefix=installation.prefix,
        release=installation.release,
        headline=_headline(installation, checks, metrics),
        machine=machine.headline,
        when=datetime.fromtimestamp(context.clock(), timezone.utc).isoformat(timespec="seconds"),
        checks=tuple(checks),
        metrics=tuple(metrics),
        tuning=tuning,
    )
    try:
        replace_file(report_file(installation.prefix), msgspec.json.format(msgspec.json.encode(report), indent=2))
    except OSError as error:
        listener.note(_("The report is not kept beside the installation: {error}.").format(error=error))
    return report


def report_file(prefix: str) -> Path:
    """Where the report is kept."""
    return Path(prefix, "share", "mpiwizard", "report.json")


def summary_rows(report: Report) -> tuple[SummaryRow, ...]:
    """The guide's table of metrics with what was measured here, and the rows it should have had."""
    return tuple(
        SummaryRow(
            metric.id,
            metric.label,
            _expected(metric, "guide-wsl2"),
            _expected(metric, "guide-cloud"),
            metric.shown,
            metric.word,
            metric.verdict,
        )
        for metric in report.metrics
    )


def _expected(metric: Metric, who: str) -> str:
    return next((_(one.text) for one in metric.expectations if one.who == who), "")


def _headline(installation: Installation, checks: list[Check], metrics: list[Metric]) -> str:
    passed = sum(check.passed for check in checks)
    if passed < len(checks):
        first = next(check for check in checks if not check.passed)
        return _("Open MPI {release} fails {failed} of {all} checks on this machine. First: {label}: {detail}.").format(
            release=installation.release,
            failed=len(checks) - passed,
            all=len(checks),
            label=first.label,
            detail=first.detail.rstrip("."),
        )
    values = {metric.id: quantity(metric.value, metric.unit) for metric in metrics if metric.value is not None}
    return _(
        "Open MPI {release} works on this machine: {passed} of {all} checks. Latency {latency}, bandwidth {bandwidth}."
    ).format(
        release=installation.release,
        passed=passed,
        all=len(checks),
        latency=values.get("latency", "–"),
        bandwidth=values.get("bandwidth", "–"),
    )
