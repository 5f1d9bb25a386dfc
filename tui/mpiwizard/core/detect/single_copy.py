"""Which mechanism copies a large message only once here, in Open MPI 4.x and in 5.x, and why.

Open MPI 4 (vader) prefers XPMEM, CMA, KNEM in this order; 5 (smsc) has them by priority 42, 37, 23. Both take
the first that was built in and starts, and both start CMA by Yama's value and prctl alone: neither tries it.
So where the kernel refuses CMA, 4.x fails at the first large message, and so does 5.x, unless kcmp is refused
too: that makes 5.x drop CMA for the peer, and nothing takes its place.
(btl_vader_component.c and btl_vader_module.c of 4.1.4; smsc_{xpmem,cma,knem}_component.c, smsc_cma_module.c of 5.0)
"""

from __future__ import annotations

import errno
import shlex
from collections.abc import Iterator

from msgspec import Struct

from mpiwizard.core.detect.facts import Probe, Survey, ask_all, lines_with, make_fact, unknown_fact
from mpiwizard.core.detect.kernel import FIRST_WITH_CMA, cma_command, parse_trial, refusal_of
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.i18n import _

_INCLUDES = ("/usr/include", "/usr/local/include")  # where configure finds a header by itself
_PARAMETERS = {"4": "--mca btl_vader_single_copy_mechanism {name}", "5": "--mca smsc {name}"}
_OFF = {"4": "none", "5": "^cma"}
_GRANTS = {  # how a container gets CAP_SYS_PTRACE, which also lets kcmp through the filter of Docker
    "docker": "--cap-add=SYS_PTRACE",
    "podman": "--cap-add=SYS_PTRACE",
    "container": "--cap-add=SYS_PTRACE",
    "kubernetes": "securityContext: {capabilities: {add: [SYS_PTRACE]}}",
}
_CONTAINERS = (*_GRANTS, "lxc", "apptainer", "systemd-nspawn")


# --- the mechanisms that need a kernel module ----------------------------------------------------------


def read_xpmem(survey: Survey) -> Iterator[Fact]:
    yield _device_fact(survey, "kernel.xpmem", "xpmem", "xpmem.h")


def read_knem(survey: Survey) -> Iterator[Fact]:
    yield _device_fact(survey, "kernel.knem", "knem", "knem_io.h")


def _device_fact(survey: Survey, fact_id: str, name: str, header: str) -> Fact:
    """`absent`, `hidden` (loaded, but no device here), `refused`, `usable`, or `ready`: with its header."""
    host, device, module = survey.host, f"/dev/{name}", f"/sys/module/{name}"
    see = f"ls -ld {device} {module}"
    if not host.exists(device):
        if host.exists(module):
            return make_fact(
                fact_id,
                "hidden",
                _("loaded, but there is no {device} here").format(device=device),
                read_from=f"{device}, {module}",
                raw=module,
                see_yourself=see,
                meaning=_("A container sees it with --device={device}.").format(device=device),
            )
        if not host.exists("/dev"):
            return unknown_fact(fact_id, _("there is no /dev"), read_from=device, see_yourself=see)
        return make_fact(
            fact_id,
            "absent",
            _("not on this box"),
            read_from=f"{device}, {module}",
            see_yourself=see,
            meaning=_("It is a module from outside the kernel. CMA, where it works, copies once too and needs none."),
        )
    listing, writable = ask_all(host, (("ls", "-l", device), ("test", "-w", device)))
    found = next((f"{folder}/{header}" for folder in _INCLUDES if host.exists(f"{folder}/{header}")), "")
    value = "refused" if writable.status == 1 else "ready" if found else "usable"
    text = {
        "refused": _("{device} is not open to this user"),
        "ready": _("{device}, and {header} to build with"),
        "usable": _("{device}, but no {header} to build with"),
    }[value].format(device=device, header=header)
    return make_fact(
        fact_id,
        value,
        text,
        read_from=f"ls -l {device}, test -w {device}",
        raw="\n".join(filter(None, (lines_with(".", listing.output) or device, found))),
        see_yourself=see,
        meaning=_("Open MPI uses it only when it was built with it; its configure looks for {header}.").format(
            header=header
        ),
    )


# --- the one conclusion --------------------------------------------------------------------------------


