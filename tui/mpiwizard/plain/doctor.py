"""Whether mpiwizard itself can work here: Python, its folders, its recipes, the tools of a build."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from msgspec import Struct

from mpiwizard import __version__
from mpiwizard.core.context import Context, Wishes
from mpiwizard.core.errors import WizardError
from mpiwizard.core.i18n import _


class Finding(Struct, frozen=True):
    """One thing the doctor looked at. `next` says what to do when it is not well."""

    what: str
    seen: str
    well: bool
    next: str = ""


def examine(context: Context) -> tuple[Finding, ...]:
    """All findings. Nothing is changed but our own folders, which are made."""
    return (_python(), *_folders(context), _recipes(context), *_tools(context), _terminal())


def _python() -> Finding:
    seen = f"mpiwizard {__version__}, Python {platform.python_version()}, {sys.executable}"
    return Finding(_("Python"), seen, True)


def _folders(context: Context) -> list[Finding]:
    findings = []
    for folder in (context.folders.state, context.folders.cache):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            probe = folder / f".doctor-{os.getpid()}"
            probe.write_text("", encoding="ascii")
            probe.unlink()
            findings.append(Finding(_("Own folder"), _("{path} can be written").format(path=folder), True))
        except OSError as error:
            findings.append(
                Finding(
                    _("Own folder"),
                    f"{folder}: {error.strerror}",
                    False,
                    _("Set XDG_STATE_HOME and XDG_CACHE_HOME to folders that can be written."),
                )
            )
    return findings


def _recipes(context: Context) -> Finding:
    from mpiwizard.core.recipes import load_recipes

    try:
        recipes = load_recipes(context.folders.config)
        seen = _("{platforms} kinds of box, {releases} releases, {claims} claims of the guide").format(
            platforms=len(recipes.platforms), releases=len(recipes.releases), claims=len(recipes.claims)
        )
    except WizardError as error:
        return Finding(_("Recipes"), str(error), False, _("Mend or remove the file that is named."))
    own = Path(context.folders.config) / "recipes"
    if own.is_dir():
        seen += _(", with your own from {path}").format(path=own)
    return Finding(_("Recipes"), seen, True)


def _tools(context: Context) -> list[Finding]:
    from mpiwizard.core.detect import detect

    machine = detect(context, Wishes())
    facts = [fact for fact in machine.facts if fact.group == "tools"]
    return [Finding(fact.label, fact.text, fact.state != "problem", fact.action) for fact in facts]


def _terminal() -> Finding:
    term = os.environ.get("TERM", "")
    well = term not in ("", "dumb")
    seen = _("TERM={term}, {columns} columns").format(term=term or "''", columns=_columns())
    return Finding(
        _("Terminal"), seen, True, "" if well else _("The interface needs a full terminal; the commands do not.")
    )


def _columns() -> int:
    import shutil

    return shutil.get_terminal_size().columns
