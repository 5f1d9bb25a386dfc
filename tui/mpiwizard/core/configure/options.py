"""The rows of the plan: each option of configure, whether it is passed, and why or why not."""

from __future__ import annotations

from collections.abc import Mapping

from mpiwizard.core.choose.options import is_fit, is_required, is_wanted
from mpiwizard.core.configure.model import Option
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _
from mpiwizard.core.recipes import ConfigureOption, Recipe, RecipeOption, Recipes


def plan_options(
    host: Host,
    machine: Machine,
    recipes: Recipes,
    recipe: Recipe,
    release: str,
    matters: str,
    switches: Mapping[str, bool],
) -> tuple[Option, ...]:
    """One row for each option the recipe has for this release, and for each the person switched.

    An option is `enabled` only when it is really passed; one that was wanted and cannot be has a `conflict`.
    """
    offered = {option.id: option for option in recipe.option}
    for name in switches:
        if name in recipes.options and name not in offered:
            offered[name] = RecipeOption(name, _("You switched it on."), enabled=False)
    rows: list[Option] = []
    taken: dict[str, str] = {}
    for option in offered.values():
        known = recipes.options[option.id]
        if known.objection(release) and option.id not in switches:
            continue
        row = _row(host, machine, known, option, release, matters, switches.get(option.id), taken)
        if row.enabled:
            taken[row.id] = row.argument
        rows.append(row)
    return tuple(rows)


def _row(
    host: Host,
    machine: Machine,
    known: ConfigureOption,
    option: RecipeOption,
    release: str,
    matters: str,
    switch: bool | None,
    taken: Mapping[str, str],
) -> Option:
    required = is_required(machine, known)
    by_recipe = is_wanted(machine, known, option, release, matters) and _has_file(host, option)
    wanted = required or (by_recipe if switch is None else switch)
    obstacle = _obstacle(host, known, option, release, taken) if wanted or switch else ""
    reason = _("{fact} is missing on this machine.").format(fact=machine.fact(known.required_without).label)
    return Option(
        id=known.id,
        argument=known.argument.format(value=option.value) if option.value else known.argument,
        enabled=wanted and not obstacle,
        reason=reason if required else _(option.reason),
        effect=" ".join(_(text) for text in (known.effect, _sentence(known.cost)) if text),
        lost=_(known.lost),
        conflict=obstacle
        or (
            _("cannot be switched off: {reason}").format(reason=reason)
            if required and switch is False
            else ""
        ),
        fixed=required,
        claims=known.claims,
    )


def _obstacle(
    host: Host, known: ConfigureOption, option: RecipeOption, release: str, taken: Mapping[str, str]
) -> str:
    """Why the option cannot be passed although it is wanted; empty when it can."""
    if objection := known.objection(release):
        return objection
    if not is_fit(option, release):
        return _("needs release {releases} or newer").format(releases=_(" or ").join(option.needs_release))
    if "{value}" in known.argument and not option.value:
        return _("needs a folder, and the recipe names none")
    if not _has_file(host, option):
        return _("{file} is missing").format(file=option.needs_file)
    if rivals := [taken[name] for name in known.excludes if name in taken]:
        return _("does not go with {rivals}").format(rivals=", ".join(rivals))
    return ""


def _has_file(host: Host, option: RecipeOption) -> bool:
    return not option.needs_file or host.exists(option.needs_file)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""
