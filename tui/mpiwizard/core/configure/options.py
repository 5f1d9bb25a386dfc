"""The rows of the plan: each option of configure, whether it is passed, and why or why not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mpiwizard.core.choose.model import Choice
from mpiwizard.core.choose.options import is_fit, is_offered, is_required, is_wanted
from mpiwizard.core.configure.model import Option
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.i18n import _
from mpiwizard.core.recipes import ConfigureOption, RecipeOption, Recipes

PREFIX = "prefix"  # has a row of its own, above all others


def plan_options(
    machine: Machine, recipes: Recipes, choice: Choice, matters: str, switches: Mapping[str, bool]
) -> tuple[Option, ...]:
    """One row for each option the recipe has for this release and machine, and for each the person switched on.

    An option is `enabled` only when it is really passed; one that was wanted and cannot be has a `conflict`.
    """
    offered = {option.id: option for option in recipes.platforms[choice.recipe].option}
    for name in switches:
        if switches[name] and name in recipes.options and name != PREFIX:
            offered.setdefault(name, RecipeOption(name, _("You switched it on."), enabled=False))
    rows: list[Option] = []
    for option in offered.values():
        known = recipes.options[option.id]
        required = is_required(machine, known)
        switch = None if required else switches.get(option.id)
        if not switch and not is_offered(machine, known, option, choice.release):
            continue
        value = str(machine.value(option.value_from, "")) if option.value_from else ""
        wanted = is_wanted(machine, known, option, choice.release, matters) if switch is None else switch
        conflict = _obstacle(known, option, choice.release, value, rows) if wanted else ""
        rows.append(_row(known, option, value, wanted and not conflict, conflict, required))
    return tuple(rows)


def _row(
    known: ConfigureOption, option: RecipeOption, value: str, enabled: bool, conflict: str, required: bool
) -> Option:
    return Option(
        id=known.id,
        argument=known.argument.format(value=value or "DIR"),
        enabled=enabled,
        reason=_("There is no compiler for it on this machine.") if required else _(option.reason),
        effect=" ".join(_(text) for text in (known.effect, known.cost) if text),
        lost=_(known.lost),
        conflict=conflict,
        fixed=required,
        claims=known.claims,
    )


def _obstacle(known: ConfigureOption, option: RecipeOption, release: str, value: str, above: Iterable[Option]) -> str:
    """Why a wanted option cannot be passed after those above it; empty when it can."""
    if objection := known.objection(release):
        return objection
    if not is_fit(option, release):
        return _("needs release {releases} or newer").format(releases=_(" or ").join(option.needs_release))
    if "{value}" in known.argument and not value:
        return _("needs a folder, and none was found on this machine")
    if rivals := [row.argument for row in above if row.enabled and row.id in known.excludes]:
        return _("does not go with {rivals}").format(rivals=", ".join(rivals))
    return ""
