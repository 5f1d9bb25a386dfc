"""What must be right: the files, the wrapper compiler, the answers of real jobs, the parameter file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mpiwizard.core.errors import WizardError
from mpiwizard.core.i18n import _, ngettext
from mpiwizard.core.probes import ProbeRun, Probes
from mpiwizard.core.validate.model import Check

FILES = (
    ("bin/mpicc",),
    ("bin/mpirun",),
    ("include/mpi.h",),
    ("lib/libmpi.so", "lib/libmpi.a", "lib64/libmpi.so", "lib64/libmpi.a"),
)


def all_checks(probes: Probes, parameters: Mapping[str, str]) -> Iterator[Check]:
    """Every check in turn. `parameters` are those that tuning wrote to the parameter file."""
    yield from _installed_files(probes)
    yield _version(probes)
    compiled = _compiles(probes)
    yield compiled
    if not compiled.passed:
        return
    for ranks in sorted({1, 2, probes.cores}):
        for check in _jobs(probes, ranks):
            yield check
            if is_broken_job(check):
                return
    yield _parameter_file(probes, parameters)


def is_broken_job(check: Check) -> bool:
    """True for a job that crashed or hung: the next one would only cost time to say the same."""
    return check.id.startswith("job-") and not check.passed


def settings_in_a_job(probes: Probes) -> dict[str, tuple[str, str]]:
    """MCA parameters as a rank of a job sees them: name -> (value, where it comes from).

    Asked through mpirun, which tells an installation that was moved where it is. Empty when it fails.
    """
    result = probes.host.run(
        _ask_settings(probes), timeout=20, environment=probes.environment, folder=str(probes.folder)
    )
    found: dict[str, dict[str, str]] = {}
    for name, attribute, text in re.findall(
        r"^mca:[^:]+:[^:]+:param:([^:]+):(value|source):(.*)$", result.output, re.MULTILINE
    ):
        found.setdefault(name, {})[attribute] = text.strip()
    return {name: (one.get("value", ""), one.get("source", "")) for name, one in found.items()}


def _ask_settings(probes: Probes) -> list[str]:
    ompi_info = f"{probes.installation.prefix}/bin/ompi_info"
    return probes.command(1, [ompi_info, "--parsable", "--all", "--level", "9"], {})


def _installed_files(probes: Probes) -> Iterator[Check]:
    for alternatives in FILES:
        present = [file for file in alternatives if probes.host.exists(f"{probes.installation.prefix}/{file}")]
        file = (present or alternatives)[0]
        yield Check(
            f"file-{file.rpartition('/')[2].partition('.')[0]}",
            _("{file} is installed").format(file=file),
            bool(present),
            f"{probes.installation.prefix}/{file}" if present else _("missing"),
            next="" if present else _("Install again: `make install` did not finish."),
        )


def _version(probes: Probes) -> Check:
    """ompi_info and mpirun must be of one release, or two installations are mixed."""
    command = [f"{probes.installation.prefix}/bin/ompi_info", "--version"]
    result = probes.host.run(command, timeout=20, environment=probes.environment)
    said = (result.output or result.errors).strip().partition("\n")[0]
    passed = said == f"Open MPI v{probes.installation.release}"
    return Check(
        "version",
        _("ompi_info and mpirun are of one release"),
        passed,
        said,
        shlex.join(command),
        "" if passed else _("Two installations are mixed in this prefix; install into an empty one."),
        result.seconds,
    )


def _compiles(probes: Probes) -> Check:
    label = _("mpicc compiles an MPI program")
    try:
        program = probes.compile("check")
    except WizardError as error:
        return Check("compile", label, False, str(error), next=_("Look at `mpicc --showme`."))
    return Check("compile", label, True, str(program))


def _jobs(probes: Probes, ranks: int) -> Iterator[Check]:
    """One check per answer of the probe, and one more when the job itself went wrong."""
    run = probes.run(ranks, [str(probes.folder / "check")])
    on = ngettext("on {ranks} rank", "on {ranks} ranks", ranks).format(ranks=ranks)
    answers = [record for record in run.records if "check" in record]
    seconds = run.seconds / max(len(answers), 1)
    for answer in answers:
        yield _answer(answer, on, ranks, run, seconds)
    if run.failure and all(answer.get("passed") for answer in answers):
        yield Check(
            f"job-{ranks}",
            _("a job {on} runs to its end").format(on=on),
            False,
            run.failure,
            shlex.join(run.command),
            _("Run the command by hand and give its output to `mpiwizard diagnose`."),
            run.seconds,
        )


def _answer(answer: Mapping[str, Any], on: str, ranks: int, run: ProbeRun, seconds: float) -> Check:
    name, passed = str(answer["check"]), bool(answer.get("passed"))
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower())
    return Check(
        f"{slug}-{ranks}",
        f"{_(name)} {on}",
        passed,
        str(answer.get("detail", "")),
        shlex.join(run.command),
        "" if passed else _("A wrong result: do not use this installation. Run the command again by hand."),
        seconds,
    )


def _parameter_file(probes: Probes, parameters: Mapping[str, str]) -> Check:
    """What tuning wrote must reach a job, and come from our file."""
    file = probes.installation.parameter_file
    settings = settings_in_a_job(probes)
    wrong = [
        _("{name} is {value}, from {source}").format(name=name, value=seen[0] or "–", source=seen[1] or "–")
        for name, value in parameters.items()
        for seen in (settings.get(name, ("", "")),)
        if seen[0] != value or not seen[1].startswith("file")
    ]
    read = settings.get("mca_base_param_files", ("", ""))[0]
    if parameters:
        passed = not wrong
        detail = "; ".join(wrong or (f"{name} = {settings[name][0]}" for name in parameters))
    else:
        passed = file in read
        detail = _("read, and nothing needed setting") if passed else _("only {files} are read").format(files=read)
    check = Check(
        "parameter-file", _("a job honours the parameter file"), passed, detail, shlex.join(_ask_settings(probes))
    )
    if passed:
        return check
    return msgspec.structs.replace(
        check, next=_("Look for the same setting in ~/.openmpi/mca-params.conf, which comes before it.")
    )
