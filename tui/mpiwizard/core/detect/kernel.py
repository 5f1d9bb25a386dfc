"""The kernel, and whether one process may read another's memory in one copy (CMA), found out by doing it."""

from __future__ import annotations

import errno
import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from mpiwizard.core.detect.facts import Probe, Survey, ask, first_line, make_fact, unknown_fact, whole_number
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

YAMA = "/proc/sys/kernel/yama/ptrace_scope"


def read_release(survey: Survey) -> Iterator[Fact]:
    path = "/proc/sys/kernel/osrelease"
    release = first_line(survey.host.read(path))
    if not release:
        yield unknown_fact("kernel.release", _("there is no /proc/sys/kernel/osrelease"), see_yourself="uname -r")
        return
    yield make_fact(
        "kernel.release",
        release,
        release,
        read_from=path,
        see_yourself="uname -r",
        meaning=_("No release has to be reached: every kernel since 3.2 can have CMA, so it is tried below."),
        claims=(2, 3),
    )


def read_yama(survey: Survey) -> Iterator[Fact]:
    see = f"cat {YAMA}"
    if not survey.host.exists(YAMA):
        if not survey.host.exists("/proc/sys/kernel"):
            yield unknown_fact("kernel.yama", _("there is no /proc/sys/kernel"), see_yourself=see)
            return
        yield make_fact(
            "kernel.yama",
            "absent",
            _("not in this kernel"),
            "ok",
            read_from=YAMA,
            see_yourself=see,
            meaning=_("Processes of one user may read each other's memory. There is nothing to set."),
            claims=(28, 31),
        )
        return
    scope = whole_number(survey.host.read(YAMA))
    if scope is None:
        yield unknown_fact("kernel.yama", _("it holds no number"), read_from=YAMA, see_yourself=see)
        return
    open_enough = scope <= 1
    yield make_fact(
        "kernel.yama",
        scope,
        {
            0: _("0, off"),
            1: _("1, only by permission of the target"),
            2: _("2, only for administrators"),
            3: _("3, off for good"),
        }.get(scope, str(scope)),
        "ok" if open_enough else "attention",
        read_from=YAMA,
        see_yourself=see,
        meaning=_("Open MPI gives the permission by itself, so this stays as it is.")
        if open_enough
        else _("Open MPI believes that it may read other ranks, and fails at the first large message."),
        action=""
        if open_enough
        else _("The protection stays as it is. Whether CMA works all the same is tried below."),
        claims=(28, 31),
    )


def cma_command(host: Host) -> tuple[str, ...]:
    """The program that tries it; a recorded box has it under the plain name python3."""
    if not host.is_real:
        return ("python3", "-m", "mpiwizard.core.detect.cma")
    return (sys.executable, "-I", "-S", str(Path(__file__).with_name("cma.py")))


def parse_trial(text: str) -> dict[str, int | None]:
    """What the program printed (cma.py); empty when it printed something else."""
    try:
        answer = json.loads(first_line(text))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(answer, dict):
        return {}
    return {name: value for name, value in answer.items() if value is None or isinstance(value, int)}


def classify_cma(trial: dict[str, int | None]) -> str | None:
    """What a trial means: works, works-with-permission, refused, or None when it was not tried."""
    plain, permitted = trial.get("plain"), trial.get("permitted")
    if plain == 0:
        return "works"
    if permitted == 0:
        return "works-with-permission"
    return None if permitted is None else "refused"


def read_cma(survey: Survey) -> Iterator[Fact]:
    """CMA and kcmp, both from one trial between two sibling processes."""
    command = cma_command(survey.host)
    see = shlex.join(command)
    result = ask(survey.host, *command, timeout=5.0)
    trial = parse_trial(result.output) if result.succeeded else {}
    value = classify_cma(trial)
    if value is None:
        why = _("the trial gave no answer in time") if result.timed_out else result.errors.strip().rpartition("\n")[2]
        yield unknown_fact("kernel.cma", why or _("the trial gave no answer"), see_yourself=see)
    else:
        yield _cma_fact(survey, value, trial, see)
    yield _kcmp_fact(survey, value, trial.get("kcmp"), see)


def _cma_fact(survey: Survey, value: str, trial: dict[str, int | None], see: str) -> Fact:
    code = trial.get("permitted") or 0
    refusal = errno.errorcode.get(code, _("wrong bytes"))
    text = {
        "works": _("works, tried between two processes"),
        "works-with-permission": _("works with the target's permission, tried between two processes"),
        "refused": _("refused ({code}), tried between two processes").format(code=refusal),
    }[value]
    refused = value == "refused"
    return make_fact(
        "kernel.cma",
        value,
        text,
        "attention" if refused else "ok",
        read_from=_("process_vm_readv between two sibling processes"),
        see_yourself=see,
        meaning=_why_refused(survey, code)
        if refused
        else _("Large messages between ranks of this box are copied once instead of twice."),
        action=_("mpiwizard switches CMA off for your jobs; messages are then copied twice.") if refused else "",
        rests_on=("kernel.yama",) if refused else (),
        claims=(3, 28, 29, 31, 50),
    )


def _why_refused(survey: Survey, code: int) -> str:
    yama = survey.found.value("kernel.yama", "absent")
    if code == errno.ENOSYS:
        return _("This kernel has no such system call.")
    if isinstance(yama, int) and yama >= 2:
        return _("The ptrace protection of this kernel ({scope}) forbids it.").format(scope=yama)
    if survey.found.value("platform.layer") in ("docker", "podman", "kubernetes", "container"):
        return _("The container forbids it; one started with --cap-add=SYS_PTRACE, or by a newer Docker, allows it.")
    return (
        _("Something forbids it; a security module or a filter of system calls is likely. {error}")
        .format(error=os.strerror(code) if code > 0 else "")
        .strip()
    )


def _kcmp_fact(survey: Survey, cma: str | None, code: int | None, see: str) -> Fact:
    if code is None:
        return unknown_fact("kernel.kcmp", _("it was not tried here"), see_yourself=see)
    matters = code != 0 and cma in ("works", "works-with-permission")
    return make_fact(
        "kernel.kcmp",
        code == 0,
        _("allowed") if code == 0 else _("refused ({code})").format(code=errno.errorcode.get(code, str(code))),
        "attention" if matters else "info",
        read_from=_("kcmp between two sibling processes"),
        see_yourself=see,
        meaning=_("Open MPI 5 asks this way whether ranks share a user namespace, and drops CMA without a word.")
        if matters
        else "",
        action=_("With Open MPI 4 nothing; for 5, start the container with --cap-add=SYS_PTRACE.") if matters else "",
        rests_on=("kernel.cma",),
    )


PROBES = (
    Probe(("kernel.release",), read_release),
    Probe(("kernel.yama",), read_yama),
    Probe(("kernel.cma", "kernel.kcmp"), read_cma, ("kernel.yama", "platform.layer")),
)
