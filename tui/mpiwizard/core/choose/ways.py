"""From a machine and the recipes to ranked choices: recipe x release x source, each with its reasons."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mpiwizard.core.choose.estimate import default_jobs, estimate, left_in
from mpiwizard.core.choose.model import Choice
from mpiwizard.core.choose.options import wanted_options
from mpiwizard.core.context import Wishes
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.i18n import _, ngettext
from mpiwizard.core.recipes import FALLBACK, MATTERS, SOURCES, Recipe, Recipes, Series, fits, series_id, version_of

GUIDE_SERIES = "4.1"  # the guide builds 4.1.5
WORTH_WAITING = 5.0  # minutes that the newer release may take longer, even for who wants it soon


class Offer(Struct, frozen=True):
    """A release from a source, before it is weighed. `why_not` is empty when it can be had."""

    source: str
    release: str
    reason: str = ""
    why_not: str = ""
    claims: tuple[int, ...] = ()


def choose(machine: Machine, recipes: Recipes, wishes: Wishes) -> tuple[Choice, ...]:
    """The ways to an MPI on this machine, best first; those that cannot be taken come last.

    Raises WizardError (USAGE) when a wish names what does not exist.
    """
    _check(machine, recipes, wishes)
    recipe = matching_recipe(machine, recipes, wishes)
    choices = [_choice(machine, recipes, recipe, offer, wishes) for offer in _offers(machine, recipes, recipe, wishes)]
    quickest = min((choice.minutes for choice in choices if choice.available), default=0.0)
    ranked = sorted(choices, key=lambda choice: _rank(machine, choice, wishes, quickest))
    return (_with_rank(ranked[0], machine, wishes), *ranked[1:]) if ranked else ()


def require_choice(choices: tuple[Choice, ...], wishes: Wishes) -> Choice:
    """The best choice. Raises WizardError (NOT_POSSIBLE_HERE), with each source's reason, when there is none."""
    for choice in choices:
        if choice.available:
            return choice
    reasons = "; ".join(dict.fromkeys(f"{choice.source}: {choice.why_not}" for choice in choices))
    message = _(
        "No source of Open MPI can be used here ({reasons}); connect this machine, "
        "name a mirror with --mirror, or give an archive with --source archive --archive FILE."
    )
    raise WizardError(message.format(reasons=reasons), ExitCode.NOT_POSSIBLE_HERE)


def fallback_choice(choices: tuple[Choice, ...], choice: Choice, wishes: Wishes) -> Choice | None:
    """What to go on with when the source of `choice` fails while it is fetched: the best of another source.

    None when the person named a source, or there is no other.
    """
    if wishes.source != "auto":
        return None
    others = (other for other in choices if other.available and other.source != choice.source)
    return next(others, None)


def matching_recipe(machine: Machine, recipes: Recipes, wishes: Wishes) -> Recipe:
    """The recipe the person named, or the weightiest one that matches the machine."""
    if wishes.recipe:
        return recipes.platforms[wishes.recipe]
    values = machine.values
    matching = [recipe for recipe in recipes.platforms.values() if recipe.match and fits(values, recipe.match)]
    return max(
        matching,
        key=lambda recipe: (recipe.weight, len(recipe.match)),
        default=recipes.platforms[FALLBACK],
    )


def _check(machine: Machine, recipes: Recipes, wishes: Wishes) -> None:
    if wishes.recipe:
        _one_of(_("recipe"), wishes.recipe, recipes.platforms)
    _one_of(_("source"), wishes.source, ("auto", *SOURCES))
    _one_of(_("answer to what matters"), wishes.matters, MATTERS)
    if wishes.jobs < 0:
        raise WizardError(_("There is no sense in fewer than one job: --jobs 1."), ExitCode.USAGE)
    if wishes.source == "archive" and not wishes.archive:
        raise WizardError(_("The source archive needs a file: --archive FILE."), ExitCode.USAGE)
    if wishes.release:
        offered = {_offered(machine, source).get("release", "") for source in SOURCES}
        known = {*recipes.releases, *offered} - {""}
        _one_of(_("release"), wishes.release, sorted(known, key=version_of))


def _one_of(what: str, given: str, known: Any) -> None:
    if given not in known:
        message = _("There is no {what} {given}; known are: {known}.")
        raise WizardError(message.format(what=what, given=repr(given), known=", ".join(known)), ExitCode.USAGE)


def _offered(machine: Machine, source: str) -> dict[str, Any]:
    value = machine.value(f"source.{source}")
    return value if isinstance(value, dict) else {}


def _offers(machine: Machine, recipes: Recipes, recipe: Recipe, wishes: Wishes) -> Iterator[Offer]:
    if wishes.archive and wishes.source in ("auto", "archive"):
        yield _archive_offer(machine, wishes)
        return
    if wishes.source in ("auto", "release"):
        yield from _release_offers(machine, recipes, recipe, wishes)
    if wishes.source in ("auto", "distro"):
        yield _distro_offer(machine, wishes)


def _release_offers(machine: Machine, recipes: Recipes, recipe: Recipe, wishes: Wishes) -> Iterator[Offer]:
    why_not = "" if _offered(machine, "release") else _why_not(machine, "release")
    preferred = {
        _newest(recipes, preference.release): preference
        for preference in recipe.prefer
        if preference.source == "release"
    }
    for release in [wishes.release] if wishes.release else preferred:
        if release not in recipes.releases:
            yield Offer(
                "release", "", why_not=_("where {release} is, and its sum, is not known").format(release=release)
            )
            continue
        preference = preferred.get(release)
        yield Offer(
            "release",
            release,
            _(preference.reason) if preference else _("The release you asked for."),
            why_not,
            preference.claims if preference else (),
        )


