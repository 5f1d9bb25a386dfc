"""One function per verb of the command line: its arguments in, its exit status out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mpiwizard.core.context import Assumptions, Context, Wishes, given_path
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.i18n import _
from mpiwizard.core.session import load_session, save_session

if TYPE_CHECKING:
    from mpiwizard.core.build.model import RunState
    from mpiwizard.core.configure.model import Plan
    from mpiwizard.core.detect.model import Machine
    from mpiwizard.core.validate.model import Report


def talk(text: str) -> None:
    """A sentence for the person; never part of a result."""
    print(text, file=sys.stderr, flush=True)


def _print_json(value: object) -> None:
    """One JSON document on stdout. What is printed has a `schema` field, raised when its form changes."""
    sys.stdout.flush()
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def context_of(options: argparse.Namespace) -> Context:
    """The person's own surroundings. `options` keeps them, for whoever must end what they run."""
    options.context = context = Context.of_person(offline=options.offline)
    return context


def wishes_of(options: argparse.Namespace) -> Wishes:
    """What the person asked for on the command line. Raises WizardError (USAGE)."""
    from mpiwizard.core.sources import KINDS

    if options.source not in ("auto", *KINDS):
        raise WizardError(
            _("There is no source {given}; use one of auto, {known}.").format(
                given=repr(options.source), known=", ".join(KINDS)
            ),
            ExitCode.USAGE,
        )
    if options.archive and options.source not in ("auto", "archive"):
        raise WizardError(
            _("--archive and --source {source} exclude each other; leave one out.").format(source=options.source),
            ExitCode.USAGE,
        )
    return Wishes(
        recipe=options.recipe,
        release=options.release,
        source="archive" if options.archive else options.source,
        archive=options.archive,
        sha256=options.sha256,
        mirror=options.mirror,
        prefix=options.prefix,
        jobs=options.jobs,
        assume=assumptions_of(options),
    )


def assumptions_of(options: argparse.Namespace) -> Assumptions:
    """What the person says of the platform, as Wishes has it. Raises WizardError (USAGE)."""
    if not options.assume:
        return ()
    from mpiwizard.core.detect.platform import check_assumption

    pairs = []
    for text in options.assume:
        axis, _equals, value = text.partition("=")
        check_assumption(axis, value)
        pairs.append((axis, value))
    return tuple(dict(pairs).items())


def detect(options: argparse.Namespace) -> int:
    from tempfile import TemporaryDirectory

    from mpiwizard.core.detect import detect as detect_machine

    if options.schema:
        return _print_schema()
    context, wishes = context_of(options), Wishes(assume=assumptions_of(options))
    if options.root is not None:  # an empty one, of a variable that is not set, must not show the real box
        from mpiwizard.core.recordings import find_recording

        with TemporaryDirectory(prefix="mpiwizard-recording-") as scratch:
            folder = find_recording(given_path(options.root), Path(scratch))
            machine = detect_machine(Context.of_recording(folder), wishes)
    else:
        machine = detect_machine(context, wishes)
    if options.json:
        _print_json(machine)
    else:
        from mpiwizard.plain import show

        show.machine(machine, evidence=options.evidence)
    return ExitCode.DONE


def _print_schema() -> int:
    from mpiwizard.core.detect.model import Machine as DetectedMachine

    _print_json(msgspec.json.schema(DetectedMachine))
    return ExitCode.DONE


def capture(options: argparse.Namespace) -> int:
    from datetime import date

    from mpiwizard.core.detect.capture import capture as capture_box
    from mpiwizard.plain import show

    context = context_of(options)
    today = date.fromtimestamp(context.clock()).isoformat()
    show.kept(capture_box(context, given_path(options.output or f"mpiwizard-capture-{today}.tar.gz")))
    return ExitCode.DONE


def plan(options: argparse.Namespace) -> int:
    from mpiwizard.core.configure import check_plan, script
    from mpiwizard.plain import show

    context, wishes = context_of(options), wishes_of(options)
    made, machine = _make_plan(context, wishes, quiet=True)
    if options.json:
        _print_json(made)
    elif options.script:
        sys.stdout.write(script(made))
    else:
        show.plan(made)
    check_plan(context, machine, made)
    return ExitCode.DONE


