"""The kernel, and whether one process may read another's memory in one copy (CMA), found out by doing it."""

from __future__ import annotations

import errno
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from mpiwizard.core.detect.facts import (
    Probe,
    Survey,
    ask,
    first_line,
    lines_with,
    make_fact,
    unknown_fact,
    whole_number,
)
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

RELEASE = "/proc/sys/kernel/osrelease"
YAMA = "/proc/sys/kernel/yama/ptrace_scope"
PACKED_CONFIG = "/proc/config.gz"  # there when the kernel keeps it: CONFIG_IKCONFIG_PROC, on in WSL2
FIRST_WITH_CMA = (3, 2)  # process_vm_readv(2)


def _builds() -> tuple[tuple[str, str], ...]:
    """What the end of a release tells of who built it; patterns after the releases of such systems."""
    return (
        (r"microsoft-standard", _("Microsoft, for WSL2")),
        (r"-Microsoft$", _("WSL1, not Linux itself")),
        (r"\.el\d+", "Enterprise Linux"),
        (r"\.al\d+", "Alibaba Cloud Linux"),
        (r"\.amzn\d+", "Amazon Linux"),
        (r"\.fc\d+\.", "Fedora"),
        (r"-arch\d", "Arch"),
        (r"-pve$", "Proxmox"),
        (r"-default$", "SUSE"),
        (r"-generic$", "Ubuntu"),
        (r"-(aws|azure|gcp)$", _("Ubuntu, for this cloud")),
        (r"-cloud-(amd64|arm64)$", _("Debian, for clouds")),
        (r"-(amd64|arm64)$", "Debian"),
    )


def parse_release(text: str) -> tuple[list[int], str]:
    """The numbers at the beginning of a release, and what follows them without its separator."""
    found = re.match(r"[0-9]{1,9}(?:\.[0-9]{1,9})*", text)
    if found is None:
        return [], text
    return [int(number) for number in found[0].split(".")], text[found.end() :].lstrip("-.+_")


def read_release(survey: Survey) -> Iterator[Fact]:
    """The release as it is, and as a version that can be compared."""
    see = "uname -r"
    release = first_line(survey.host.read(RELEASE))
    if not release:
        for fact_id in ("kernel.release", "kernel.version"):
            why = _("there is no /proc/sys/kernel/osrelease")
            yield unknown_fact(fact_id, why, read_from=RELEASE, see_yourself=see)
        return
    yield make_fact(
        "kernel.release",
        release,
        release,
        read_from=RELEASE,
        raw=release,
        see_yourself=see,
        meaning=_("No release has to be reached: every kernel since 3.2 can have CMA, so it is tried below."),
        claims=(2, 3),
    )
    yield _version_fact(release, see)


def _version_fact(release: str, see: str) -> Fact:
    version, suffix = parse_release(release)
    if not version:
        why = _("{release} does not begin with numbers").format(release=release)
        return unknown_fact("kernel.version", why, read_from=RELEASE, raw=release, see_yourself=see)
    text = ".".join(map(str, version))
    build = next((name for pattern, name in _builds() if re.search(pattern, release)), suffix)
    old = tuple(version) < FIRST_WITH_CMA
    return make_fact(
        "kernel.version",
        version,
        _("{version} ({build})").format(version=text, build=build) if build else text,
        "attention" if old else "info",
        read_from=RELEASE,
        raw=release,
        see_yourself=see,
        meaning=_("CMA came with 3.2; Open MPI copies large messages twice here.")
        if old
        else _("The guide's test matches one old release of WSL2 and no newer one; numbers are compared here."),
        claims=(2, 3),
    )


# --- how it was built ----------------------------------------------------------------------------------


def parse_config(text: str) -> dict[str, str]:
    """Symbols of a kernel configuration with their values; `n` for those that are not set."""
    lines = re.findall(r"^(?:(CONFIG_\w+)=(.*)|# (CONFIG_\w+) is not set)$", text, re.MULTILINE)
    return {name or unset: value if name else "n" for name, value, unset in lines}


def read_config(survey: Survey) -> Iterator[Fact]:
    """CONFIG_CROSS_MEMORY_ATTACH, beside the CONFIG_CMA that the guide looks for."""
    text, read_from, see = _find_config(survey.host)
    symbols = parse_config(text)
    value = symbols.get("CONFIG_CROSS_MEMORY_ATTACH")
    shown = lines_with(r"\bCONFIG_(CROSS_MEMORY_ATTACH|CMA|KCMP|SECURITY_YAMA)\b", text)
    if value not in ("y", "n"):
        why = _("it does not name CONFIG_CROSS_MEMORY_ATTACH") if text else _("no configuration of it is here")
        yield unknown_fact("kernel.config", why, read_from=read_from, raw=shown, see_yourself=see)
        return
    other = symbols.get("CONFIG_CMA", "n")
    yield make_fact(
        "kernel.config",
        value,
        _("CONFIG_CROSS_MEMORY_ATTACH is {value}").format(value=value),
        "ok" if value == "y" else "info",
        read_from=read_from,
        raw=shown,
        see_yourself=see,
        meaning=_(
            "The guide looks for CONFIG_CMA, {value} here: that is an allocator of large pieces of memory for "
            "devices, and says nothing of copies between ranks."
        ).format(value=other),
        claims=(3, 50, 51),
    )