class Signs(Struct, frozen=True):
    """What the facts say; None where they say nothing."""

    cma: str | None
    cma_code: int  # what the trial got: an errno, or as cma.py says; 0 when it was not refused
    kcmp: bool | None
    kcmp_code: int
    version: tuple[int, ...]
    config: str | None
    yama: int | None  # 0 also where the kernel has no Yama
    seccomp: int | None
    ptrace: bool | None
    userns: bool | None
    xpmem: str | None
    knem: str | None
    layer: str

    @property
    def contained(self) -> bool:
        return self.layer in _CONTAINERS

    @property
    def filtered(self) -> bool:
        """Whether something stands around us that may refuse system calls."""
        return self.contained or bool(self.seccomp)


class Outcome(Struct, frozen=True):
    """Of a series of Open MPI: the mechanism (None: there is no telling), why, and the parameter it needs."""

    name: str | None
    why: str = ""
    parameter: str = ""


def signs_of(found: Machine) -> Signs:
    yama, trial = found.value("kernel.yama"), parse_trial(found.fact("kernel.cma").raw)
    return Signs(
        found.value("kernel.cma"),
        trial.get("permitted") or 0,
        found.value("kernel.kcmp"),
        trial.get("kcmp") or 0,
        tuple(found.value("kernel.version", ())),
        found.value("kernel.config"),
        0 if yama == "absent" else yama,
        found.value("kernel.seccomp"),
        found.value("kernel.ptrace"),
        found.value("kernel.userns"),
        found.value("kernel.xpmem"),
        found.value("kernel.knem"),
        found.value("platform.layer", "none"),
    )


def obstacle(signs: Signs) -> str:
    """What is known to forbid CMA here, whether it was tried or not; empty when nothing is."""
    if signs.version and signs.version < FIRST_WITH_CMA:
        return _("the kernel is older than 3.2")
    if signs.layer == "wsl1":
        return _("WSL1 does not have it")
    if signs.config == "n":
        return _("not built into this kernel")
    if signs.yama == 3 or (signs.yama == 2 and not signs.ptrace):
        return _("Yama is {scope}").format(scope=signs.yama)
    return ""


def why_refused(signs: Signs) -> str:
    """Why the trial was refused."""
    if signs.cma_code == errno.ENOSYS:
        return _("not in this kernel")
    why = obstacle(signs)
    if not why and signs.contained:
        why = _("the container refuses it")
    elif not why and signs.seccomp:
        why = _("a filter refuses it")
    return why or _("refused, {code}").format(code=refusal_of(signs.cma_code))


def conclude(signs: Signs, series: str) -> Outcome:
    """What Open MPI of a series, "4" or "5", uses here by default, or with the parameter that is named."""
    if signs.xpmem == "ready":
        return Outcome("xpmem")
    if signs.cma == "refused":
        return _instead(signs, series, why_refused(signs), _OFF[series])
    if signs.cma is None:
        return _guess(signs, series)
    if series == "5" and signs.kcmp is False:
        missing = signs.kcmp_code == errno.ENOSYS
        return _instead(signs, series, _("the kernel has no kcmp") if missing else _("kcmp is refused"), "")
    return Outcome("cma")


def _instead(signs: Signs, series: str, why: str, off: str) -> Outcome:
    """What is left without CMA: KNEM, which has to be asked for, since CMA comes before it and seems to start."""
    if signs.knem == "ready":
        return Outcome("knem", why, _PARAMETERS[series].format(name="knem"))
    return Outcome("none", why, _PARAMETERS[series].format(name=off) if off else "")


def _guess(signs: Signs, series: str) -> Outcome:
    """What is likely where CMA could not be tried."""
    why = obstacle(signs)
    if why:
        return _instead(signs, series, why, _OFF[series])
    if signs.contained and signs.seccomp and not signs.ptrace:
        # Docker's filter lets kcmp pass only with the capability; CMA too before 23.0, which does not show here.
        if series == "5" and signs.layer == "docker":
            return _instead(signs, series, _("Docker refuses kcmp"), "")
        return Outcome(None, _("it depends on the container's filter"))
    return Outcome("cma") if signs.config == "y" or signs.yama is not None else Outcome(None)


def contradictions_of(signs: Signs) -> Iterator[str]:
    """Signs that speak against what the trial showed."""
    works = signs.cma in ("works", "works-with-permission")
    if works and signs.config == "n":
        yield _("The configuration says that this kernel has no CMA, yet it works; it may be another kernel's.")
    if works and signs.yama == 2 and signs.ptrace:
        yield _("Yama is 2, yet CMA works: mpiwizard holds CAP_SYS_PTRACE. Jobs of users without it are refused.")
    elif works and (signs.yama or 0) >= 2:
        yield _("Yama is {scope}, which forbids CMA, yet it works.").format(scope=signs.yama)
    if signs.cma == "refused" and signs.config == "y" and not obstacle(signs):
        cause = _("the container or a filter is in the way") if signs.filtered else _("the cause does not show here")
        yield _("The configuration has CMA, yet the trial was refused: {cause}.").format(cause=cause)
    if signs.kcmp is False and signs.ptrace and signs.kcmp_code != errno.ENOSYS:
        yield _("CAP_SYS_PTRACE is held, yet kcmp is refused.")


