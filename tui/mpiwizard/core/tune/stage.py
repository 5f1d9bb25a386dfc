"""The stage itself: try what is worth trying, write what is measurably better, know how to undo it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from mpiwizard.core.context import Context
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.files import replace_file
from mpiwizard.core.frontend import Frontend
from mpiwizard.core.i18n import _
from mpiwizard.core.installation import Installation
from mpiwizard.core.probes import Probes
from mpiwizard.core.recipes import Recipes
from mpiwizard.core.tune.block import other_settings, remove_block, write_block
from mpiwizard.core.tune.model import Trial, Tuning, Written
from mpiwizard.core.tune.surroundings import undo_with, write_surroundings
from mpiwizard.core.tune.trial import Candidate, refused, single_copy, try_out


def tune(
    context: Context,
    machine: Machine,
    recipes: Recipes,
    installation: Installation,
    work: Path,
    listener: Frontend | None = None,
) -> Tuning:
    """Try settings turn by turn, keep what is better beyond doubt, and write it for this installation.

    Takes about ten seconds. Writes our block in the parameter file, the environment script, the
    modulefile and tuning.json below the prefix. `work` is a folder that may be filled. Raises
    WizardError when the prefix cannot be written or its mpicc does not compile.
    """
    listener = listener or Frontend()
    parameter_file = Path(installation.parameter_file)
    _require_writable(parameter_file)
    probes = Probes(context.host, machine, installation, work)
    probes.compile("bench")
    trials: list[Trial] = []
    for candidate in (single_copy(installation),):
        trials.append(_trial(candidate, probes, machine, parameter_file, listener))
        listener.trial(trials[-1])
    kept = [(*_name_and_value(trial.setting), trial.verdict) for trial in trials if trial.kept]
    parameters = {name: value for name, value, _verdict in kept}
    remarks = {name: f"{_effect(recipes, name)}\n{verdict}".strip() for name, _value, verdict in kept}
    write_block(parameter_file, parameters, remarks)
    written = (*_block_written(parameter_file, parameters), *write_surroundings(installation))
    tuning = Tuning(installation.prefix, installation.release, tuple(trials), parameters, written)
    replace_file(_result_file(installation.prefix), msgspec.json.format(msgspec.json.encode(tuning), indent=2))
    return tuning


def undo_tuning(prefix: str) -> tuple[str, ...]:
    """Remove our block and the files of this stage; the paths that changed. Nothing else is touched.

    Where mpiwizard made the installation, the ways to use it stay: they go when it is uninstalled.
    """
    changed = []
    parameter_file = Path(prefix, "etc", "openmpi-mca-params.conf")
    if remove_block(parameter_file):
        changed.append(parameter_file)
    own = Path(prefix, "share", "mpiwizard")
    made_here = (own / "manifest.txt").exists()
    ways_to_use = () if made_here else (*own.glob("modulefiles/openmpi/*"), own / "environment.sh")
    for path in (*ways_to_use, _result_file(prefix)):
        if path.exists():
            path.unlink()
            changed.append(path)
    for folder in (own / "modulefiles" / "openmpi", own / "modulefiles", own):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    return tuple(map(str, changed))


def load_tuning(prefix: str) -> Tuning | None:
    """The result that is kept beside the installation; None when there is none that can be read."""
    try:
        return msgspec.json.decode(_result_file(prefix).read_bytes(), type=Tuning)
    except (OSError, msgspec.DecodeError):
        return None


def _trial(candidate: Candidate, probes: Probes, machine: Machine, parameter_file: Path, listener: Frontend) -> Trial:
    """One trial; a setting that stands in the file outside our block was somebody's decision and stays."""
    if machine.value("kernel.cma") == "refused":
        trial = refused(candidate, _("this machine refuses one process to read another's memory"))
    else:
        trial = try_out(candidate, probes, machine, listener)
    if trial.kept and candidate.parameter in other_settings(parameter_file):
        own = _("The parameter file already sets {name}; that line stays.").format(name=candidate.parameter)
        trial = msgspec.structs.replace(trial, kept=False, verdict=f"{trial.verdict} {own}")
    return trial


def _block_written(parameter_file: Path, parameters: dict[str, str]) -> tuple[Written, ...]:
    if not parameters:
        return ()
    lines = "; ".join(f"{name} = {value}" for name, value in parameters.items())
    between = "/^# >>> mpiwizard/,/^# <<< mpiwizard/d"
    undo = undo_with("sed", "-i", between, str(parameter_file))
    return (Written(str(parameter_file), _("block of settings: {lines}").format(lines=lines), undo),)


def _effect(recipes: Recipes, name: str) -> str:
    """What a parameter does, as far as the recipes know it."""
    return _(recipes.parameters[name].effect) if name in recipes.parameters else ""


def _name_and_value(setting: str) -> tuple[str, str]:
    name, _equals, value = setting.partition(" = ")
    return name, value


def _result_file(prefix: str) -> Path:
    return Path(prefix, "share", "mpiwizard", "tuning.json")


def _require_writable(parameter_file: Path) -> None:
    """WizardError before anything is measured when its result could not be written."""
    place = parameter_file if parameter_file.exists() else parameter_file.parent
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK):
        raise WizardError(
            _("You may not write {file}, so nothing was tuned. Use an installation of your own.").format(
                file=parameter_file
            ),
            ExitCode.NOT_POSSIBLE_HERE,
        )
