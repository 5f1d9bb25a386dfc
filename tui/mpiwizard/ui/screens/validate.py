"""Validate: it works, and this is how fast, beside what the guide expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.binding import Binding

from mpiwizard.core.format import quantity
from mpiwizard.core.i18n import _
from mpiwizard.ui.screens.stage import StageScreen, how_to_use
from mpiwizard.ui.signs import GOOD, LOOK
from mpiwizard.ui.widgets.rows import Column, Row, heading

if TYPE_CHECKING:
    from mpiwizard.core.recipes import Expectation
    from mpiwizard.core.validate.model import Check, Metric
    from mpiwizard.ui.watch import View

_CHECK = "check:"  # before a check's id, to tell it from a metric's
_ALL_PASSED = "checks"
_HERE = 16  # cells for a measured value


class ValidateScreen(StageScreen):
    """The guide's table with what was measured here, then the checks."""

    stage = "validate"
    CSS_PATH = "validate.tcss"
    columns = (Column(24), Column(12, right=True), Column(12, right=True), Column(_HERE, right=True), Column())
    BINDINGS = [
        Binding("enter", "go_on", _("finish"), key_display="Enter"),
        Binding("c", "checks", _("all checks"), key_display="c"),
        Binding("y", "copy", _("copy row"), key_display="y"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._all_checks = False

    def entered(self) -> None:
        if self.wizard.view is not None:
            self.run_changed(self.wizard.view)
        else:
            self.headline(_("Nothing was validated yet"), _("Validation follows tuning by itself."))

    def run_changed(self, view: View) -> None:
        self.headline(*self._sentences(view))
        self.rows.show(list(self._rows(view)))
        self.show_evidence(self.rows.row_id)

    def _sentences(self, view: View) -> tuple[str, str]:
        passed = sum(check.passed for check in view.checks)
        checks = _("{passed} of {count} checks passed").format(passed=passed, count=len(view.checks))
        if view.report is not None:
            use = [how_to_use(view.run.plan)] if view.run.state == "done" else []
            return view.report.headline, "\n".join([*use, view.report.machine])
        state = self.wizard.walk.state("validate")
        if state == "running":
            return _("Proving that this Open MPI works, and how fast"), view.last or f"{checks}."
        if state == "failed":
            return view.run.failure or _("Validation failed."), _("4 shows the log of the step.")
        return _("Nothing was validated yet"), _("Validation follows tuning by itself.")

    def _rows(self, view: View) -> Iterator[Row]:
        failed = [check for check in view.checks if not check.passed]
        if failed:
            yield heading(_("CHECKS THAT FAILED"))
            yield from map(_check_row, failed)
        if view.metrics:
            yield heading(_("WHAT"), _("GUIDE: WSL2"), _("GUIDE: CLOUD"), _("HERE"), _("VERDICT"))
            yield from map(_metric_row, view.metrics)
        passed = [check for check in view.checks if check.passed]
        if passed:
            yield heading(_("CHECKS"))
            if self._all_checks:
                yield from map(_check_row, passed)
            else:
                what = _("{count} passed").format(count=len(passed))
                yield Row(_ALL_PASSED, (what, _("c lists them")), "✓", GOOD)

    def show_evidence(self, row_id: str) -> None:
        view = self.wizard.view
        if view is None:
            return
        if row_id == _ALL_PASSED:
            labels = " · ".join(_(check.label) for check in view.checks if check.passed)
            self.evidence.show(_("What was checked"), [labels])
        elif row_id.startswith(_CHECK):
            check = next((one for one in view.checks if _CHECK + one.id == row_id), None)
            if check is not None:
                self._show_check(check)
        else:
            metric = next((one for one in view.metrics if one.id == row_id), None)
            if metric is not None:
                self._show_metric(metric)

    def _show_check(self, check: Check) -> None:
        self.evidence.show(
            _(check.label),
            [_(check.detail)],
            [(_("Command"), check.command), (_("To do"), _(check.next))],
        )

    def _show_metric(self, metric: Metric) -> None:
        spread = ""
        if metric.spread is not None:
            low, high = (quantity(value, metric.unit) for value in metric.spread)
            spread = _("{low} to {high} in {count} samples").format(low=low, high=high, count=metric.samples)
        self.evidence.show(
            f"{_(metric.label)}: {metric.shown}",
            [_(metric.verdict)],
            [
                (_("Is"), _(metric.definition)),
                (_("Method"), _(metric.method)),
                (_("Spread"), spread),
                *((_expected_by(one), _expectation(one)) for one in metric.expectations),
                (
                    "" if metric.expectations else _("Expected"),
                    "" if metric.expectations else _("no source for an expectation"),
                ),
            ],
            self._curve(metric),
        )

    def _curve(self, metric: Metric) -> str:
        if not metric.curve:
            return ""
        from mpiwizard.ui.widgets.chart import curve_chart

        bands = [
            (one.low, one.high)
            for one in metric.expectations
            if one.unit == metric.unit and one.low is not None and one.high is not None
        ]
        room = self.evidence.scrollable_content_region
        return curve_chart(
            metric.curve, metric.unit, max(room.width, 20), max(8, room.height // 2), bands[0] if bands else None
        )

    def action_checks(self) -> None:
        self._all_checks = not self._all_checks
        if self.wizard.view is not None:
            self.run_changed(self.wizard.view)

    def action_copy(self) -> None:
        view = self.wizard.view
        metric = next((one for one in view.metrics if one.id == self.rows.row_id), None) if view else None
        if metric is None:
            self.refuse(_("This row has no value to copy."))
        else:
            self.copy(f"{metric.label}: {metric.shown}")

    def action_go_on(self) -> None:
        if self.wizard.walk.run is not None and self.wizard.walk.run.active:
            self.refuse(_("Validation is still running."))
        else:
            self.wizard.action_leave()


def _metric_row(metric: Metric) -> Row:
    here = metric.shown
    if cell_len(here) > _HERE:  # samples far apart: smallest and largest stand in the evidence
        here = here.partition(" (")[0]
    cells = (
        _(metric.label),
        _by(metric, "guide-wsl2"),
        _by(metric, "guide-cloud"),
        here,
        verdict_word(metric),
    )
    if metric.word == "ok":
        return Row(metric.id, cells, "✓", GOOD)
    if metric.word in ("low", "high"):
        return Row(metric.id, cells, "!", LOOK)
    return Row(metric.id, cells)


def _by(metric: Metric, who: str) -> str:
    return next((_(one.text) for one in metric.expectations if one.who == who), "–")


def verdict_word(metric: Metric) -> str:
    """How a metric stands to what was expected of it."""
    return {
        "ok": _("ok"),
        "low": _("low"),
        "high": _("high"),
        "none": _("not here"),
        "info": _("compare") if any(one.source for one in metric.expectations) else _("no source"),
    }.get(metric.word, metric.word)


def _expected_by(expectation: Expectation) -> str:
    names = {"guide-wsl2": _("Guide, WSL2"), "guide-cloud": _("Guide, cloud")}
    return names.get(expectation.who, expectation.who)


def _expectation(expectation: Expectation) -> str:
    what_we_think = _(expectation.remark) or _(expectation.verdict)
    return f"{_(expectation.text)}: {what_we_think}"


def _check_row(check: Check) -> Row:
    word = _("passed") if check.passed else _("FAILED")
    cells = (_(check.label), f"{word}: {_(check.detail)}")
    return Row(_CHECK + check.id, cells, "✓" if check.passed else "✗", "" if check.passed else LOOK)