def read_single_copy(survey: Survey) -> Iterator[Fact]:
    signs = signs_of(survey.found)
    outcomes = {series: conclude(signs, series) for series in _PARAMETERS}
    names = {outcome.name for outcome in outcomes.values()}
    see = shlex.join(cma_command(survey.host))
    if names == {None}:
        why = outcomes["4"].why or _("nothing tells")
        yield unknown_fact("kernel.single_copy", _("CMA was not tried; {why}").format(why=why), see_yourself=see)
        return
    yield make_fact(
        "kernel.single_copy",
        {series: outcome.name for series, outcome in outcomes.items()},
        _summary(signs, outcomes),
        "attention" if names & {"none", "knem", None} else "info" if signs.cma is None else "ok",
        see_yourself=see,
        meaning=_meaning(signs, outcomes),
        action=_action(signs, outcomes),
        rests_on=tuple(fact_id for fact_id in NEEDS if survey.found.value(fact_id) is not None),
        contradictions=tuple(contradictions_of(signs)),
        claims=(3, 28, 29, 31, 50),
    )


def _summary(signs: Signs, outcomes: dict[str, Outcome]) -> str:
    """Such as `4.x: CMA, 5.x: none (kcmp is refused)`."""
    names = {"cma": "CMA", "xpmem": "XPMEM", "knem": "KNEM", "none": _("none"), None: _("not known")}
    four, five = outcomes["4"], outcomes["5"]
    if four.name == five.name:
        text = _("4.x and 5.x: {name}").format(name=names[four.name])
    else:
        text = _("4.x: {four}, 5.x: {five}").format(four=names[four.name], five=names[five.name])
    why = next((outcome.why for outcome in (four, five) if outcome.name == "none" and outcome.why), "")
    if why:
        text = _("{text} ({why})").format(text=text, why=why)
    tried = signs.cma is not None or four.name == "xpmem"
    return text if tried else _("{text}; likely, not tried").format(text=text)


def _meaning(signs: Signs, outcomes: dict[str, Outcome]) -> str:
    sentences = []
    if signs.cma == "refused" and signs.xpmem != "ready":
        who = _("Open MPI 4") if signs.kcmp is False else _("Open MPI")
        sentences.append(
            _("{who} takes CMA without trying it, and jobs fail at the first large message (Read -1, errno = {code}).")
            .format(who=who, code=signs.cma_code)
        )  # fmt: skip
    elif any(outcome.name == "none" for outcome in outcomes.values()):
        sentences.append(_("Where there is none, large messages are copied twice: slower, and right all the same."))
    else:
        sentences.append(_("Large messages between ranks of this box are copied once instead of twice."))
    if signs.xpmem == "usable":
        sentences.append(_("An Open MPI that was built with XPMEM takes that first."))
    if signs.userns and any(outcome.name == "cma" for outcome in outcomes.values()):
        sentences.append(_("Ranks in containers of their own, each with its user namespace, cannot use CMA."))
    return " ".join(sentences)


def _action(signs: Signs, outcomes: dict[str, Outcome]) -> str:
    """The exact parameter of each series that needs one, and how a container gets the right. Never a sysctl."""
    parts = [f"{series}.x: mpirun {outcome.parameter}" for series, outcome in outcomes.items() if outcome.parameter]
    grant = _GRANTS.get(signs.layer)
    final = signs.yama == 3 or signs.config == "n" or signs.cma_code == errno.ENOSYS
    if grant and not final and any(outcome.name in ("none", None) for outcome in outcomes.values()):
        parts.append(_("to allow it, start the container with {grant}").format(grant=grant))
    return "; ".join(parts)


NEEDS = (
    "platform.layer",
    "kernel.version",
    "kernel.config",
    "kernel.yama",
    "kernel.seccomp",
    "kernel.ptrace",
    "kernel.userns",
    "kernel.cma",
    "kernel.kcmp",
    "kernel.xpmem",
    "kernel.knem",
)
PROBES = (
    Probe(("kernel.xpmem",), read_xpmem),
    Probe(("kernel.knem",), read_knem),
    Probe(("kernel.single_copy",), read_single_copy, NEEDS),
)
