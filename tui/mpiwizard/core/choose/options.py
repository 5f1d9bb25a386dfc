"""Which options of a recipe are meant for one release, on one machine, by one person."""

from __future__ import annotations

from mpiwizard.core.detect.model import Machine
from mpiwizard.core.recipes import ConfigureOption, Recipe, RecipeOption, Recipes, fits, version_of


def is_required(machine: Machine, option: ConfigureOption) -> bool:
    """True when the box lacks what building without this option would need."""
    return bool(option.required_without) and not machine.value(option.required_without)


def is_offered(machine: Machine, known: ConfigureOption, option: RecipeOption, release: str) -> bool:
    """True when the release knows the option, and the machine has what the recipe passes it for."""
    return (
        not known.objection(release)
        and (not option.value_from or bool(machine.value(option.value_from)))
        and fits(machine.values, option.when)
    )


def is_wanted(machine: Machine, known: ConfigureOption, option: RecipeOption, release: str, matters: str) -> bool:
    """True when the recipe has this option on."""
    if not is_offered(machine, known, option, release) or not is_fit(option, release):
        return False
    by_recipe = option.enabled and (not option.matters or matters in option.matters)
    return by_recipe or is_required(machine, known)


def is_fit(option: RecipeOption, release: str) -> bool:
    """True when `release` is at or after the first fit one of its series, or of a later series."""
    if not option.needs_release:
        return True
    numbers = version_of(release).release
    first_fit = sorted(version_of(first).release for first in option.needs_release)
    same_series = [first for first in first_fit if first[:2] == numbers[:2]]
    return numbers >= (same_series or first_fit[-1:])[0]


def wanted_options(machine: Machine, recipes: Recipes, recipe: Recipe, release: str, matters: str) -> tuple[str, ...]:
    """Ids of the options the recipe has on for this release."""
    return tuple(
        option.id
        for option in recipe.option
        if is_wanted(machine, recipes.options[option.id], option, release, matters)
    )
