"""recipes/ as typed, validated values; a person's own files overlay the shipped ones.

Each file is read when it is first asked for, so that a command pays only for the knowledge it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.i18n import _

if TYPE_CHECKING:
    from packaging.version import Version

FALLBACK = "generic"  # the recipe for a box that no other recipe matches
MATTERS = ("soon", "speed", "match", "learn")
SOURCES = ("release", "distro", "archive")


class Expectation(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A value somebody published: `low` to `high` in `unit`, and what we think of it.

    `verdict` is the one of the guide's claim: correct, wrong, version-dependent, dangerous, unverifiable.
    `when` holds facts of the machines it is about; without them it is about no machine in particular, and
    a measured value that misses it is not called low or high.
    """

    metric: str  # id of the metric, such as launcher-time
    who: str  # guide-wsl2, guide-cloud, or the name of the publisher
    text: str  # as shown, such as "50–100 ms"
    unit: str
    low: float | None = None
    high: float | None = None
    verdict: str = "unverifiable"
    remark: str = ""
    source: str = ""
    claim: int = 0
    when: dict[str, Any] = {}


class Claim(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A statement of the guide, in our words, and what is right about it."""

    number: int
    stage: str  # detect, choose, configure, build, tune, validate or troubleshoot
    statement: str
    verdict: str
    correction: str = ""
    evidence: str = ""


class TableRow(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One row of a table of the guide, and the claims that judge it. `metric` names what it is about."""

    cells: tuple[str, ...]
    claims: tuple[int, ...]
    metric: str = ""


class GuideTable(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A comparison table of the guide in our own English; every row has as many cells as `columns`."""

    id: str  # environment, platforms, topology or metrics
    title: str
    columns: tuple[str, ...]
    row: tuple[TableRow, ...]


class Archive(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A source archive of an Open MPI release. `sources` are the projects that published this SHA-256."""

    release: str
    file: str
    sha256: str
    url: str
    sources: tuple[str, ...]


class Series(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What building a release of a series takes with the lean options.

    Seconds are processor seconds of the machine in `basis`; only make profits from more cores.
    `unfit_architectures` are patterns of the names `uname -m` gives to processors it cannot be built for.
    """

    id: str  # such as 4.1
    title: str
    compile_steps: int
    configure_seconds: float
    make_seconds: float
    install_seconds: float
    disk: int  # bytes of archive, source, build folder
    disk_kept: int  # bytes of the installation
    basis: str
    unfit_architectures: tuple[str, ...] = ()


class Release(Struct, frozen=True):
    """A release and its archives, the one to take first: best confirmed, then smallest."""

    version: str
    series: str
    archives: tuple[Archive, ...]

    @property
    def archive(self) -> Archive:
        return self.archives[0]


class ConfigureOption(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An argument of configure and the releases that know it.

    `argument` may hold `{value}`. `after_removal` is what configure does with it from `removed_in` on:
    error, warning or accepted. `required_without` is a fact: when the box lacks it, the option must be on.
    `excludes` are options that make no sense beside this one.
    """

    id: str
    argument: str
    effect: str
    lost: str = ""
    cost: str = ""
    saves_steps: int = 0  # compile steps that fall away
    exists: bool = True
    advised: bool = True
    valid_from: str = ""
    removed_in: str = ""
    after_removal: str = ""
    replaced_by: str = ""
    required_without: str = ""
    excludes: tuple[str, ...] = ()
    claims: tuple[int, ...] = ()
    evidence: str = ""

    def objection(self, release: str) -> str:
        """Why this option must not go to `release`; empty when it may."""
        if not self.exists:
            return _("no release of Open MPI has this option")
        if _is_before(release, self.valid_from):
            return _("exists from {valid_from} on, this is {release}").format(
                valid_from=self.valid_from, release=release
            )
        if self.removed_in and not _is_before(release, self.removed_in):
            return _("was removed in {removed_in}, this is {release}").format(
                removed_in=self.removed_in, release=release
            )
        return ""


class Parameter(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An MCA parameter, a value of one, a launcher option, a variable or a file, and its releases.

    `kind` is parameter, value, option, environment or file.
    """

    name: str
    kind: str
    project: str
    effect: str
    valid_from: str = ""
    removed_in: str = ""
    replaced_by: str = ""
    evidence: str = ""

    def known_to(self, release: str) -> bool:
        return not _is_before(release, self.valid_from) and (
            not self.removed_in or _is_before(release, self.removed_in)
        )


class Preference(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A release the recipe would take from a source. `release` is a version, or a series for its newest."""

    source: str
    release: str
    reason: str
    claims: tuple[int, ...] = ()


class RecipeOption(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A configure option in a recipe.

    It is on when `enabled`, when `matters` is empty or holds what matters to the person, and when every
    fact of `when` fits. `value_from` is a fact that holds what goes to `{value}`; without it the option is
    off. `needs_release` holds the first fit release of each series.
    """

    id: str
    reason: str
    value_from: str = ""
    enabled: bool = True
    matters: tuple[str, ...] = ()
    needs_release: tuple[str, ...] = ()
    when: dict[str, Any] = {}


class Setting(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An MCA parameter a recipe advises for jobs, with `option` only where that one is passed. Told, not written."""

    name: str
    value: str
    reason: str
    option: str = ""


class Recipe(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What to do on one kind of box. `match` maps facts to a value or a list of values.

    Of several that match, the one with the greatest `weight` is taken, then the one with most facts.
    The options of `based_on` come first, the same id replaces; its preferences count where this has none.
    """

    title: str
    summary: str
    weight: int
    match: dict[str, Any] = {}
    based_on: str = ""
    prefer: tuple[Preference, ...] = ()
    option: tuple[RecipeOption, ...] = ()
    setting: tuple[Setting, ...] = ()
    environment: tuple[str, ...] = ()
    hazards: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    claims: tuple[int, ...] = ()
    id: str = ""  # the name of the file; not written in it


class _ReleasesFile(Struct, frozen=True, forbid_unknown_fields=True):
    archive: tuple[Archive, ...] = ()
    series: tuple[Series, ...] = ()


class _OptionsFile(Struct, frozen=True, forbid_unknown_fields=True):
    option: tuple[ConfigureOption, ...] = ()


class _ParametersFile(Struct, frozen=True, forbid_unknown_fields=True):
    parameter: tuple[Parameter, ...] = ()


class _DocumentFile(Struct, frozen=True, forbid_unknown_fields=True):
    claim: tuple[Claim, ...] = ()
    table: tuple[GuideTable, ...] = ()
    expectation: tuple[Expectation, ...] = ()


T = TypeVar("T")


class Recipes:
    """All knowledge, from `folders`: an entry of a later folder replaces the one with the same id."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders

    @cached_property
    def platforms(self) -> dict[str, Recipe]:
        """Recipes by id, the bases of each worked in."""
        files: dict[str, Path] = {}
        for folder in self._folders:
            files.update({file.stem: file for file in (folder / "platforms").glob("*.toml")})
        own = {name: _decode(file, Recipe) for name, file in sorted(files.items())}
        complete = {name: _complete(name, own) for name in own}
        for name, recipe in complete.items():
            for option in recipe.option:
                if option.id not in self.options:
                    message = _("The recipe {file} names an option that options.toml does not describe: {option}")
                    raise WizardError(message.format(file=files[name], option=option.id), ExitCode.USAGE)
        return complete

    @cached_property
    def releases(self) -> dict[str, Release]:
        """Releases by version, oldest first."""
        archives = self._entries(self._releases_files, lambda f: f.archive, lambda a: a.file)
        versions = sorted({archive.release for archive in archives.values()}, key=version_of)
        return {version: _release(version, archives.values()) for version in versions}

    @cached_property
    def series(self) -> dict[str, Series]:
        return self._entries(self._releases_files, lambda f: f.series, lambda series: series.id)

    @cached_property
    def options(self) -> dict[str, ConfigureOption]:
        return self._entries(self._files("options.toml", _OptionsFile), lambda f: f.option, lambda option: option.id)

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        files = self._files("mca.toml", _ParametersFile)
        return self._entries(files, lambda f: f.parameter, lambda parameter: parameter.name)

    @cached_property
    def claims(self) -> dict[int, Claim]:
        """The guide's claims by number."""
        return self._entries(self._document_files, lambda f: f.claim, lambda claim: claim.number)

    @cached_property
    def tables(self) -> dict[str, GuideTable]:
        return self._entries(self._document_files, lambda f: f.table, lambda table: table.id)

    @cached_property
    def expectations(self) -> tuple[Expectation, ...]:
        """In the order they are shown; the guide's own first."""
        entries = self._entries(self._document_files, lambda f: f.expectation, lambda e: (e.metric, e.who))
        return tuple(entries.values())

    def newest(self, series: str) -> Release | None:
        """The newest release of a series, such as 5.0."""
        of_series = [release for release in self.releases.values() if release.series == series]
        return of_series[-1] if of_series else None

    def series_of(self, release: str) -> Series:
        """The series of a release; for one that nobody described yet, the latest described one."""
        described = sorted(self.series.values(), key=lambda series: version_of(series.id))
        return self.series.get(series_id(release), described[-1])

    @cached_property
    def _releases_files(self) -> tuple[_ReleasesFile, ...]:
        return self._files("releases.toml", _ReleasesFile)

    @cached_property
    def _document_files(self) -> tuple[_DocumentFile, ...]:
        return self._files("document.toml", _DocumentFile)

    def _files(self, name: str, kind: type[T]) -> tuple[T, ...]:
        return tuple(_decode(folder / name, kind) for folder in self._folders if (folder / name).is_file())

    @staticmethod
    def _entries(
        files: Iterable[T], entries_of: Callable[[T], Iterable[Any]], key_of: Callable[[Any], Any]
    ) -> dict[Any, Any]:
        return {key_of(entry): entry for file in files for entry in entries_of(file)}


def load_recipes(config: Path | None = None) -> Recipes:
    """The shipped recipes, overlaid by those under `config`/recipes.

    Nothing is read yet; a file that is wrong raises WizardError when it is first asked for.
    """
    own = (config / "recipes",) if config else ()
    return Recipes(recipes_root(), *own)


def recipes_root() -> Path:
    """The folder with the shipped recipes: in the wheel, or in the checkout."""
    package = Path(__file__).resolve().parents[1]
    packaged = package / "recipes"
    return packaged if packaged.is_dir() else package.parents[1] / "recipes"


def version_of(text: str) -> Version:
    """A release number that can be compared. Raises WizardError when it is none."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text.replace("~", ""))
    except InvalidVersion:
        message = _("{text} is not a release number; give one such as 5.0.11").format(text=repr(text))
        raise WizardError(message, ExitCode.USAGE) from None


def _is_before(release: str, other: str) -> bool:
    """By numbers alone: a candidate of 6.0.0 has the options of 6.0.0. False when there is no other."""
    return bool(other) and version_of(release).release < version_of(other).release


def series_id(release: str) -> str:
    """The series of a release: 4.1 for 4.1.8."""
    version = version_of(release)
    return f"{version.major}.{version.minor}"


def fits(values: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    """True when each fact in `conditions` has the wanted value, or one of the wanted list.

    A wanted text is a pattern of fnmatch, and fits no unknown fact: `*` fits whatever is known. A fact that
    is itself a list fits when one of its values does.
    """
    for fact, wanted in conditions.items():
        allowed = wanted if isinstance(wanted, list) else [wanted]
        value = values.get(fact)
        found = value if isinstance(value, (list, tuple)) else [value]
        if not any(_fits_one(one, pattern) for one in found for pattern in allowed):
            return False
    return True


def _fits_one(value: object, wanted: object) -> bool:
    if isinstance(wanted, str):
        return value is not None and fnmatchcase(str(value), wanted)
    return value == wanted


def _decode(file: Path, kind: type[T]) -> T:
    import msgspec

    try:
        return msgspec.toml.decode(file.read_bytes(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        message = _("The recipe {file} cannot be used: {error}").format(file=file, error=error)
        raise WizardError(message, ExitCode.USAGE) from error


def _complete(name: str, own: Mapping[str, Recipe], seen: tuple[str, ...] = ()) -> Recipe:
    """The recipe with its id, and with what it inherits from the one it is based on."""
    from msgspec.structs import replace

    recipe = replace(own[name], id=name)
    if not recipe.based_on:
        return recipe
    if recipe.based_on not in own or recipe.based_on in (*seen, name):
        message = _("The recipe {name} cannot be based on {base}; name one of: {known}").format(
            name=name, base=recipe.based_on, known=", ".join(sorted(set(own) - {name}))
        )
        raise WizardError(message, ExitCode.USAGE)
    base = _complete(recipe.based_on, own, (*seen, name))
    options = {option.id: option for option in (*base.option, *recipe.option)}
    return replace(recipe, option=tuple(options.values()), prefer=recipe.prefer or base.prefer)


def _release(version: str, archives: Iterable[Archive]) -> Release:
    own = [archive for archive in archives if archive.release == version]
    own.sort(key=lambda archive: (-min(len(archive.sources), 2), not archive.file.endswith(".bz2")))
    return Release(version, series_id(version), tuple(own))
