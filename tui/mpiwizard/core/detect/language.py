"""The language setting: whether programs can follow it, and what that does to a build."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpiwizard.core.detect.facts import Probe, Survey, ask, make_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.i18n import _

_VARIABLES = ("LC_ALL", "LC_CTYPE", "LANG")  # the first that is set and not empty counts: locale(7)
_BUILT_IN = ("C", "POSIX")


def named_locale(environment: dict[str, str]) -> tuple[str, str]:
    """The locale of characters and the variable that names it; C where none does."""
    for variable in _VARIABLES:
        if name := environment.get(variable):
            return name, variable
    return "C", ""


def plain_name(name: str) -> str:
    """A name as C libraries compare them: en_US.UTF-8 and en_US.utf8 are the same."""
    language, dot, rest = name.partition(".")
    codeset, at, modifier = rest.partition("@")
    return language + dot + re.sub(r"[^a-z0-9]", "", codeset.lower()) + at + modifier


def parse_locales(text: str) -> set[str]:
    """What `locale -a` prints, by their plain names."""
    return {plain_name(line.strip()) for line in text.splitlines() if line.strip()}


def read_locale(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    name, variable = named_locale(dict(host.environment))
    utf8 = plain_name(name).partition("@")[0].endswith(".utf8")
    known: bool | None = True
    if name not in _BUILT_IN:
        result = ask(host, "locale", "-a")
        known = plain_name(name) in parse_locales(result.output) if result.output.strip() else None
    meanings = []
    if known is False:
        meanings.append(_("It is not installed: perl, make and others warn of it, and speak English."))
    if not utf8:
        meanings.append(_("Characters beyond ASCII may be shown wrongly."))
    elif known and not name.startswith(("C.", "en")):
        meanings.append(_("Messages come in your language; mpiwizard asks programs with LC_ALL=C, and builds so too."))
    fine = known is not False
    yield make_fact(
        "environment.locale",
        {"name": name, "utf8": utf8, "installed": known} if variable else None,
        _locale_text(name, variable, fine),
        "ok" if fine and utf8 else "info",
        read_from=f"${variable}" if variable else _("environment"),
        raw="\n".join(f"{one}={host.environment[one]}" for one in _VARIABLES if one in host.environment),
        see_yourself="locale; locale -a",
        meaning=" ".join(meanings),
        action="" if fine and utf8 else "export LC_ALL=C.UTF-8",
    )


def _locale_text(name: str, variable: str, fine: bool) -> str:
    if not variable:
        return _("not set, which is C")
    return name if fine else _("{name}, not installed").format(name=name)


PROBES = (Probe(("environment.locale",), read_locale),)
