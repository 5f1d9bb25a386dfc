"""Choose ranks the ways to an MPI by what matters, gives each its reasons, and names what cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.choose.boxes import GIB, box

from mpiwizard.core.choose import choose, fallback_choice, matching_recipe, require_choice
from mpiwizard.core.choose.estimate import default_jobs, estimate, left_in
from mpiwizard.core.choose.model import Choice
from mpiwizard.core.choose.options import wanted_options
from mpiwizard.core.context import Wishes
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.recipes import load_recipes

RECIPES = load_recipes()


def ways(choices: tuple[Choice, ...]) -> list[tuple[str, str]]:
    return [(choice.release, choice.source) for choice in choices]


# --- recipe --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "recipe"),
    [
        ({}, "virtual-machine"),
        ({"platform_virtualisation": None}, "generic"),
        ({"platform_virtualisation": "none"}, "bare-metal"),
        ({"platform_layer": "wsl2", "platform_virtualisation": "hyper-v"}, "wsl2"),
        ({"platform_provider": "aws"}, "aws"),
        ({"platform_provider": "azure", "platform_virtualisation": "hyper-v"}, "azure"),
        ({"platform_provider": "google"}, "google"),
        ({"platform_provider": "alibaba"}, "alibaba"),
        ({"platform_provider": "aws", "platform_virtualisation": "none"}, "aws"),
        ({"platform_provider": "aws", "platform_layer": "docker"}, "container"),
        ({"platform_provider": "hetzner"}, "virtual-machine"),
        ({"platform_layer": "wsl1", "platform_virtualisation": "none"}, "generic"),
    ],
)
def test_the_weightiest_matching_recipe_is_taken(facts: dict[str, object], recipe: str) -> None:
    assert matching_recipe(box(**facts), RECIPES, Wishes()).id == recipe


def test_the_person_may_name_the_recipe() -> None:
    choices = choose(box(), RECIPES, Wishes(recipe="wsl2"))
    assert {choice.recipe for choice in choices} == {"wsl2"}


# --- rank ----------------------------------------------------------------------------------------------


def test_soon_takes_the_newest_of_the_releases_that_take_about_as_long() -> None:
    choices = choose(box(), RECIPES, Wishes(matters="soon"))
    assert ways(choices) == [("5.0.11", "release"), ("4.1.8", "release"), ("4.1.4", "distro")]
    assert choices[0].minutes - choices[1].minutes < 5


@pytest.mark.parametrize("processors", range(1, 65))
def test_a_minute_more_never_outweighs_the_newer_release(processors: int) -> None:
    best, second, *_others = choose(box(cpu_usable=processors, memory_available=64 * GIB), RECIPES, Wishes())
    assert best.minutes - second.minutes > 5 or best.release == "5.0.11"


def test_soon_takes_the_quicker_release_where_the_newer_one_takes_far_longer(tmp_path: Path) -> None:
    file = tmp_path / "recipes" / "releases.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        '[[series]]\nid = "5.0"\ntitle = "slow"\ncompile_steps = 1\nconfigure_seconds = 900\n'
        'make_seconds = 560\ninstall_seconds = 25\ndisk = 1\ndisk_kept = 1\nbasis = "made up"\n'
    )
    assert ways(choose(box(), load_recipes(tmp_path), Wishes(matters="soon")))[0] == ("4.1.8", "release")


def test_speed_takes_the_newest_release() -> None:
    assert ways(choose(box(), RECIPES, Wishes(matters="speed")))[0] == ("5.0.11", "release")


def test_match_takes_what_is_here_already_then_the_distributions() -> None:
    assert ways(choose(box(), RECIPES, Wishes(matters="match")))[0] == ("4.1.4", "distro")
    here = [{"prefix": "/opt/mpi", "kind": "Open MPI", "release": "5.0.11"}]
    assert ways(choose(box(mpi_installations=here), RECIPES, Wishes(matters="match")))[0] == ("5.0.11", "release")


def test_learn_takes_the_series_of_the_guide_and_leaves_nothing_out_that_it_builds() -> None:
    choices = choose(box(tool_fortran={"path": "/usr/bin/gfortran"}), RECIPES, Wishes(matters="learn"))
    assert choices[0].release == "4.1.8"
    assert not any("mpif.h" in lost for lost in choices[0].lost)
    soon = choose(box(tool_fortran={"path": "/usr/bin/gfortran"}), RECIPES, Wishes(matters="soon"))
    assert any("mpif.h" in lost for lost in soon[0].lost)
    assert choices[0].minutes > soon[0].minutes


@pytest.mark.parametrize("matters", ["soon", "speed", "match", "learn"])
def test_what_cannot_be_had_comes_last_with_its_reason(matters: str) -> None:
    choices = choose(box(source_release=None), RECIPES, Wishes(matters=matters))
    assert [choice.available for choice in choices] == [True, False, False]
    assert choices[0].source == "distro"
    assert all(choice.why_not == "source.release is not here" for choice in choices[1:])


@pytest.mark.parametrize(("architecture", "best"), [("armv7l", "4.1.8"), ("i686", "4.1.8"), ("aarch64", "5.0.11")])
def test_a_release_that_cannot_be_built_for_this_processor_is_not_offered(architecture: str, best: str) -> None:
    choices = choose(box(cpu_architecture=architecture), RECIPES, Wishes())
    assert choices[0].release == best
    unfit = [choice for choice in choices if not choice.available]
    assert all(choice.release == "5.0.11" and architecture in choice.why_not for choice in unfit)
    assert len(unfit) == (best != "5.0.11")


def test_the_first_reason_of_the_best_says_why_it_is_first() -> None:
    best = choose(box(cpu_usable=4), RECIPES, Wishes())[0]
    assert best.reasons[0] == f"Ready soon: about {best.minutes:.0f} minutes until it is validated."


def test_an_mpi_that_is_here_is_mentioned_with_the_best_choice() -> None:
    here = [{"prefix": "/usr", "kind": "Open MPI", "release": "4.1.4"}]
    reasons = choose(box(mpi_installations=here), RECIPES, Wishes())[0].reasons
    assert "Open MPI 4.1.4 is in /usr already." in reasons


def test_every_choice_has_reasons_a_size_and_claims_that_exist() -> None:
    for name in RECIPES.platforms:
        for choice in choose(box(), RECIPES, Wishes(recipe=name)):
            assert all(reason and "\n" not in reason for reason in choice.reasons)
            assert len(choice.reasons) >= 2 and choice.disk > 1e8 and choice.minutes > 1
            assert set(choice.claims) <= set(RECIPES.claims)


# --- wishes --------------------------------------------------------------------------------------------


def test_a_named_source_leaves_the_others_out() -> None:
    assert ways(choose(box(), RECIPES, Wishes(source="distro"))) == [("4.1.4", "distro")]
    assert {choice.source for choice in choose(box(), RECIPES, Wishes(source="release"))} == {"release"}


def test_a_named_release_is_offered_by_whoever_has_it() -> None:
    choices = choose(box(), RECIPES, Wishes(release="4.1.4"))
    assert ways(choices) == [("4.1.4", "release"), ("4.1.4", "distro")]
    choices = choose(box(), RECIPES, Wishes(release="5.0.3"))
    assert [choice.available for choice in choices] == [True, False]
    assert choices[1].why_not == "the distribution offers 4.1.4"


def test_a_given_archive_is_the_only_way() -> None:
    archive = {"release": "4.1.6", "file": "x.tar.gz", "sha256": "a" * 64}
    assert ways(choose(box(source_archive=archive), RECIPES, Wishes(archive="x.tar.gz"))) == [("4.1.6", "archive")]


def test_a_release_that_only_the_distribution_has_may_be_named() -> None:
    distro = {"release": "6.0.0rc2", "file": "openmpi_6.0.0~rc2.orig.tar.xz"}
    best, other = choose(box(source_distro=distro), RECIPES, Wishes(release="6.0.0rc2"))
    assert (best.release, best.source, best.available) == ("6.0.0rc2", "distro", True)
    assert (other.source, other.available) == ("release", False)
    assert other.why_not == "where 6.0.0rc2 is, and its sum, is not known"


@pytest.mark.parametrize(
    ("wishes", "named"),
    [
        (Wishes(recipe="wsl3"), "wsl2"),
        (Wishes(release="4.1.99"), "4.1.8"),
        (Wishes(release="5.0"), "5.0.11"),
        (Wishes(source="ftp"), "distro"),
        (Wishes(matters="fun"), "soon"),
        (Wishes(source="archive"), "--archive"),
        (Wishes(jobs=-1), "--jobs 1"),
    ],
)
def test_a_wish_for_what_does_not_exist_names_what_does(wishes: Wishes, named: str) -> None:
    with pytest.raises(WizardError, match=named) as error:
        choose(box(), RECIPES, wishes)
    assert error.value.exit_code == ExitCode.USAGE


def test_without_any_source_the_reasons_are_told_and_what_to_do() -> None:
    choices = choose(box(source_release=None, source_distro=None), RECIPES, Wishes())
    with pytest.raises(WizardError, match=r"release: source\.release is not here.*--archive FILE") as error:
        require_choice(choices, Wishes())
    assert error.value.exit_code == ExitCode.NOT_POSSIBLE_HERE


def test_the_fallback_is_the_best_of_another_source_and_only_when_none_was_named() -> None:
    choices = choose(box(), RECIPES, Wishes())
    fallback = fallback_choice(choices, require_choice(choices, Wishes()), Wishes())
    assert fallback is not None and fallback.source == "distro"
    assert fallback_choice(choices, choices[0], Wishes(source="release")) is None


# --- estimates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "jobs"),
    [
        ({"cpu_usable": 8, "memory_available": 64 * GIB}, 8),
        ({"cpu_usable": 8, "memory_available": 3 * GIB}, 3),
        ({"cpu_usable": 8, "memory_available": 64 * GIB, "memory_limit": 2 * GIB}, 2),
        ({"cpu_usable": 8, "memory_available": GIB // 2}, 1),
        ({"cpu_usable": 8, "memory_available": None}, 8),
        ({"cpu_usable": None}, 1),
    ],
)
def test_jobs_are_bounded_by_processors_and_by_memory(facts: dict[str, object], jobs: int) -> None:
    assert default_jobs(box(**facts)) == jobs


def test_only_make_gets_shorter_with_more_jobs() -> None:
    series = RECIPES.series["4.1"]
    one, four = estimate(series, (), 1), estimate(series, (), 4)
    assert four.pop("make") == pytest.approx(one.pop("make") / 4)
    assert four == one


def test_what_a_lean_option_saves_comes_back_when_it_is_off() -> None:
    everything = {option.id for option in RECIPES.platforms["generic"].option}
    assert left_in(RECIPES, everything) == ()
    assert {option.id for option in left_in(RECIPES, everything - {"no-romio", "silent-rules"})} == {"no-romio"}


def test_the_lean_recipe_of_4_1_is_the_one_that_was_measured() -> None:
    recipe = RECIPES.platforms["generic"]
    arguments = [RECIPES.options[name].argument for name in wanted_options(box(), RECIPES, recipe, "4.1.4", "soon")]
    assert arguments == [
        "--enable-mpi-fortran=no", "--disable-oshmem", "--disable-io-romio", "--without-verbs", "--disable-dlopen",
        "--disable-dependency-tracking", "--enable-silent-rules", "--with-hwloc=internal",
        "--with-libevent=internal", "--with-pmix=internal", "CFLAGS=-O2",
    ]  # fmt: skip


def test_an_own_recipe_that_matches_more_closely_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "recipes" / "platforms" / "cluster.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        'title = "Cluster"\nsummary = "Ours"\nweight = 99\nbased_on = "generic"\n'
        '[match]\n"cpu.usable" = [2, 4]\n'
        '[[prefer]]\nsource = "release"\nrelease = "4.0"\nreason = "As on the cluster."\n'
    )
    choices = choose(box(), load_recipes(tmp_path), Wishes())
    assert ways(choices)[0] == ("4.0.7", "release")
    assert "As on the cluster." in choices[0].reasons
