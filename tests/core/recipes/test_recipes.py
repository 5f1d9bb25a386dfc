"""What the recipes promise: all knowledge loads, agrees with itself, and a person's files overlay it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.recipes import MATTERS, Recipes, fits, load_recipes, recipes_root, version_of

RECIPES = load_recipes()
VERDICTS = {"correct", "wrong", "version-dependent", "dangerous", "unverifiable"}
METRICS = {
    "launcher-time", "whole-job-time", "init-time", "fork-exec-time", "latency", "bandwidth",
    "memory-bandwidth", "latency-between-hosts", "single-copy",
}  # fmt: skip


def test_every_kind_of_box_has_a_recipe() -> None:
    expected = {
        "wsl2", "aws", "azure", "google", "alibaba", "virtual-machine", "bare-metal", "container", "ci", "generic",
    }  # fmt: skip
    assert set(RECIPES.platforms) == expected


def test_every_archive_has_a_well_formed_sum_its_own_address_and_a_source() -> None:
    archives = [archive for release in RECIPES.releases.values() for archive in release.archives]
    assert len(archives) == 56
    assert len({archive.sha256 for archive in archives}) == len(archives)
    for archive in archives:
        assert re.fullmatch(r"[0-9a-f]{64}", archive.sha256), archive.file
        series = archive.release.rpartition(".")[0]
        assert archive.url == f"https://download.open-mpi.org/release/open-mpi/v{series}/{archive.file}"
        assert archive.file in (f"openmpi-{archive.release}.tar.bz2", f"openmpi-{archive.release}.tar.gz")
        assert archive.sources


def test_the_sum_the_guide_should_have_named_is_the_known_one() -> None:
    sums = {archive.file: archive.sha256 for archive in RECIPES.releases["4.1.5"].archives}
    assert sums["openmpi-4.1.5.tar.gz"] == "c018b127619d2a2a30c1931f316fc8a245926d0f5b4ebed4711f9695e7f70925"


def test_releases_are_ordered_by_number_not_by_letter() -> None:
    assert next(iter(RECIPES.releases)) == "4.0.0"
    assert list(RECIPES.releases)[-2:] == ["5.0.10", "5.0.11"]
    newest = RECIPES.newest("4.1")
    assert newest is not None and newest.version == "4.1.8"
    assert RECIPES.newest("3.1") is None


def test_the_first_archive_of_a_release_is_the_best_confirmed_then_the_smaller_one() -> None:
    assert RECIPES.releases["5.0.4"].archive.file.endswith(".bz2")
    for release in RECIPES.releases.values():
        assert min(len(release.archive.sources), 2) == max(min(len(a.sources), 2) for a in release.archives)


def test_every_release_belongs_to_a_described_series() -> None:
    assert {release.series for release in RECIPES.releases.values()} == set(RECIPES.series)
    assert RECIPES.series_of("6.0.0rc2").id == "5.0"


@pytest.mark.parametrize("name", sorted(RECIPES.platforms))
def test_a_recipe_names_only_options_parameters_claims_and_releases_that_are_known(name: str) -> None:
    recipe = RECIPES.platforms[name]
    assert recipe.title and recipe.summary and recipe.prefer
    for option in recipe.option:
        known = RECIPES.options[option.id]
        assert known.exists and known.advised, option.id
        assert set(option.matters) <= set(MATTERS)
        assert ("{value}" in known.argument) == bool(option.value_from), option.id
        assert any(not known.objection(release) for release in RECIPES.releases), option.id
    for setting in recipe.setting:
        assert RECIPES.parameters[setting.name].kind == "parameter"
        assert setting.option in {"", *(option.id for option in recipe.option)}
    for preference in recipe.prefer:
        assert preference.release in RECIPES.releases or preference.release in RECIPES.series
    for claim in (*recipe.claims, *(claim for one in recipe.prefer for claim in one.claims)):
        assert claim in RECIPES.claims


@pytest.mark.parametrize("name", sorted(RECIPES.platforms))
def test_a_recipe_passes_the_lean_options_wherever_their_release_knows_them(name: str) -> None:
    lean = {option.id for option in RECIPES.platforms["generic"].option}
    assert lean <= {option.id for option in RECIPES.platforms[name].option}


def test_options_refer_to_options_and_claims_that_exist() -> None:
    for option in RECIPES.options.values():
        assert set(option.excludes) <= set(RECIPES.options), option.id
        assert set(option.claims) <= set(RECIPES.claims), option.id
        assert bool(option.removed_in) == bool(option.after_removal), option.id
        assert option.after_removal in ("", "error", "warning", "accepted"), option.id
        assert option.id == "optimise" or option.argument.startswith("--"), option.id


@pytest.mark.parametrize(
    ("option", "release", "fine"),
    [
        ("no-verbs", "4.1.8", True),
        ("no-verbs", "5.0.0", False),
        ("internal-prrte", "4.1.8", False),
        ("internal-prrte", "5.0.0", True),
        ("no-romio", "5.0.11", True),
        ("no-romio", "6.0.0", False),
        ("no-romio", "6.0.0rc2", False),
        ("mpi-cxx", "5.0.3", False),
        ("shared-mem", "4.1.5", False),
        ("no-fortran", "4.0.0", True),
    ],
)
def test_an_option_objects_to_a_release_that_does_not_know_it(option: str, release: str, fine: bool) -> None:
    assert (RECIPES.options[option].objection(release) == "") is fine


@pytest.mark.parametrize(
    ("name", "release", "known"),
    [
        ("btl_vader_single_copy_mechanism", "4.1.4", True),
        ("btl_vader_single_copy_mechanism", "5.0.11", False),
        ("smsc", "5.0.11", True),
        ("smsc", "4.1.4", False),
    ],
)
def test_a_parameter_knows_its_releases(name: str, release: str, known: bool) -> None:
    assert RECIPES.parameters[name].known_to(release) is known


def test_a_replaced_parameter_names_one_that_is_described() -> None:
    for parameter in RECIPES.parameters.values():
        assert parameter.kind in ("parameter", "value", "option", "environment", "file")
        if re.fullmatch(r"[a-z]+_\w+", parameter.replaced_by):
            assert parameter.replaced_by in RECIPES.parameters


def test_all_claims_of_the_guide_are_judged() -> None:
    assert list(RECIPES.claims) == list(range(1, 59))
    stages = {"detect", "choose", "configure", "build", "tune", "validate", "troubleshoot"}
    for claim in RECIPES.claims.values():
        assert claim.stage in stages and claim.verdict in VERDICTS
        assert claim.verdict == "correct" or claim.correction, claim.number
        assert len(claim.statement) <= 160 and len(claim.correction) <= 170, claim.number


def test_the_tables_of_the_guide_are_whole_and_judged_by_claims() -> None:
    assert {name: len(table.row) for name, table in RECIPES.tables.items()} == {
        "environment": 2, "platforms": 3, "topology": 3, "metrics": 3,
    }  # fmt: skip
    for table in RECIPES.tables.values():
        for row in table.row:
            assert len(row.cells) == len(table.columns)
            assert row.claims and set(row.claims) <= set(RECIPES.claims)


def test_expectations_agree_with_the_guides_table_of_metrics() -> None:
    guide = {(e.metric, e.who): e.text for e in RECIPES.expectations if e.who.startswith("guide-")}
    for row in RECIPES.tables["metrics"].row:
        assert guide[row.metric, "guide-wsl2"] == row.cells[1]
        assert guide[row.metric, "guide-cloud"] == row.cells[2]


def test_an_expectation_has_a_known_metric_and_a_source_unless_it_says_so() -> None:
    for expectation in RECIPES.expectations:
        assert expectation.metric in METRICS and expectation.verdict in VERDICTS
        assert expectation.source or expectation.who.startswith("guide-")
        assert expectation.claim == 0 or expectation.claim in RECIPES.claims
        if expectation.low is not None and expectation.high is not None:
            assert 0 < expectation.low <= expectation.high


def test_nothing_of_one_machine_is_in_the_recipes() -> None:
    for file in sorted(recipes_root().rglob("*.toml")):
        assert not re.search(r"/(work|tmp|root)/", file.read_text(encoding="utf-8")), file.name


# --- a person's own files ------------------------------------------------------------------------------


def own_file(config: Path, name: str, text: str) -> Recipes:
    file = config / "recipes" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return load_recipes(config)


def test_an_own_recipe_comes_beside_the_shipped_ones(tmp_path: Path) -> None:
    recipes = own_file(
        tmp_path, "platforms/site.toml", 'title = "Site"\nsummary = "Ours"\nweight = 99\nbased_on = "aws"\n'
    )
    assert recipes.platforms["site"].id == "site"
    assert "ofi" in {option.id for option in recipes.platforms["site"].option}
    assert recipes.platforms["aws"] == RECIPES.platforms["aws"]


def test_an_own_entry_replaces_the_one_with_the_same_id_and_leaves_the_others(tmp_path: Path) -> None:
    recipes = own_file(
        tmp_path, "options.toml", '[[option]]\nid = "no-oshmem"\nargument = "--disable-oshmem"\neffect = "Ours."\n'
    )
    assert recipes.options["no-oshmem"].effect == "Ours."
    assert set(recipes.options) == set(RECIPES.options)


def test_no_config_folder_means_the_shipped_recipes(tmp_path: Path) -> None:
    assert set(load_recipes(tmp_path / "nowhere").platforms) == set(RECIPES.platforms)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("options.toml", '[[option]]\nid = "x"\nargument = 3\neffect = "e"\n', "$.option[0].argument"),
        ("options.toml", '[[option]]\nid = "x"\nargument = "y"\neffect = "e"\nnew = 1\n', "new"),
        ("mca.toml", "[[parameter]\n", "mca.toml"),
        ("platforms/x.toml", 'title = "x"\n', "summary"),
        ("platforms/x.toml", 'title = "x"\nsummary = "y"\nweight = 1\nbased_on = "x"\n', "based on"),
        ("platforms/x.toml", 'title = "x"\nsummary = "y"\nweight = 1\nbased_on = "nowhere"\n', "nowhere"),
        (
            "platforms/x.toml",
            'title = "x"\nsummary = "y"\nweight = 1\n[[option]]\nid = "magic"\nreason = "z"\n',
            "platforms/x.toml names an option that options.toml does not describe: magic",
        ),
    ],
)
def test_a_wrong_own_file_is_refused_with_its_name_and_place(tmp_path: Path, name: str, text: str, told: str) -> None:
    recipes = own_file(tmp_path, name, text)
    with pytest.raises(WizardError, match=re.escape(told)) as error:
        _ = (recipes.options, recipes.parameters, recipes.platforms)
    assert error.value.exit_code == ExitCode.USAGE
    assert "\n" not in str(error.value).strip()


# --- small rules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "wanted", "fit"),
    [
        ("wsl2", "wsl2", True),
        ("wsl2", ["docker", "wsl2"], True),
        (["a: EFA", "b: RoCE"], "*: EFA", True),
        ([], "*", False),
        (None, "*", False),
        (None, "none", False),
        ("/usr", "*", True),
        (2, 2, True),
        (2, "2", True),
    ],
)
def test_a_fact_fits_a_value_a_list_or_a_pattern(value: object, wanted: object, fit: bool) -> None:
    assert fits({"fact": value}, {"fact": wanted}) is fit


def test_no_conditions_always_fit_and_a_missing_fact_never_does() -> None:
    assert fits({}, {})
    assert not fits({}, {"fact": "x"})


@given(st.text())
def test_what_is_no_release_number_is_refused_in_one_sentence(text: str) -> None:
    try:
        version_of(text)
    except WizardError as error:
        assert error.exit_code == ExitCode.USAGE and "\n" not in str(error)


def test_a_candidate_comes_before_its_release() -> None:
    assert version_of("6.0.0~rc2") < version_of("6.0.0")
    assert version_of("5.0.9") < version_of("5.0.10")
