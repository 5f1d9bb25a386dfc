"""The plan's options: every one with its reason, none that a release does not know, conflicts in their row."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.choose.boxes import box
from tests.core.fakes import context_in

from mpiwizard.core.choose.model import Choice
from mpiwizard.core.configure import make_plan
from mpiwizard.core.configure.model import Option, Plan
from mpiwizard.core.configure.options import plan_options
from mpiwizard.core.context import Wishes
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.recipes import load_recipes

RECIPES = load_recipes()
FORTRAN = {"tool_fortran": {"path": "/usr/bin/gfortran", "version": "12"}}


def choice_of(release: str = "4.1.8", recipe: str = "generic", source: str = "release") -> Choice:
    return Choice(recipe, release, source, f"Open MPI {release}")


def rows_of(
    machine: Machine,
    release: str = "4.1.8",
    recipe: str = "generic",
    matters: str = "soon",
    switches: dict[str, bool] | None = None,
) -> dict[str, Option]:
    rows = plan_options(machine, RECIPES, choice_of(release, recipe), matters, switches or {})
    return {row.id: row for row in rows}


@given(
    release=st.sampled_from(sorted(RECIPES.releases)),
    recipe=st.sampled_from(sorted(RECIPES.platforms)),
    matters=st.sampled_from(["soon", "speed", "match", "learn"]),
    switches=st.dictionaries(st.sampled_from([*RECIPES.options, "unheard-of"]), st.booleans()),
    facts=st.fixed_dictionaries(
        {},
        optional={
            "tool_fortran": st.just({"path": "/usr/bin/gfortran"}),
            "network_libfabric": st.just("/opt/amazon/efa"),
            "network_ucx": st.just("/usr"),
            "network_fabric": st.sampled_from([["efa_0: EFA"], ["mlx5_0: InfiniBand"], ["mlx5_0: RoCE"]]),
        },
    ),
)
def test_no_option_is_passed_that_the_release_does_not_know(
    release: str, recipe: str, matters: str, switches: dict[str, bool], facts: dict[str, object]
) -> None:
    rows = rows_of(box(**facts), release, recipe, matters, switches)
    passed = {row.id for row in rows.values() if row.enabled}
    for row in rows.values():
        known = RECIPES.options[row.id]
        assert not (row.enabled and known.objection(release)), row.argument
        assert not (row.enabled and "DIR" in row.argument), row.argument
        assert not (row.enabled and passed & set(known.excludes)), row.argument
        assert not (row.enabled and row.conflict)
        assert row.reason
    assert all(row.conflict for row in rows.values() if switches.get(row.id) and not row.enabled)


def test_without_a_fortran_compiler_its_bindings_cannot_be_switched_on() -> None:
    row = rows_of(box(), matters="learn", switches={"no-fortran": False})["no-fortran"]
    assert row.enabled and row.fixed
    assert row.reason == "There is no compiler for it on this machine."
    assert not row.conflict


def test_with_a_fortran_compiler_soon_leaves_the_bindings_out_and_learn_builds_them() -> None:
    assert rows_of(box(**FORTRAN), matters="soon")["no-fortran"].enabled
    row = rows_of(box(**FORTRAN), matters="learn")["no-fortran"]
    assert not row.enabled and not row.fixed and not row.conflict


def test_an_option_of_another_series_has_no_row() -> None:
    assert "no-verbs" not in rows_of(box(), "5.0.11")
    assert "internal-prrte" not in rows_of(box(), "4.1.8")
    assert rows_of(box(), "5.0.11")["internal-prrte"].enabled


def test_an_option_that_was_switched_on_and_cannot_be_passed_says_why() -> None:
    row = rows_of(box(), "5.0.11", switches={"no-verbs": True})["no-verbs"]
    assert not row.enabled
    assert row.conflict == "was removed in 5.0.0, this is 5.0.11"
    row = rows_of(box(), switches={"shared-mem": True})["shared-mem"]
    assert row.conflict == "no release of Open MPI has this option"


def test_options_that_exclude_each_other_conflict_in_the_row_that_came_later() -> None:
    rows = rows_of(box(), switches={"debug": True})
    assert rows["optimise"].enabled
    assert not rows["debug"].enabled and rows["debug"].conflict == "does not go with CFLAGS=-O2"
    assert rows_of(box(), switches={"debug": True, "optimise": False})["debug"].enabled


def test_an_option_can_be_switched_off_and_on_again() -> None:
    assert not rows_of(box(), switches={"no-oshmem": False})["no-oshmem"].enabled
    assert rows_of(box(), switches={"no-oshmem": True})["no-oshmem"].enabled


def test_libfabric_is_passed_for_efa_from_the_releases_on_that_build_with_it() -> None:
    efa = box(network_fabric=["efa_0: EFA"], network_libfabric="/opt/amazon/efa")
    assert rows_of(efa, "5.0.11", "aws")["ofi"].argument == "--with-ofi=/opt/amazon/efa"
    assert rows_of(efa, "5.0.11", "aws")["ofi"].enabled
    assert rows_of(efa, "4.1.8", "aws")["ofi"].enabled
    assert not rows_of(efa, "4.1.4", "aws")["ofi"].enabled
    wanted = rows_of(efa, "5.0.5", "aws", switches={"ofi": True})["ofi"]
    assert not wanted.enabled and wanted.conflict == "needs release 4.1.7 or 5.0.6 or newer"


def test_libfabric_is_not_passed_where_no_device_or_no_header_is() -> None:
    assert "ofi" not in rows_of(box(network_libfabric="/opt/amazon/efa"), "5.0.11", "aws")
    assert "ofi" not in rows_of(box(network_fabric=["efa_0: EFA"]), "5.0.11", "aws")
    wanted = rows_of(box(), "5.0.11", "aws", switches={"ofi": True})["ofi"]
    assert wanted.conflict == "needs a folder, and none was found on this machine"


def plan_of(folder: Path, switches: dict[str, bool]) -> Plan:
    return make_plan(context_in(folder), box(), RECIPES, choice_of(), Wishes(prefix="/opt/mpi"), switches)


def test_the_configure_line_holds_exactly_the_enabled_options(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {"no-romio": False})
    arguments = [option.argument for option in plan.options if option.enabled]
    assert list(plan.step("configure").argv[2:]) == arguments
    assert arguments[0] == "--prefix=/opt/mpi" and plan.options[0].fixed
    assert "--disable-io-romio" not in plan.configure_line


def test_the_prefix_cannot_be_switched(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {"prefix": False})
    assert plan.step("configure").argv[2] == "--prefix=/opt/mpi"


def test_a_switch_that_is_no_longer_known_is_left_out_and_told(tmp_path: Path) -> None:
    assert any("unheard-of" in note for note in plan_of(tmp_path, {"unheard-of": True}).notes)


def test_what_is_left_in_makes_the_plan_longer(tmp_path: Path) -> None:
    assert plan_of(tmp_path, {"no-romio": False}).seconds > plan_of(tmp_path, {}).seconds


@pytest.mark.parametrize("release", ["4.0.0", "4.1.4", "5.0.11"])
def test_every_row_tells_what_it_does(release: str) -> None:
    for row in rows_of(box(), release).values():
        assert row.effect and row.argument and "\n" not in row.effect + row.reason
