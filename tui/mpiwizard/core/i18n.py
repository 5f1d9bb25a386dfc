"""Translation of all user-visible text, recipe text included.

`use_language` must run before a module of the interface is imported: some of its text is
translated while the module loads.
"""

from __future__ import annotations

import gettext
import os
from collections.abc import Mapping
from pathlib import Path

_LOCALE_FOLDER = Path(__file__).resolve().parent.parent / "locale"
_translations: gettext.NullTranslations = gettext.NullTranslations()


def preferred_language(environment: Mapping[str, str]) -> str:
    """The person's language, such as `zh_CN`; empty when the environment names none."""
    for name in ("MPIWIZARD_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environment.get(name, ""):
            return value.partition(".")[0]
    return ""


def use_language(language: str = "") -> None:
    """Take the catalogue of `language`, or of the environment when empty; English if there is none."""
    global _translations
    language = language or preferred_language(os.environ)
    _translations = gettext.translation("mpiwizard", str(_LOCALE_FOLDER), [language], fallback=True)


def _(message: str) -> str:
    """The message in the person's language. An empty message stays empty."""
    return _translations.gettext(message) if message else ""


def ngettext(singular: str, plural: str, count: int) -> str:
    """The form of the message that fits `count`, in the person's language."""
    return _translations.ngettext(singular, plural, count)
