"""From a choice to a plan: options, folders, steps, time and room."""

from __future__ import annotations

import time
from collections.abc import Mapping, Set

from msgspec.structs import replace

from mpiwizard.core.choose.estimate import default_jobs, estimate, left_in
from mpiwizard.core.choose.model import Choice
from mpiwizard.core.configure.model import Option, Plan
from mpiwizard.core.configure.options import PREFIX, plan_options
from mpiwizard.core.configure.preflight import check_prefix_is_free, checked_prefix
from mpiwizard.core.configure.steps import Origin, Places, Work, make_steps
from mpiwizard.core.context import Context, Wishes, given_path
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.errors import WizardError
from mpiwizard.core.i18n import _
from mpiwizard.core.recipes import Recipe, Recipes
from mpiwizard.core.sources.release import address_of

COMPILERS = ("CC", "CXX", "FC")  # variables that name one; configure reads them


def make_plan(
    context: Context,
    machine: Machine,
    recipes: Recipes,
    choice: Choice,
    wishes: Wishes,
    switches: Mapping[str, bool] = {},
    fallback: Choice | None = None,
) -> Plan:
    """All that will be done for a choice. Nothing is written.

    `switches` turns options on or off by id. `fallback` becomes a plan of the same run, for a source that
    fails when it is fetched. Raises WizardError (USAGE) for a prefix that no build could bear.
    """
    if wishes.archive:
        wishes = replace(wishes, archive=str(given_path(wishes.archive)))
    run = time.strftime("%Y%m%d-%H%M%S", time.gmtime(context.clock())) + f"-{choice.release}"
    plan = _plan(context, machine, recipes, choice, wishes, switches, run)
    if fallback is None:
        return plan
    other = _plan(context, machine, recipes, fallback, wishes, switches, run)
    try:
        check_prefix_is_free(context.host, other.prefix)
    except WizardError as error:
        return replace(plan, notes=(*plan.notes, _("No second source is tried: {error}").format(error=error)))
    return replace(plan, fallback=other)


def _plan(
    context: Context,
    machine: Machine,
    recipes: Recipes,
    choice: Choice,
    wishes: Wishes,
    switches: Mapping[str, bool],
    run: str,
) -> Plan:
    recipe = recipes.platforms[choice.recipe]
    prefix = checked_prefix(wishes.prefix or f"~/mpi/openmpi-{choice.release}", context.host)
    places = Places(str(context.folders.runs / run), str(context.folders.downloads), prefix)
    options = (
        _prefix_row(recipes, prefix),
        *plan_options(machine, recipes, choice, wishes.matters, switches),
    )
    passed = tuple(option for option in options if option.enabled)
    jobs = wishes.jobs or default_jobs(machine)
    series = recipes.series_of(choice.release)
    times = estimate(series, left_in(recipes, (option.id for option in passed)), jobs)
    bash = machine.value("tool.bash", {}).get("path") or "/bin/bash"
    replaces = _replaces(context, prefix)
    notes = _notes(recipes, recipe, choice.release, {option.id for option in passed}, switches)
    work = Work(
        places=places,
        origin=_origin(machine, recipes, choice, wishes),
        bash=bash,
        arguments=tuple(option.argument for option in passed),
        environment=_environment(context, machine, bash),
        jobs=jobs,
        seconds=times,
    )
    return Plan(
        run=run,
        choice=choice,
        wishes=wishes,
        prefix=prefix,
        jobs=jobs,
        source_folder=places.source,
        build_folder=places.build,
        options=options,
        steps=make_steps(work),
        seconds=sum(times.values()),
        disk=series.disk,
        disk_kept=series.disk_kept,
        packages=_missing_programs(machine),
        notes=(replaces, *notes) if replaces else notes,
        replaces=replaces,
    )


def _origin(machine: Machine, recipes: Recipes, choice: Choice, wishes: Wishes) -> Origin:
    if choice.source == "archive":
        return Origin("archive", wishes.archive, wishes.sha256.lower())
    if choice.source == "distro":
        offered = machine.value("source.distro", {})
        file = str(offered.get("file") or f"openmpi_{choice.release}.orig.tar.xz")
        return Origin("distro", file, str(offered.get("sha256", "")))
    archive = recipes.releases[choice.release].archive
    return Origin("release", archive.file, archive.sha256, address_of(archive, wishes.mirror))


def _prefix_row(recipes: Recipes, prefix: str) -> Option:
    known = recipes.options[PREFIX]
    return Option(
        id=known.id,
        argument=known.argument.format(value=prefix),
        enabled=True,
        reason=_("A folder of its own, so that it can be removed in one piece."),
        effect=_(known.effect),
        fixed=True,
        claims=known.claims,
    )


def _environment(context: Context, machine: Machine, bash: str) -> dict[str, str]:
    """What configure, make and install get set: the shell, the language, the compilers the person named.

    With dash for CONFIG_SHELL, configure of 4.1.4 with --disable-dlopen leaves functions out of libmpi.
    """
    given = context.host.environment
    environment = {"CONFIG_SHELL": bash, "LC_ALL": "C.UTF-8"}
    environment |= {name: given[name] for name in COMPILERS if given.get(name)}
    windows = set(machine.value("path.windows", []))
    path = given.get("PATH", "")
    if windows and path:
        environment["PATH"] = ":".join(folder for folder in path.split(":") if folder not in windows)
    return environment


def _missing_programs(machine: Machine) -> dict[str, str]:
    return {
        fact.id.partition(".")[2]: fact.action
        for fact in machine.facts
        if fact.group == "tools" and fact.value is None and fact.action
    }


def _replaces(context: Context, prefix: str) -> str:
    """The sentence for a prefix that is not empty; whose files they are is for the preflight to ask."""
    if not context.host.list(prefix):
        return ""
    return _("{prefix} holds an installation already; this build replaces it.").format(prefix=prefix)


def _notes(
    recipes: Recipes, recipe: Recipe, release: str, passed: Set[str], switches: Mapping[str, bool]
) -> tuple[str, ...]:
    unknown = sorted(set(switches) - set(recipes.options))
    strange = {parameter.name for parameter in recipes.parameters.values() if not parameter.known_to(release)}
    settings = (one for one in recipe.setting if one.option in {"", *passed} and one.name not in strange)
    return (
        _("Nothing needs root: all is written to folders of yours."),
        *map(_, recipe.hazards),
        *map(_, recipe.environment),
        *(
            _("For a job: --mca {name} {value}. {reason}").format(
                name=one.name, value=one.value, reason=_(one.reason)
            )
            for one in settings
        ),
        *(_("Not tried by us: {text}").format(text=_(text)) for text in recipe.untested),
        *(_("No longer known, and left out: {name}").format(name=name) for name in unknown),
    )