def _make_plan(context: Context, wishes: Wishes, *, quiet: bool) -> tuple[Plan, Machine]:
    """Detect, choose, configure: the first three stages with their defaults."""
    from mpiwizard.core.choose import choose, fallback_choice, require_choice
    from mpiwizard.core.configure import make_plan
    from mpiwizard.core.detect import ask_sources
    from mpiwizard.core.detect import detect as detect_machine
    from mpiwizard.core.recipes import load_recipes

    recipes = load_recipes(context.folders.config)
    machine = ask_sources(detect_machine(context, wishes), context, wishes)
    choices = choose(machine, recipes, wishes)
    choice = require_choice(choices, wishes)
    if not quiet:
        talk(machine.headline)
        for other in choices:
            if not other.available:
                talk(_("Not possible: {title}: {reason}").format(title=other.title, reason=other.why_not))
        talk(_("Chosen: {title}. {reason}").format(title=choice.title, reason=" ".join(choice.reasons[:1])))
    made = make_plan(
        context, machine, recipes, choice, wishes, fallback=fallback_choice(choices, choice, wishes)
    )
    return made, machine


def run(options: argparse.Namespace) -> int:
    from mpiwizard.core.configure import check_plan
    from mpiwizard.core.format import duration, size
    from mpiwizard.worker import start

    if not options.yes:
        raise WizardError(
            _("`run` builds and installs on this box: add --yes, or look first with `mpiwizard plan`."),
            ExitCode.USAGE,
        )
    context, wishes = context_of(options), wishes_of(options)
    made, machine = _make_plan(context, wishes, quiet=False)
    check_plan(context, machine, made)
    if made.replaces:
        talk(made.replaces)
    talk(
        _("Building into {prefix}: about {time}, {disk} on disk while it works.").format(
            prefix=made.prefix, time=duration(made.seconds), disk=size(made.disk)
        )
    )
    run_id = start(context, made)
    save_session(
        context.folders,
        msgspec.structs.replace(load_session(context.folders), wishes=wishes, choice=made.choice.id, run=run_id),
    )
    return _watch(context, run_id, json=options.json)


def _watch(context: Context, run_id: str, *, json: bool) -> int:
    """Tell a run's progress until it ends, then its result."""
    from mpiwizard.plain import show
    from mpiwizard.plain.follow import follow

    run = follow(context, run_id, talk)
    if run.state == "done":
        report = _report(run)
        if json:
            _print_json(report)
        else:
            show.report(report)
        talk(_("Use it: . {prefix}/share/mpiwizard/environment.sh").format(prefix=run.plan.prefix))
        return ExitCode.DONE
    show.failure(run)
    return ExitCode.STEP_FAILED


def _report(run: RunState) -> Report:
    from mpiwizard.core.validate.model import Report

    try:
        return msgspec.json.decode((Path(run.folder) / "report.json").read_bytes(), type=Report)
    except (OSError, msgspec.DecodeError) as error:
        message = _(
            "The report of run {run} cannot be read ({reason}); measure again with "
            "`mpiwizard validate --prefix {prefix}`."
        )
        raise WizardError(message.format(run=run.id, reason=error, prefix=run.plan.prefix)) from None


def run_of(context: Context, run_id: str) -> RunState:
    """The run the person named, or meant by naming none."""
    from mpiwizard.core.build.runs import load_run, newest_run

    return load_run(context.folders, run_id) if run_id else newest_run(context.folders)


def runs(options: argparse.Namespace) -> int:
    from mpiwizard.core.build.runs import list_runs
    from mpiwizard.plain import show

    context = context_of(options)
    found = list_runs(context.folders)
    if options.json:
        _print_json({"schema": 1, "runs": found})
    else:
        show.runs(found, context.clock())
    return ExitCode.DONE


def attach(options: argparse.Namespace) -> int:
    context = context_of(options)
    return _watch(context, run_of(context, options.run).id, json=False)


def resume(options: argparse.Namespace) -> int:
    from mpiwizard.core.build.resume import FIRST, decide
    from mpiwizard.worker import resume as resume_run

    context = context_of(options)
    chosen = run_of(context, options.run)
    if not chosen.active and chosen.state != "done":
        for decision in decide(chosen):
            if decision.action != FIRST:
                talk(f"  {decision.step:10} {_ACTION_WORDS[decision.action]()}  {decision.why}".rstrip())
    return _watch(context, resume_run(context, chosen.id), json=options.json)


_ACTION_WORDS = {
    "keep": lambda: _("stays"),
    "again": lambda: _("again"),
    "clean": lambda: _("again, in a clean folder"),
    "continue": lambda: _("continues"),
}


def stop(options: argparse.Namespace) -> int:
    from mpiwizard.worker import stop as stop_run

    context = context_of(options)
    chosen = stop_run(context, run_of(context, options.run).id)
    talk(_("Run {run} is stopped; go on with `mpiwizard resume {run}`.").format(run=chosen.id))
    return ExitCode.DONE


def _prefix(context: Context, options: argparse.Namespace) -> str:
    """The prefix the person named, or the one the newest finished run installed into."""
    from mpiwizard.core.build.runs import list_runs

    if options.prefix:
        return str(given_path(options.prefix))
    for run in list_runs(context.folders):
        if any(step.id == "install" and step.state == "done" for step in run.steps):
            return run.plan.prefix
    raise WizardError(_("No run has installed anything yet; name an installation with --prefix DIR."), ExitCode.USAGE)


