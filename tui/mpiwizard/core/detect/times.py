"""Files from the future: where the clock is behind the times of files, make builds too much or too little."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from mpiwizard.core.detect.facts import Probe, Survey, ask, lines_with, make_fact, unknown_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.format import duration
from mpiwizard.core.i18n import _

TOLERANCE = 60  # seconds that servers and hosts may disagree without harm
MOST = 20  # files of mpiwizard's newest run that are looked at, which a build would go on with
_SYSTEM = ("/etc/ld.so.cache", "/etc", "/usr/bin", "/usr/lib", "/var/log", "/tmp")  # changed now and then everywhere


def parse_times(text: str) -> dict[str, int]:
    """What `stat -c '%Y %n'` prints: path -> seconds since the epoch when it was last changed."""
    lines = re.findall(r"^(-?[0-9]{1,18}) (/.*)$", text, re.MULTILINE)
    return {path: int(seconds) for seconds, path in lines}


def looked_at(survey: Survey) -> list[str]:
    """Files and folders whose times are compared with the clock: the newest of ours, and some every box has."""
    runs = str(survey.folders.runs)
    ours = [str(survey.folders.state), runs]
    for run in survey.host.list(runs)[-1:]:
        ours += [f"{runs}/{run}", *(f"{runs}/{run}/{name}" for name in survey.host.list(f"{runs}/{run}")[:MOST])]
    return [path for path in (*ours, survey.home, *_SYSTEM) if survey.host.exists(path)]


def read_times(survey: Survey) -> Iterator[Fact]:
    paths = looked_at(survey)
    command = ["stat", "-c", "%Y %n", *paths]
    line = shlex.join(command)
    see = f"date +%s; {line}"
    result = ask(survey.host, *command)
    times = parse_times(result.output)
    if not times:
        yield unknown_fact("storage.times", _("stat tells no times"), read_from=line, see_yourself=see)
        return
    newest = max(times, key=lambda path: times[path])
    ahead = times[newest] - survey.now
    behind = {path: seconds for path, seconds in times.items() if seconds - survey.now > TOLERANCE}
    if not behind:
        raw = lines_with(f"^{times[newest]} ", result.output)
        text = _("none in the future")
        yield make_fact("storage.times", 0, text, "ok", read_from=line, raw=raw, see_yourself=see)
        return
    wsl = survey.found.value("platform.layer") in ("wsl1", "wsl2")
    yield make_fact(
        "storage.times",
        round(ahead),
        _("{path} lies {time} in the future").format(path=newest, time=duration(ahead)),
        "attention",
        read_from=line,
        raw=f"now {survey.now:.0f}\n" + "\n".join(f"{seconds} {path}" for path, seconds in behind.items()),
        see_yourself=see,
        meaning=_(
            "The clock is behind. make then takes what is old for new: it warns of clock skew, and leaves out "
            "what it ought to compile, or compiles it again and again."
        ),
        action=_("Run hwclock -s as root, or wsl --shutdown in Windows.")
        if wsl
        else _("Set the clock before you build: timedatectl set-ntp true; on a network drive, its server's clock too."),
    )


PROBES = (Probe(("storage.times",), read_times, ("platform.layer",)),)
