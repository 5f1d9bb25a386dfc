"""The plan as a shell script: it does the same with plain tools, and quotes whatever it is given."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.choose.boxes import box
from tests.core.fakes import context_in

from mpiwizard.core.choose.model import Choice
from mpiwizard.core.configure import make_plan, script
from mpiwizard.core.configure.model import Plan
from mpiwizard.core.context import Context, Wishes
from mpiwizard.core.recipes import load_recipes

RECIPES = load_recipes()
MINIATURE = Path(__file__).parents[2] / "miniature" / "openmpi-5.0.11.tar.xz"
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not here")


def plan_with(context: Context, wishes: Wishes, release: str = "5.0.11", source: str = "release") -> Plan:
    choice = Choice("generic", release, source, f"Open MPI {release}")
    return make_plan(context, box(), RECIPES, choice, wishes)


def bash(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", *arguments], input=text, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("source", ["release", "distro", "archive"])
def test_the_script_of_every_source_is_sound_bash(tmp_path: Path, source: str) -> None:
    wishes = Wishes(archive="/x/it's.tar.gz", prefix="/opt/mpi")
    text = script(plan_with(context_in(tmp_path), wishes, source=source))
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in text
    checked = bash(text, "-n")
    assert (checked.returncode, checked.stderr) == (0, "")


@settings(max_examples=40, deadline=None)
@given(
    archive=st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1),
    title=st.text(st.characters(exclude_categories=("Cs",))),
)
def test_whatever_is_in_a_name_stays_a_name(archive: str, title: str) -> None:
    choice = Choice("generic", "5.0.11", "archive", title)
    wishes = Wishes(archive=f"/x/{archive}", prefix="/opt/mpi")
    plan = make_plan(context_in(Path("/nowhere")), box(), RECIPES, choice, wishes)
    lines = plan.step("fetch").script
    told = subprocess.run(
        ["bash", "-c", "\n".join([*lines, 'printf %s "$archive"'])],
        capture_output=True, timeout=30, check=True,
    )  # fmt: skip
    assert told.stdout.decode() == plan.wishes.archive
    head = script(plan).partition("set -euo pipefail")[0]
    assert all(line.startswith("#") for line in head.splitlines())


def test_it_builds_and_installs_a_real_project(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    digest = hashlib.sha256(MINIATURE.read_bytes()).hexdigest()
    wishes = Wishes(archive=str(MINIATURE), sha256=digest, prefix=f"{tmp_path}/mpi")
    done = bash(script(plan_with(context, wishes, source="archive")))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mpi" / "lib" / "libminiature.a").is_file()
    assert f"Next: mpiwizard validate --prefix {tmp_path}/mpi" in done.stdout


def test_variables_of_the_shell_do_not_reach_the_build(tmp_path: Path) -> None:
    text = script(plan_with(context_in(tmp_path), Wishes(prefix="/opt/mpi")))
    head = text.partition("# fetch:")[0]
    environment = {"PATH": "/usr/bin:/bin", "CFLAGS": "-O0", "MAKEFLAGS": "-n", "LD_LIBRARY_PATH": "/x", "TZ": "UTC"}
    told = subprocess.run(
        ["bash", "-c", f"declare -rx FIXED=1\n{head}env"],
        env=environment, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    names = {line.partition("=")[0] for line in told.stdout.splitlines()}
    assert {"PATH", "TZ", "FIXED"} <= names
    assert not names & {"CFLAGS", "MAKEFLAGS", "LD_LIBRARY_PATH"}


def test_it_ends_at_an_archive_with_another_sum(tmp_path: Path) -> None:
    wishes = Wishes(archive=str(MINIATURE), sha256="0" * 64, prefix=f"{tmp_path}/mpi")
    done = bash(script(plan_with(context_in(tmp_path), wishes, source="archive")))
    assert done.returncode == 1
    assert "0" * 64 in done.stderr
    assert MINIATURE.is_file() and not (tmp_path / "mpi").exists()


@needs_curl
def test_it_fetches_a_release_from_a_mirror_and_refuses_a_wrong_one(tmp_path: Path) -> None:
    archive = RECIPES.releases["5.0.11"].archive
    served = tmp_path / "mirror" / "v5.0" / archive.file
    served.parent.mkdir(parents=True)
    served.write_bytes(MINIATURE.read_bytes())
    wishes = Wishes(mirror=(tmp_path / "mirror").as_uri(), prefix=f"{tmp_path}/mpi")
    done = bash(script(plan_with(context_in(tmp_path), wishes)))
    assert done.returncode == 1
    assert archive.sha256 in done.stderr and hashlib.sha256(MINIATURE.read_bytes()).hexdigest() in done.stderr
    assert list((tmp_path / "cache" / "downloads").iterdir()) == [], "or the next start would find it again"


def test_the_release_is_fetched_from_its_address_with_its_sum(tmp_path: Path) -> None:
    text = script(plan_with(context_in(tmp_path), Wishes(prefix="/opt/mpi"), release="4.1.8"))
    archive = RECIPES.releases["4.1.8"].archive
    assert archive.url in text and archive.sha256 in text


def test_the_script_runs_the_very_commands_of_the_plan(tmp_path: Path) -> None:
    plan = plan_with(context_in(tmp_path), Wishes(prefix="/opt/mpi"))
    text = script(plan)
    assert plan.configure_line in text
    assert re.search(r"^CONFIG_SHELL=\S+ LC_ALL=C.UTF-8 make -j2$", text, re.M)


def test_the_distributions_source_is_fetched_without_touching_etc(tmp_path: Path) -> None:
    text = script(plan_with(context_in(tmp_path), Wishes(prefix="/opt/mpi"), "4.1.4", "distro"))
    assert not re.search(r">\s*\"?/etc", text)
    assert "Dir::Etc::Parts /dev/null" in text, "hooks of the system do not run"
    assert "--download-only" in text and "sudo" not in text