def tune(options: argparse.Namespace) -> int:
    from mpiwizard.core.installation import find_installation
    from mpiwizard.core.tune import undo_tuning
    from mpiwizard.plain import show
    from mpiwizard.worker.proof import tune_prefix

    context = context_of(options)
    prefix = _prefix(context, options)
    if options.undo:
        taken_back = undo_tuning(find_installation(context.host, prefix).prefix)
        for path in taken_back:
            talk(_("Taken back: {path}").format(path=path))
        if not taken_back:
            talk(_("There is nothing to take back: {prefix} is not tuned.").format(prefix=prefix))
        return ExitCode.DONE
    with _work_folder(context) as work:
        tuning = tune_prefix(context, prefix, work, show.Teller(talk), assumptions_of(options))
    if options.json:
        _print_json(tuning)
    else:
        show.tuning(tuning)
    return ExitCode.DONE


def validate(options: argparse.Namespace) -> int:
    from mpiwizard.plain import show
    from mpiwizard.worker.proof import validate_prefix

    context = context_of(options)
    with _work_folder(context) as work:
        report = validate_prefix(
            context, _prefix(context, options), work, show.Teller(talk), assumptions_of(options)
        )
    if options.json:
        _print_json(report)
    else:
        show.report(report)
    if not report.passed:
        return ExitCode.STEP_FAILED
    missed = any(metric.missed for metric in report.metrics)
    return ExitCode.BELOW_EXPECTATION if missed else ExitCode.DONE


@contextmanager
def _work_folder(context: Context) -> Iterator[Path]:
    """A folder in our cache for compiled probes, removed at the end."""
    from tempfile import TemporaryDirectory

    context.folders.cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    with TemporaryDirectory(prefix="probes-", dir=context.folders.cache) as folder:
        yield Path(folder)


def doctor(options: argparse.Namespace) -> int:
    from mpiwizard.plain import show
    from mpiwizard.plain.doctor import examine

    findings = examine(context_of(options))
    show.findings(findings)
    return ExitCode.DONE if all(finding.well for finding in findings) else ExitCode.NOT_POSSIBLE_HERE


def diagnose(options: argparse.Namespace) -> int:
    """Thin for now: the first error of a log and the usual help; the catalogue of faults is still to come."""
    from mpiwizard.core.build.failure import first_error_in

    if options.file == "-":
        content = sys.stdin.buffer.read()
    else:
        try:
            content = Path(options.file).read_bytes()
        except OSError as error:
            raise WizardError(
                _("{file} cannot be read ({reason}); give the path of a log file, or - for standard input.").format(
                    file=options.file, reason=error.strerror
                ),
                ExitCode.USAGE,
            ) from None
    card = first_error_in(content)
    if card is None:
        talk(_("No error was found. The catalogue of known faults is not part of this version yet."))
        return ExitCode.DONE
    print(_("line {line}: {evidence}").format(line=card.line, evidence=card.evidence))
    print(card.try_this)
    talk(_("This is the first error in the text; the catalogue of known faults is not part of this version yet."))
    return ExitCode.STEP_FAILED


def export(options: argparse.Namespace) -> int:
    from mpiwizard.core.configure import script

    sys.stdout.write(script(run_of(context_of(options), options.run).plan))
    talk(_("A shell script is the only form in this version; Dockerfile and Spack files are still to come."))
    return ExitCode.DONE


def uninstall(options: argparse.Namespace) -> int:
    from mpiwizard.core.build.manifest import remove_installation, require_ours
    from mpiwizard.core.locks import prefix_lock, take_lock
    from mpiwizard.core.tune import undo_tuning

    context = context_of(options)
    if not options.prefix:
        raise WizardError(_("Which installation is to be removed? Name it with --prefix DIR."), ExitCode.USAGE)
    prefix = _prefix(context, options)
    if not options.yes:
        raise WizardError(_("This removes {prefix}: add --yes.").format(prefix=prefix), ExitCode.USAGE)
    if take_lock(prefix_lock(context.folders.state, prefix)) is None:  # held until we end
        raise WizardError(
            _("A run is at work on {prefix}; stop it first with `mpiwizard stop`.").format(prefix=prefix),
            ExitCode.LOCKED,
        )
    require_ours(Path(prefix))
    undo_tuning(prefix)  # so that the parameter file is again as it was installed
    removed, kept = remove_installation(Path(prefix))
    talk(_("{count} files removed from {prefix}.").format(count=removed, prefix=prefix))
    for name in kept:
        talk(_("Kept, since it was changed: {prefix}/{name}").format(prefix=prefix, name=name))
    return ExitCode.DONE

