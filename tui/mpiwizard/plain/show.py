"""Results of the stages as lines and tables on stdout, by Rich; without colour into a pipe."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mpiwizard.core.build.failure import explain_failure
from mpiwizard.core.build.model import RunState
from mpiwizard.core.configure.model import Plan
from mpiwizard.core.detect.evidence import evidence as evidence_of
from mpiwizard.core.detect.evidence import group_names, what_breaks
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.format import duration, percent, size
from mpiwizard.core.frontend import Frontend
from mpiwizard.core.i18n import _
from mpiwizard.core.tune.model import Trial, Tuning
from mpiwizard.core.validate.model import Check, Metric, Report
from mpiwizard.plain.doctor import Finding

if TYPE_CHECKING:
    from mpiwizard.core.detect.capture import Kept

SIGNS = {"ok": "✓", "attention": "!", "problem": "✗", "unknown": "?", "info": " "}
_PIPE_WIDTH = 120  # columns for a reader that is no terminal and has none of its own
_WIDE = 100  # columns from which on a table of facts has room for where each was read


def _console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr, highlight=False, soft_wrap=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = max(console.width, _PIPE_WIDTH)
    return console


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, show_header=bool(headings), header_style="bold", padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


class Teller(Frontend):
    """Tells each finished row of a stage as a line of talk."""

    def __init__(self, talk: Callable[[str], None]) -> None:
        self._talk = talk

    def note(self, text: str) -> None:
        self._talk(text)

    def trial(self, trial: Trial) -> None:
        self._talk(f"{trial.label}: {trial.verdict}")

    def check(self, check: Check) -> None:
        self._talk(f"{'✓' if check.passed else '✗'} {check.label}: {check.detail}")

    def metric(self, metric: Metric) -> None:
        self._talk(f"{metric.label}: {metric.shown}")


def machine(found: Machine, evidence: bool = False) -> None:
    """All facts, those to look at first with what they break; with `evidence` also how each is known."""
    console = _console()
    console.print(Text(found.headline, style="bold"))
    to_look_at = [*found.of_state("problem"), *found.of_state("attention")]
    if to_look_at:
        console.print()
        console.print(Text(_("Look at this"), style="bold"))
    for fact in to_look_at:
        console.print(f"{SIGNS[fact.state]} {fact.label}: {fact.text}")
        for line in dict.fromkeys((what_breaks(fact), fact.action)):
            if line:
                console.print(Padding(line, (0, 0, 0, 4), expand=False))
    for group, title in group_names().items():
        facts = [fact for fact in found.facts if fact.group == group]
        if facts:
            console.print()
            console.print(Text(title, style="bold"))
            if evidence:
                for fact in facts:
                    _evidence(console, fact, lambda fact_id: found.fact(fact_id).label)
            else:
                console.print(_facts(facts, with_places=console.width >= _WIDE))


def _facts(facts: Iterable[Fact], with_places: bool) -> Table:
    table = _table()
    for _column in range(2 + with_places):
        table.add_column(overflow="fold")
    for fact in facts:
        places = (fact.read_from,) if with_places else ()
        told = fact.state in ("problem", "attention")  # the sign is not alone, also for who hears it
        text = _("{text} (see above)").format(text=fact.text) if told else fact.text
        table.add_row(f"{SIGNS[fact.state]} {fact.label}", text, *places)
        for sentence in fact.contradictions:
            table.add_row("", _("but: {sentence}").format(sentence=sentence))
    return table


def _evidence(console: Console, fact: Fact, label_of: Callable[[str], str]) -> None:
    """One fact with all there is to read about it; commands and texts are not broken, so that they can be copied."""
    console.print(f"{SIGNS[fact.state]} {fact.label}: {fact.text}")
    if fact.meaning:
        console.print(Padding(fact.meaning, (0, 0, 0, 4), expand=False))
    for heading, text in evidence_of(fact, label_of):
        console.print(f"    {heading + ': ' if heading else ''}{text}", soft_wrap=True)
    for line in fact.raw.splitlines():
        console.print(f"    | {line}", soft_wrap=True)


def plan(made: Plan) -> None:
    """What would be done: options with reasons, commands in full, time and disk."""
    console = _console()
    console.print(Text(made.choice.title, style="bold"))
    console.print(
        _("Into {prefix}, {jobs} jobs, about {time}, {disk} while it works, {kept} kept.").format(
            prefix=made.prefix,
            jobs=made.jobs,
            time=duration(made.seconds),
            disk=size(made.disk),
            kept=size(made.disk_kept),
        )
    )
    for reason in made.choice.reasons:
        console.print(f"  {reason}")
    console.print()
    table = _table(_("Option"), _("Used"), _("Why"))
    for option in made.options:
        used = _("conflict") if option.conflict else _("yes") if option.enabled else _("no")
        table.add_row(option.argument, used, option.conflict or option.reason)
    console.print(table)
    console.print()
    steps = _table(_("Step"), _("About"), _("Command"))
    for step in made.steps:
        steps.add_row(step.id, duration(step.seconds), shlex.join(step.argv))
    console.print(steps)
    for note in made.notes:
        console.print(note)
    if made.fallback:
        console.print(_("If the source cannot be fetched: {title}.").format(title=made.fallback.choice.title))


def runs(found: tuple[RunState, ...], now: float) -> None:
    """One line per run."""
    console = _console()
    if not found:
        console.print(_("There is no run yet."))
        return
    table = _table(_("Run"), _("State"), _("Step"), _("Age"), _("Prefix"))
    for run in found:
        step = run.current
        age = duration(now - run.started) if run.started else ""
        table.add_row(run.id, _(run.state), f"{step.id} ({_(step.state)})" if step else "", age, run.plan.prefix)
    console.print(table)


def failure(run: RunState) -> None:
    """The card of a failed run, or how a stopped one goes on; on stderr, since it is no result."""
    console = _console(stderr=True)
    step = run.current
    if run.state == "failed" and step is not None and step.state == "failed":
        card = explain_failure(step, Path(run.folder) / f"{step.id}.log")
        console.print(Text(card.what, style="bold"))
        console.print(card.evidence)
        console.print(card.try_this)
        console.print(_("Full log: {path}").format(path=f"{run.folder}/{step.id}.log"))
    elif run.failure:
        console.print(run.failure)
    console.print(_("Go on with: mpiwizard resume {run}").format(run=run.id))


def tuning(result: Tuning) -> None:
    """What was tried, what it gave, what was written."""
    console = _console()
    for trial in result.trials:
        gain = percent(trial.gain) if trial.interval else ""
        console.print(f"{trial.label}  {gain}  {_('kept') if trial.kept else _('not kept')}")
        console.print(f"    {trial.verdict}")
    for written in result.written:
        console.print(f"{written.path}: {written.what}. {written.undo}")


def report(result: Report) -> None:
    """The verdict, failed checks, and the guide's table with what was measured here."""
    from mpiwizard.core.validate import summary_rows

    console = _console()
    console.print(Text(result.headline, style="bold"))
    for check in result.checks:
        if not check.passed:
            console.print(f"✗ {check.label}: {check.detail} {check.next}")
    console.print()
    table = _table(_("What"), _("Guide: WSL2"), _("Guide: cloud"), _("Here"), _("Verdict"))
    for row in summary_rows(result):
        table.add_row(row.label, row.wsl2, row.cloud, row.here, row.verdict)
    console.print(table)


def findings(found: Iterable[Finding]) -> None:
    """The doctor's findings."""
    console = _console()
    for finding in found:
        console.print(f"{'✓' if finding.well else '✗'} {finding.what}: {finding.seen}")
        if finding.next:
            console.print(f"    {finding.next}")


def kept(recording: Kept) -> None:
    """What a recording holds: every file, command and variable, and how much was replaced."""
    console = _console()
    for title, names in (
        (_("Files"), recording.files),
        (_("Commands"), recording.commands),
        (_("Variables"), recording.variables),
    ):
        console.print(Text(f"{title} ({len(names)})", style="bold"))
        for name in names:
            console.print(Text(f"  {name}", overflow="fold"))
    console.print()
    replaced = ", ".join(f"{_(kind)} {count}" for kind, count in recording.replaced.items())
    console.print(_("Replaced: {kinds}.").format(kinds=replaced or _("nothing")))
    console.print(_("Written: {path}").format(path=recording.path))
    console.print(_("Look through it before you give it away; to see what mpiwizard reads from it:"))
    console.print(f"  mpiwizard detect --root {shlex.quote(recording.path)}", soft_wrap=True)
