"""Tune: which settings were tried, what they gave, what was written and how to undo it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from textual.binding import Binding

from mpiwizard.core.format import percent, quantity
from mpiwizard.core.i18n import _, ngettext
from mpiwizard.ui.screens.stage import StageScreen
from mpiwizard.ui.signs import GOOD
from mpiwizard.ui.widgets.rows import Column, Row, heading

if TYPE_CHECKING:
    from mpiwizard.core.tune.model import Trial, Tuning, Written
    from mpiwizard.ui.watch import View

_FILE = "file:"  # before a written file's path, to tell it from a trial's id


class TuneScreen(StageScreen):
    """Rows are trials and the files that were written."""

    stage = "tune"
    columns = (Column(26), Column(22, right=True), Column(20, right=True), Column())
    BINDINGS = [
        Binding("enter", "go_on", _("Validate"), key_display="Enter"),
        Binding("y", "copy", _("copy line"), key_display="y"),
    ]

    def entered(self) -> None:
        if self.wizard.view is not None:
            self.run_changed(self.wizard.view)
        else:
            self.headline(_("Nothing was tuned yet"), _("Tuning follows the build by itself."))

    def run_changed(self, view: View) -> None:
        self.headline(*self._sentences(view))
        self.rows.show(list(_rows(view.trials, view.tuning)))
        self.show_evidence(self.rows.row_id)
        if self.wizard.walk.state("validate") == "running" and self._was_running:
            self.wizard.visit("validate")
        self._was_running = self.wizard.walk.state("tune") == "running"

    _was_running = False

    def _sentences(self, view: View) -> tuple[str, str]:
        tuning, trials = view.tuning, view.trials
        state = self.wizard.walk.state("tune")
        if tuning is None:
            if state == "running":
                done = ngettext("{count} trial done.", "{count} trials done.", len(trials)).format(count=len(trials))
                return _("Measuring with and without each setting, turn by turn"), view.last or done
            if state == "failed":
                return view.run.failure or _("Tuning failed."), _("4 shows the log of the step.")
            return _("Nothing was tuned yet"), _("Tuning follows the build by itself.")
        kept = sum(trial.kept for trial in tuning.trials)
        first = ngettext(
            "Kept {kept} of {count} setting: only what was measurably better.",
            "Kept {kept} of {count} settings: only what was measurably better.",
            len(tuning.trials),
        ).format(kept=kept, count=len(tuning.trials))
        if not kept:
            first = _("Open MPI's own choices are the best that was found here; nothing is overruled.")
        files = len(tuning.written)
        second = ngettext(
            "{count} file written; the row says how to undo it.",
            "{count} files written; each row says how to undo it.",
            files,
        ).format(count=files)
        return first, second

    def show_evidence(self, row_id: str) -> None:
        view = self.wizard.view
        if view is None:
            return
        if row_id.startswith(_FILE):
            written = next((one for one in _written(view) if _FILE + one.path == row_id), None)
            if written is not None:
                pairs = [(_("What"), _(written.what)), (_("Undo"), _(written.undo))]
                self.evidence.show(written.path, [], pairs)
            return
        trial = next((one for one in view.trials if one.id == row_id), None)
        if trial is not None:
            self._show_trial(trial, view)

    def _show_trial(self, trial: Trial, view: View) -> None:
        undo = next((one.undo for one in _written(view) if trial.kept), "")
        line = trial.setting if trial.kept else _("none; the setting would be {setting}").format(setting=trial.setting)
        self.evidence.show(
            _(trial.label),
            [_(trial.verdict)],
            [
                (_("Measured"), _(trial.method)),
                (_("Line written"), line),
                (_("Undo"), _(undo)),
                (_("Without it"), _samples(trial.samples_before, trial.unit)),
                (_("With it"), _samples(trial.samples_after, trial.unit)),
            ],
        )

    def action_copy(self) -> None:
        view = self.wizard.view
        trial = next((one for one in view.trials if one.id == self.rows.row_id), None) if view else None
        if trial is None:
            self.refuse(_("This row has no line to copy."))
        else:
            self.copy(trial.setting)

    def action_go_on(self) -> None:
        self.wizard.visit("validate")


def _written(view: View) -> tuple[Written, ...]:
    return view.tuning.written if view.tuning is not None else ()


def _rows(trials: tuple[Trial, ...], tuning: Tuning | None) -> Iterator[Row]:
    trials = tuning.trials if tuning is not None else trials
    if trials:
        yield heading(_("SETTING TRIED"), _("BEFORE → AFTER"), _("GAIN, 95 % INTERVAL"), _("KEPT?"))
    for trial in trials:
        cells = (_(trial.label), _change(trial), _gain(trial), _("kept") if trial.kept else _("not kept"))
        yield Row(trial.id, cells, "✓" if trial.kept else "–", GOOD if trial.kept else "")
    if tuning is not None and tuning.written:
        yield heading(_("WRITTEN, WITH AN UNDO"))
        for written in tuning.written:
            yield Row(_FILE + written.path, (PurePath(written.path).name, _(written.what)))


def _change(trial: Trial) -> str:
    if trial.interval is None:
        return "–"
    before, after = quantity(trial.before, trial.unit), quantity(trial.after, trial.unit)
    number, _space, unit = before.partition(" ")
    return f"{number} → {after}" if after.endswith(f" {unit}") else f"{before} → {after}"


def _gain(trial: Trial) -> str:
    if trial.interval is None:
        return _("not measurable")
    low, high = (percent(share).removesuffix(" %") for share in trial.interval)
    return f"{percent(trial.gain)} ({low}…{high})"


def _samples(samples: tuple[float, ...], unit: str) -> str:
    return " · ".join(f"{value:.4g}" for value in samples) + f" {unit}" if samples else ""
