"""Our own steps of a plan, each run by the worker as a process of its own with its own log."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import NoReturn

import msgspec

from mpiwizard.core.build.runs import load_run
from mpiwizard.core.configure.model import Plan
from mpiwizard.core.context import Context, given_path
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.format import size
from mpiwizard.core.frontend import Frontend
from mpiwizard.core.i18n import _
from mpiwizard.core.tune.model import Trial
from mpiwizard.core.validate.model import Check, Metric
from mpiwizard.worker.runner import StepResult


class Fetched(msgspec.Struct, frozen=True):
    """What fetch hands to verify and unpack. `sha256` is empty when nobody vouches for the archive."""

    archive: str
    sha256: str


class RowWriter(Frontend):
    """Prints what a stage finds, and appends each row to `<step>.results.jsonl` for the interfaces."""

    def __init__(self, folder: Path, step: str) -> None:
        self._path = folder / f"{step}.results.jsonl"
        self._path.write_bytes(b"")

    def _append(self, row: msgspec.Struct) -> None:
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(row) + b"\n")

    def note(self, text: str) -> None:
        print(text, flush=True)

    def trial(self, trial: Trial) -> None:
        self._append(trial)
        print(f"{trial.label}: {trial.verdict}", flush=True)

    def check(self, check: Check) -> None:
        self._append(check)
        print(f"{'ok  ' if check.passed else 'FAIL'} {check.label}: {check.detail}", flush=True)

    def metric(self, metric: Metric) -> None:
        self._append(metric)
        print(f"{metric.label}: {metric.shown}. {metric.verdict}", flush=True)


def run_step(name: str, folder: Path) -> int:
    """Do one step of the run in this folder; its exit status. The last line of the log says why it failed."""
    signal.signal(signal.SIGTERM, _end)
    steps = {"fetch": _fetch, "verify": _verify, "unpack": _unpack, "tune": _tune, "validate": _validate}
    if name not in steps:
        print(f"unknown step {name}", file=sys.stderr)
        return ExitCode.USAGE
    context = Context.of_person()
    try:
        plan = load_run(context.folders, folder.name).plan
        detail, status = steps[name](context, plan, folder)
    except (WizardError, OSError) as error:
        print(error, flush=True)
        detail, status = str(error), getattr(error, "exit_code", ExitCode.STEP_FAILED)
    (folder / f"{name}.result.json").write_bytes(msgspec.json.encode(StepResult(detail)))
    return int(status)


def _end(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(ExitCode.TERMINATED)


def _fetch(context: Context, plan: Plan, folder: Path) -> tuple[str, int]:
    from mpiwizard.core.sources import archive, distro, release

    downloads = context.folders.downloads
    kind = plan.choice.source
    if kind == "archive":
        path = given_path(plan.wishes.archive)
        fetched = Fetched(str(path), archive.probe(context, plan.wishes).sha256 if plan.wishes.sha256 else "")
        origin = _("from this box")
    elif kind == "distro":
        path, sha256 = distro.fetch(context, downloads)
        fetched, origin = Fetched(str(path), sha256), _("from the distribution, signature checked")
    else:
        path, sha256 = release.fetch(context, plan.choice.release, plan.wishes.mirror, downloads, _tell)
        fetched, origin = Fetched(str(path), sha256), _("from Open MPI's releases")
    (folder / "fetched.json").write_bytes(msgspec.json.encode(fetched))
    _tell(str(path))
    return f"{size(path.stat().st_size)} {origin}", 0


def _tell(text: str) -> None:
    print(text, flush=True)


def _fetched(folder: Path) -> Fetched:
    try:
        return msgspec.json.decode((folder / "fetched.json").read_bytes(), type=Fetched)
    except (OSError, msgspec.DecodeError) as error:
        message = _("What was fetched is not known any more ({reason}); start a new run.")
        raise WizardError(message.format(reason=error)) from None


def _verify(_context: Context, plan: Plan, folder: Path) -> tuple[str, int]:
    from mpiwizard.core.sources.archive import release_inside
    from mpiwizard.core.sources.checksum import refuse_if_different, sha256_of

    fetched = _fetched(folder)
    path = Path(fetched.archive)
    if fetched.sha256:
        sha256 = refuse_if_different(path, fetched.sha256, remove=plan.choice.source != "archive")
        detail = _("SHA-256 {start}… as expected").format(start=sha256[:8])
    else:
        sha256 = sha256_of(path)
        detail = _("SHA-256 {sum}; nothing to compare it with").format(sum=sha256)
    _tell(f"{sha256}  {path.name}")
    found = release_inside(path)
    if found != plan.choice.release:
        raise WizardError(
            _("{name} holds Open MPI {found}, the plan is for {planned}; start again with --release {found}.").format(
                name=path.name, found=found, planned=plan.choice.release
            )
        )
    return detail, 0


def _unpack(_context: Context, plan: Plan, folder: Path) -> tuple[str, int]:
    from mpiwizard.core.sources.unpack import unpack

    count = unpack(Path(_fetched(folder).archive), Path(plan.source_folder))
    return _("{count:,} files").format(count=count), 0


def _tune(context: Context, plan: Plan, folder: Path) -> tuple[str, int]:
    from mpiwizard.worker.proof import tune_prefix

    tuning = tune_prefix(context, plan.prefix, folder / "tune", RowWriter(folder, "tune"), plan.wishes.assume)
    (folder / "tuning.json").write_bytes(msgspec.json.encode(tuning))
    kept = sum(trial.kept for trial in tuning.trials)
    return _("{kept} of {tried} settings kept").format(kept=kept, tried=len(tuning.trials)), 0


def _validate(context: Context, plan: Plan, folder: Path) -> tuple[str, int]:
    from mpiwizard.worker.proof import validate_prefix

    rows = RowWriter(folder, "validate")
    report = validate_prefix(context, plan.prefix, folder / "validate", rows, plan.wishes.assume)
    (folder / "report.json").write_bytes(msgspec.json.encode(report))
    return report.headline, 0 if report.passed else ExitCode.STEP_FAILED