def _distro_offer(machine: Machine, wishes: Wishes) -> Offer:
    offered = _offered(machine, "distro")
    release = str(offered.get("release", ""))
    why_not = "" if offered else _why_not(machine, "distro")
    if offered and wishes.release and wishes.release != release:
        why_not = _("the distribution offers {release}").format(release=release)
    reason = _("The version your distribution maintains, and builds its own MPI programs with.")
    return Offer("distro", release, reason, why_not)


def _archive_offer(machine: Machine, wishes: Wishes) -> Offer:
    offered = _offered(machine, "archive")
    release = str(offered.get("release", ""))
    why_not = "" if release else _why_not(machine, "archive")
    if release and wishes.release and wishes.release != release:
        why_not = _("the archive holds {release}").format(release=release)
    return Offer("archive", release, _("The archive you gave; no network is needed."), why_not)


def _newest(recipes: Recipes, release: str) -> str:
    """The release itself, or the newest one when a series was named."""
    newest = recipes.newest(release)
    return newest.version if newest else release


def _why_not(machine: Machine, source: str) -> str:
    fact = machine.fact(f"source.{source}")
    return fact.meaning or fact.text


def _why_unfit(machine: Machine, series: Series) -> str:
    architecture = machine.value("cpu.architecture", "")
    if not any(fnmatchcase(architecture, pattern) for pattern in series.unfit_architectures):
        return ""
    return _("{series} and later cannot be built on {architecture}").format(series=series.id, architecture=architecture)


def _choice(machine: Machine, recipes: Recipes, recipe: Recipe, offer: Offer, wishes: Wishes) -> Choice:
    if not offer.release:
        title = _("Open MPI, {origin}").format(origin=_origin(machine, offer.source))
        return Choice(recipe.id, "", offer.source, title, available=False, why_not=offer.why_not)
    passed = wanted_options(machine, recipes, recipe, offer.release, wishes.matters)
    series = recipes.series_of(offer.release)
    why_not = offer.why_not or _why_unfit(machine, series)
    seconds = sum(estimate(series, left_in(recipes, passed), wishes.jobs or default_jobs(machine)).values())
    return Choice(
        recipe=recipe.id,
        release=offer.release,
        source=offer.source,
        title=_("Open MPI {release}, {origin}").format(release=offer.release, origin=_origin(machine, offer.source)),
        reasons=(
            offer.reason,
            *_source_reasons(recipes, offer),
            _("{title}: {summary}").format(title=_(recipe.title), summary=_(recipe.summary)),
        ),
        lost=tuple(_(recipes.options[name].lost) for name in passed if recipes.options[name].lost),
        minutes=round(seconds / 60, 1),
        disk=series.disk + series.disk_kept,
        available=not why_not,
        why_not=why_not,
        guide=_guide(offer.source),
        claims=tuple(dict.fromkeys((*offer.claims, *recipe.claims))),
    )


def _origin(machine: Machine, source: str) -> str:
    if source == "release":
        return _("the official release")
    if source == "archive":
        return _("your archive")
    distribution = machine.value("platform.distribution", {})
    name = distribution.get("name") or _("the distribution")
    return _("the source package of {name}").format(name=name)


def _source_reasons(recipes: Recipes, offer: Offer) -> tuple[str, ...]:
    if offer.source == "release":
        names = recipes.releases[offer.release].archive.sources
        text = ngettext(
            "The archive's SHA-256 was found with {count} independent project: {names}.",
            "The archive's SHA-256 was found with {count} independent projects: {names}.",
            len(names),
        )
        return (text.format(count=len(names), names=", ".join(names)),)
    if offer.source == "distro":
        return (_("apt checks the signature and the sums; nothing under /etc changes."),)
    return ()


def _guide(source: str) -> str:
    if source == "distro":
        return _("The guide installs the distribution's binary packages in its container, and builds elsewhere.")
    return _("The guide takes 4.1.5 from an address that does not exist, and checks no sum.")


def _rank(machine: Machine, choice: Choice, wishes: Wishes, quickest: float) -> tuple[Any, ...]:
    """Smaller is better: what can be had first, then by what matters to the person."""
    if not choice.available:
        return (True, SOURCES.index(choice.source))
    source = SOURCES.index(choice.source)
    newest = tuple(-number for number in version_of(choice.release).release)
    keys: dict[str, tuple[Any, ...]] = {
        "soon": (source, choice.minutes > quickest + WORTH_WAITING, newest),
        "speed": (source, newest),
        "match": (
            choice.release not in _present_releases(machine),
            choice.source != "distro",
            choice.minutes,
        ),
        "learn": (series_id(choice.release) != GUIDE_SERIES, source, choice.minutes),
    }
    return (False, *keys[wishes.matters])


def _present_releases(machine: Machine) -> set[str]:
    installations = machine.value("mpi.installations", [])
    return {one.get("release", "") for one in installations if one.get("kind") == "Open MPI"}


def _with_rank(best: Choice, machine: Machine, wishes: Wishes) -> Choice:
    """The best choice with the reason for its rank, and a word about what is there already."""
    if not best.available:
        return best
    because = {
        "soon": _("Ready soon: about {minutes:.0f} minutes until it is validated."),
        "speed": _("The newest release here: it has the latest work on transports."),
        "match": _("Closest to what is used around this machine."),
        "learn": _("The series the guide is about, with nothing left out that it speaks of."),
    }[wishes.matters].format(minutes=best.minutes)
    remarks = tuple(
        _("{what} is in {prefix} already.").format(
            what=f"{one.get('kind', '')} {one.get('release') or ''}".strip(), prefix=one.get("prefix", "")
        )
        for one in machine.value("mpi.installations", [])
    )
    return replace(best, reasons=(because, *best.reasons, *remarks))
