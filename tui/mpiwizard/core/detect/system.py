"""What runs on the box: distribution, first process, the person's account, the clock."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from mpiwizard.core.detect.facts import Probe, Survey, first_line, lines_with, make_fact, unknown_fact, whole_number
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.format import duration
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

CLOCK_TOLERANCE = 60.0  # seconds between the clocks of system and hardware


def parse_os_release(text: str) -> dict[str, str]:
    """The values of an os-release file (os-release(5)); lines that cannot be understood are left out."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if not equals or not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
            continue
        try:
            values[name] = " ".join(shlex.split(value))
        except ValueError:  # a quotation that never ends
            continue
    return values


_FAMILIES = {
    "apt": {"debian", "ubuntu"},
    "dnf": {"fedora", "rhel", "centos", "rocky", "almalinux", "ol", "amzn", "alinux", "anolis", "openeuler",
            "tencentos", "opencloudos", "azurelinux", "mariner"},
    "zypper": {"suse", "opensuse", "sles", "opensuse-leap", "opensuse-tumbleweed"},
    "apk": {"alpine"},
    "pacman": {"arch", "manjaro"},
}  # fmt: skip
_INSTALLERS = {"apt-get": "apt", "dnf": "dnf", "yum": "dnf", "microdnf": "dnf", "zypper": "zypper", "apk": "apk",
               "pacman": "pacman"}  # fmt: skip


def family_of(host: Host, release: dict[str, str]) -> str:
    """The family of package managers: by the distribution's names, else by the program that is there."""
    for name in (release.get("ID", ""), *release.get("ID_LIKE", "").split()):
        for family, members in _FAMILIES.items():
            if name.lower() in members:
                return family
    return next((family for program, family in _INSTALLERS.items() if host.which(program)), "")


def read_distribution(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    path = "/etc/os-release" if host.read("/etc/os-release") else "/usr/lib/os-release"
    release = parse_os_release(host.read(path) or "")
    if not release:
        why = _("there is no os-release file")
        yield unknown_fact("platform.distribution", why, read_from=path, see_yourself="cat /etc/*release")
        return
    name = release.get("NAME", release.get("ID", "Linux")).removesuffix(" GNU/Linux")
    version = release.get("VERSION_ID", "")
    family = family_of(host, release)
    yield make_fact(
        "platform.distribution",
        {"id": release.get("ID", "linux"), "version": version, "name": name, "family": family},
        release.get("PRETTY_NAME") or f"{name} {version}".strip(),
        read_from=path,
        raw=lines_with(r"^\s*(PRETTY_NAME|NAME|ID|ID_LIKE|VERSION_ID)=", host.read(path)) or host.read(path) or "",
        see_yourself=f"grep PRETTY_NAME {path}",
        meaning=_("Packages come through {family} here.").format(family=family) if family else "",
        claims=(40,),
    )


def read_init(survey: Survey) -> Iterator[Fact]:
    name = first_line(survey.host.read("/proc/1/comm"))
    see = "cat /proc/1/comm"
    if not name:
        yield unknown_fact("platform.init", _("there is no /proc/1/comm"), read_from="/proc/1/comm", see_yourself=see)
        return
    yield make_fact(
        "platform.init",
        name,
        name,
        read_from="/proc/1/comm",
        raw=name,
        see_yourself=see,
        meaning=""
        if name == "systemd"
        else _("Without systemd, files in /etc/sysctl.d are not read at the start. Open MPI needs none of them."),
        claims=(30,) if survey.found.value("platform.layer") == "wsl2" else (),
    )


def read_user(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    found = re.search(r"^Uid:\s+\d+\s+([0-9]{1,10})\b.*", host.read("/proc/self/status") or "", re.MULTILINE)
    if found is None:
        why = _("/proc/self/status does not tell")
        yield unknown_fact("platform.user", why, read_from="/proc/self/status", see_yourself="id")
        return
    uid = int(found[1])
    lines = (line.split(":") for line in (host.read("/etc/passwd") or "").splitlines())
    name, entry = next(
        ((parts[0], ":".join(parts[:3])) for parts in lines if len(parts) > 2 and parts[2] == found[1]), ("", "")
    )  # the rest of the entry is nobody's business
    yield make_fact(
        "platform.user",
        {"uid": uid, "name": name, "root": uid == 0},
        name or _("number {uid}").format(uid=uid),
        "attention" if uid == 0 else "info",
        read_from="/proc/self/status, /etc/passwd",
        raw="\n".join(filter(None, (found[0], entry))),
        see_yourself="id",
        meaning=_("mpirun refuses to start programs as root, for good reasons, unless it is told to.")
        if uid == 0
        else "",
        action=_("mpiwizard tells its own mpirun to run as root; for daily work use an ordinary user.")
        if uid == 0
        else "",
        claims=(54,) if uid == 0 else (),
    )


def clock_skew(now: float, hardware: float) -> float:
    """Seconds the system is ahead of the hardware clock, which may run in any time zone."""
    skew = now - hardware
    return skew - round(skew / 900) * 900 if abs(skew) < 15 * 3600 else skew


def read_clock(survey: Survey) -> Iterator[Fact]:
    """Only where there is a hardware clock to compare with."""
    path = "/sys/class/rtc/rtc0/since_epoch"
    hardware = whole_number(survey.host.read(path))
    if hardware is None:
        return
    skew = clock_skew(survey.now, hardware)
    wrong = abs(skew) > CLOCK_TOLERANCE
    ahead = _("{time} ahead of the hardware clock") if skew > 0 else _("{time} behind the hardware clock")
    yield make_fact(
        "platform.clock",
        round(skew),
        ahead.format(time=duration(abs(skew))) if wrong else _("agrees with the hardware clock"),
        "attention" if wrong else "ok",
        read_from=path,
        raw=_("{path}: {hardware}, the clock of the system: {now:.0f}").format(
            path=path.rpartition("/")[2], hardware=hardware, now=survey.now
        ),
        see_yourself=f"date +%s; cat {path}",
        meaning=_("make compares times of files; with a wrong clock it builds too much or too little.")
        if wrong
        else "",
        action=_clock_mend(survey.found.value("platform.layer")) if wrong else "",
    )


def _clock_mend(layer: object) -> str:
    if layer in ("wsl1", "wsl2"):
        return _("Run hwclock -s as root, or wsl --shutdown in Windows.")
    return _("See by date which is right; then sudo hwclock -w sets the hardware's, sudo hwclock -s the system's.")


PROBES = (
    Probe(("platform.distribution",), read_distribution),
    Probe(("platform.init",), read_init, ("platform.layer",)),
    Probe(("platform.user",), read_user),
    Probe(("platform.clock",), read_clock, ("platform.layer",)),
)
