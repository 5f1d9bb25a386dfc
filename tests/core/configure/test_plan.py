"""A plan's steps: the exact commands, their folders, their environment, their time."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.choose.boxes import DISTRO, GIB, box, make_fact, with_fact

from mpiwizard.core.choose import choose, fallback_choice, require_choice
from mpiwizard.core.configure import make_plan
from mpiwizard.core.configure.model import Plan
from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.host import RealHost
from mpiwizard.core.recipes import load_recipes

RECIPES = load_recipes()
HALF_PAST = 1_796_052_630.0  # 2026-11-30 15:30:30 UTC
FOLDERS = Folders(Path("/home/eve/.local/state/mpiwizard"), Path("/home/eve/.cache/mpiwizard"), Path("/nowhere"))


def plan_for(machine: Any = None, environment: dict[str, str] | None = None, **wishes: Any) -> Plan:
    machine = machine or box()
    host = RealHost({"HOME": "/home/eve", "PATH": "/usr/bin:/bin", **(environment or {})})
    context = Context(host, FOLDERS, clock=lambda: HALF_PAST, offline=True)
    asked = Wishes(**wishes)
    choices = choose(machine, RECIPES, asked)
    choice = require_choice(choices, asked)
    return make_plan(context, machine, RECIPES, choice, asked, {}, fallback_choice(choices, choice, asked))


def test_the_steps_come_in_the_order_of_a_build() -> None:
    steps = [step.id for step in plan_for().steps]
    assert steps == ["fetch", "verify", "unpack", "configure", "make", "install", "tune", "validate"]


def test_configure_make_and_install_are_the_real_commands() -> None:
    plan = plan_for(release="4.1.4", source="distro")
    run = "/home/eve/.local/state/mpiwizard/runs/20261130-153030-4.1.4"
    assert plan.run == "20261130-153030-4.1.4"
    assert plan.step("configure").argv[:2] == ("/usr/bin/bash", f"{run}/source/configure")
    assert plan.step("make").argv == ("make", "-j2")
    assert plan.step("install").argv == ("make", "install")
    assert {plan.step(name).folder for name in ("configure", "make", "install")} == {f"{run}/build"}
    assert (plan.source_folder, plan.build_folder) == (f"{run}/source", f"{run}/build")


def test_all_other_steps_are_our_own_program_with_the_runs_folder() -> None:
    plan = plan_for()
    for name in ("fetch", "verify", "unpack", "tune", "validate"):
        step = plan.step(name)
        assert step.argv[:4] == (sys.executable, "-m", "mpiwizard.worker", "step")
        assert step.argv[4:] == (name, step.folder) and Path(step.folder).name == plan.run


def test_make_goes_on_after_an_interruption_and_configure_starts_clean() -> None:
    safe = {step.id: step.safe_again for step in plan_for().steps}
    assert safe["make"] == "continue"
    assert safe["configure"] == "clean"
    assert {safe[name] for name in ("fetch", "verify", "unpack", "install", "tune", "validate")} == {"again"}


def test_builds_run_with_bash_and_a_plain_language_and_keep_their_path() -> None:
    environment = plan_for().step("configure").environment
    assert environment == {"CONFIG_SHELL": "/usr/bin/bash", "LC_ALL": "C.UTF-8"}
    assert plan_for(box(tool_bash=None)).step("configure").argv[0] == "/bin/bash"


def test_windows_folders_are_left_out_of_the_path_of_a_build() -> None:
    windows = ["/mnt/c/Program Files/x", "/mnt/c/y"]
    machine = box(platform_layer="wsl2", path_windows=windows)
    plan = plan_for(machine, {"PATH": f"/usr/bin:{windows[0]}:/bin:{windows[1]}"})
    assert plan.step("make").environment["PATH"] == "/usr/bin:/bin"


def test_a_compiler_the_person_named_is_handed_on() -> None:
    assert plan_for(environment={"CC": "clang"}).step("configure").environment["CC"] == "clang"


def test_the_prefix_is_named_after_the_release_unless_one_is_given() -> None:
    assert plan_for().prefix == "/home/eve/mpi/openmpi-5.0.11"
    assert plan_for(prefix="~/x/../mpi/").prefix == "/home/eve/mpi"


def test_jobs_are_the_persons_or_what_the_machine_bears() -> None:
    assert plan_for(jobs=7).step("make").argv == ("make", "-j7")
    assert plan_for(box(cpu_usable=8, memory_available=3 * GIB)).jobs == 3


def test_the_fallback_is_a_plan_of_the_same_run_with_the_other_source() -> None:
    plan = plan_for()
    assert plan.fallback is not None
    assert plan.fallback.run == plan.run
    assert plan.fallback.choice.source == "distro"
    assert plan.fallback.step("fetch").argv == plan.step("fetch").argv
    assert plan_for(source="release").fallback is None


def test_settings_for_jobs_are_told_where_the_build_and_the_release_have_what_they_need() -> None:
    efa = {"platform_provider": "aws", "network_fabric": ["efa_0: EFA"], "network_libfabric": "/opt/amazon/efa"}

    def told(release: str, **wishes: str) -> list[str]:
        return [note for note in plan_for(box(**efa), release=release, **wishes).notes if "--mca" in note]

    assert any(note.startswith("For a job: --mca mtl ofi.") for note in told("5.0.11"))
    assert not told("4.1.4"), "too old for this libfabric, so it is built without"
    assert [note.split()[4] for note in told("4.1.8", recipe="ci")] == ["rmaps_base_oversubscribe"]
    assert [note.split()[4] for note in told("5.0.11", recipe="ci")] == ["rmaps_default_mapping_policy"]


def test_a_setting_of_an_own_recipe_needs_no_description(tmp_path: Path) -> None:
    (tmp_path / "recipes" / "platforms").mkdir(parents=True)
    (tmp_path / "recipes" / "platforms" / "site.toml").write_text(
        'title = "Site"\nsummary = "Ours"\nweight = 1\nbased_on = "generic"\n'
        '[[setting]]\nname = "coll_site_fast"\nvalue = "1"\nreason = "Ours."\n'
    )
    context = Context(RealHost({"HOME": "/home/eve"}), FOLDERS, clock=lambda: HALF_PAST, offline=True)
    recipes, asked = load_recipes(tmp_path), Wishes(recipe="site")
    plan = make_plan(context, box(), recipes, choose(box(), recipes, asked)[0], asked)
    assert "For a job: --mca coll_site_fast 1. Ours." in plan.notes


def test_the_plans_time_is_the_sum_of_its_steps_and_every_step_ends_some_day() -> None:
    plan = plan_for()
    assert plan.seconds == pytest.approx(sum(step.seconds for step in plan.steps))
    assert all(step.deadline >= 600 and step.deadline > 5 * step.seconds for step in plan.steps)
    assert plan.step("make").deadline == 4 * 3600


def test_an_archive_is_named_by_its_whole_path(tmp_path: Path) -> None:
    machine = box(source_archive={"release": "4.1.6", "file": "x.tar.gz"})
    named = Path(plan_for(machine, archive=os.path.relpath(tmp_path / "x.tar.gz")).wishes.archive)
    assert named.is_absolute() and named.resolve() == (tmp_path / "x.tar.gz").resolve()


def test_missing_programs_come_with_the_command_that_installs_them() -> None:
    machine = with_fact(box(), make_fact("tool.make", None, state="problem", action="apt-get install make"))
    assert plan_for(machine).packages == {"make": "apt-get install make"}


def test_a_release_nobody_described_can_still_be_planned() -> None:
    plan = plan_for(box(source_distro={**DISTRO, "release": "6.0.0rc2"}), source="distro")
    assert "--disable-io-romio" not in plan.configure_line
    assert "--with-prrte=internal" in plan.configure_line
    assert plan.seconds > 0 and plan.disk > 0


@pytest.mark.parametrize("recipe", sorted(RECIPES.platforms))
def test_a_plan_survives_writing_and_reading(recipe: str) -> None:
    plan = plan_for(recipe=recipe)
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


def test_a_second_source_is_not_tried_where_its_folder_holds_other_files(tmp_path: Path) -> None:
    (tmp_path / "mpi" / "openmpi-4.1.4").mkdir(parents=True)
    (tmp_path / "mpi" / "openmpi-4.1.4" / "mine").touch()
    plan = plan_for(environment={"HOME": str(tmp_path)})
    assert plan.fallback is None
    assert any("No second source" in note for note in plan.notes)