def _find_config(host: Host) -> tuple[str, str, str]:
    """The configuration's text, where it was read, and the command that shows its line."""
    wanted = "'CONFIG_(CROSS_MEMORY_ATTACH|CMA)\\b'"
    release = first_line(host.read(RELEASE))
    for path in (f"/boot/config-{release}", f"/lib/modules/{release}/config"):
        text = host.read(path) if release and "/" not in release else None
        if text:
            return text, path, f"grep -E {wanted} {shlex.quote(path)}"
    command = ("zcat", PACKED_CONFIG)  # not read as a file: it is no text
    return ask(host, *command).output, shlex.join(command), f"zcat {PACKED_CONFIG} | grep -E {wanted}"


# --- what it allows ------------------------------------------------------------------------------------


def read_yama(survey: Survey) -> Iterator[Fact]:
    see = f"cat {YAMA}"
    if not survey.host.exists(YAMA):
        if not survey.host.exists("/proc/sys/kernel"):
            why = _("there is no /proc/sys/kernel")
            yield unknown_fact("kernel.yama", why, read_from=YAMA, see_yourself=see)
            return
        yield make_fact(
            "kernel.yama",
            "absent",
            _("not in this kernel"),
            "ok",
            read_from=YAMA,
            see_yourself=see,
            meaning=_("No Yama keeps processes of one user from reading each other's memory. There is nothing to set."),
            claims=(28, 31),
        )
        return
    text = survey.host.read(YAMA)
    scope = whole_number(text)
    if scope is None or not 0 <= scope <= 9:
        yield unknown_fact(
            "kernel.yama", _("it holds no number that Yama has"), read_from=YAMA, raw=text or "", see_yourself=see
        )
        return
    yield make_fact(
        "kernel.yama",
        scope,
        {
            0: _("0, off"),
            1: _("1, only by permission of the target"),
            2: _("2, only for administrators"),
            3: _("3, off for good"),
        }.get(scope, str(scope)),
        "ok" if scope <= 1 else "info",
        read_from=YAMA,
        raw=text or "",
        see_yourself=see,
        meaning=_("Open MPI gives the permission by itself, so this stays as it is.")
        if scope <= 1
        else _("Open MPI believes that it may read other ranks all the same. Whether it may is tried below."),
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


def refusal_of(code: int) -> str:
    """What a trial that failed got, as a person may look it up: `EPERM`, or in words."""
    if code == -1:
        return _("wrong bytes")
    return _("ended by signal {number}").format(number=-code) if code < 0 else errno.errorcode.get(code, str(code))


def read_cma(survey: Survey) -> Iterator[Fact]:
    """CMA and kcmp, both from one trial between two sibling processes."""
    command = cma_command(survey.host)
    shown = shlex.join(command)
    result = ask(survey.host, *command)
    trial = parse_trial(result.output) if result.succeeded else {}
    raw = first_line(result.output)
    why = "" if trial else result.errors.strip().rpartition("\n")[2]
    why = why or _("the trial gave no answer in time, or could not be made here")
    for fact_id, make in (("kernel.cma", _cma_fact), ("kernel.kcmp", _kcmp_fact)):
        fact = make(trial, shown, raw)
        yield fact or unknown_fact(fact_id, why, read_from=shown, raw=raw, see_yourself=shown)


def _cma_fact(trial: dict[str, int | None], command: str, raw: str) -> Fact | None:
    value = classify_cma(trial)
    if value is None:
        return None
    text = {
        "works": _("works, tried between two processes"),
        "works-with-permission": _("works with the target's permission, tried"),
        "refused": _("refused ({code}), tried between two processes").format(
            code=refusal_of(trial.get("permitted") or 0)
        ),
    }[value]
    return make_fact(
        "kernel.cma",
        value,
        text,
        "info" if value == "refused" else "ok",
        read_from=command,
        raw=raw,
        see_yourself=command,
        meaning=_("Ranks of this box cannot read each other's memory; what Open MPI makes of it is told below.")
        if value == "refused"
        else _("Large messages between ranks of this box are copied once instead of twice."),
        claims=(3, 28, 29, 31, 50),
    )


def _kcmp_fact(trial: dict[str, int | None], command: str, raw: str) -> Fact | None:
    code = trial.get("kcmp")
    if code is None:
        return None
    return make_fact(
        "kernel.kcmp",
        code == 0,
        _("allowed") if code == 0 else _("refused ({code})").format(code=refusal_of(code)),
        "ok" if code == 0 else "info",
        read_from=command,
        raw=raw,
        see_yourself=command,
        meaning=_("Open MPI 5 asks this way whether it may read a rank, and where it may not ask, drops CMA silently."),
    )


PROBES = (
    Probe(("kernel.release", "kernel.version"), read_release),
    Probe(("kernel.config",), read_config),
    Probe(("kernel.yama",), read_yama),
    Probe(("kernel.cma", "kernel.kcmp"), read_cma),
)
