"""Before anything starts: each thing that would fail is told in one sentence, with the right exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.core.choose.boxes import box, make_fact, with_fact
from tests.core.fakes import context_in

from mpiwizard.core.build.manifest import begin_manifest
from mpiwizard.core.choose.model import Choice
from mpiwizard.core.configure import check_plan, make_plan
from mpiwizard.core.configure.model import Plan
from mpiwizard.core.configure.preflight import checked_prefix
from mpiwizard.core.context import Context, Wishes
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.host import RealHost
from mpiwizard.core.recipes import load_recipes

RECIPES = load_recipes()
CHOICE = Choice("generic", "4.1.8", "release", "Open MPI 4.1.8")
HOST = RealHost({"HOME": "/home/eve"})


def plan_in(context: Context, prefix: str) -> Plan:
    return make_plan(context, box(), RECIPES, CHOICE, Wishes(prefix=prefix))


def refusal(context: Context, plan: Plan, machine: Machine | None = None) -> tuple[ExitCode, str]:
    with pytest.raises(WizardError) as error:
        check_plan(context, machine or box(), plan)
    assert "\n" not in str(error.value)
    return error.value.exit_code, str(error.value)


def test_a_good_plan_passes_and_leaves_nothing_behind(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    check_plan(context, box(), plan_in(context, f"{tmp_path}/new/prefix"))
    assert list(tmp_path.iterdir()) == []


# --- prefix --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "told"),
    [
        ("/opt/my mpi", "a blank"),
        ("/opt/a:b", "a colon"),
        ("/opt/#1", "'#'"),
        ("/opt/$x", "'$'"),
        ("/opt/a,b", "','"),
        ("/opt/it's", '"\'"'),
        ("/opt/a\nb", "'\\n'"),
        ("/opt/a\0b", "'\\x00'"),
        ("opt/mpi", "not an absolute path"),
        ("~eve/mpi", "not an absolute path"),
        ("/" + 300 * "x", "too long"),
        (600 * "/a/b", "too long"),
        ("", "not an absolute path"),
        ("/", "a folder of its own"),
        ("//.././", "a folder of its own"),
    ],
)
def test_a_prefix_no_build_could_bear_is_a_wrong_use(prefix: str, told: str) -> None:
    with pytest.raises(WizardError) as error:
        checked_prefix(prefix, HOST)
    assert error.value.exit_code == ExitCode.USAGE
    assert told in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("prefix", "path"),
    [
        ("/opt/mpi/", "/opt/mpi"),
        ("~", "/home/eve"),
        ("~/mpi", "/home/eve/mpi"),
        ("/opt/./a/../mpi-5.0+x@y_z", "/opt/mpi-5.0+x@y_z"),
        ("/home/jürgen/mpi", "/home/jürgen/mpi"),
        ("//opt/mpi", "/opt/mpi"),
    ],
)
def test_a_prefix_becomes_a_plain_absolute_path(prefix: str, path: str) -> None:
    assert checked_prefix(prefix, HOST) == path


@given(st.text())
@example("/" + "x" * 5000)
@example("/a/" * 2000)
def test_no_prefix_whatever_raises_anything_but_a_sentence(text: str) -> None:
    context = context_in(Path("/nowhere"))
    for prefix in (text, f"/{text}"):
        try:
            check_plan(context, box(), plan_in(context, prefix or "/"))
        except WizardError as error:
            assert error.exit_code in (ExitCode.USAGE, ExitCode.NOT_POSSIBLE_HERE)
            assert "\n" not in str(error)


def test_a_prefix_that_cannot_be_written_names_the_place_and_what_to_do(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    code, text = refusal(context, plan_in(context, "/proc/mpi"))
    assert code == ExitCode.NOT_POSSIBLE_HERE
    assert "/proc" in text and "--prefix" in text


def test_a_folder_with_files_of_others_is_not_built_over(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    (tmp_path / "mpi").mkdir()
    (tmp_path / "mpi" / "letters.txt").touch()
    code, text = refusal(context, plan_in(context, f"{tmp_path}/mpi"))
    assert code == ExitCode.NOT_POSSIBLE_HERE and "did not put there" in text


def test_an_empty_folder_and_an_installation_of_ours_may_be_used(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    (tmp_path / "empty").mkdir()
    begin_manifest(tmp_path / "ours")
    for name in ("empty", "ours"):
        check_plan(context, box(), plan_in(context, f"{tmp_path}/{name}"))


def test_a_prefix_that_is_a_file_is_refused(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    (tmp_path / "file").touch()
    assert "is a file" in refusal(context, plan_in(context, f"{tmp_path}/file"))[1]
    assert refusal(context, plan_in(context, f"{tmp_path}/file/below"))[0] == ExitCode.NOT_POSSIBLE_HERE


# --- the box -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["cc", "make", "perl"])
def test_a_missing_tool_is_named_with_the_exact_command(tmp_path: Path, tool: str) -> None:
    context = context_in(tmp_path)
    fact = make_fact(f"tool.{tool}", None, state="problem", action=f"sudo apt-get install {tool}")
    machine = with_fact(box(), fact)
    code, text = refusal(context, plan_in(context, f"{tmp_path}/mpi"), machine)
    assert code == ExitCode.NOT_POSSIBLE_HERE
    assert tool in text and text.endswith(f"sudo apt-get install {tool}")


def test_a_missing_bash_stops_a_build_although_it_is_no_problem_for_the_rest(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    machine = with_fact(box(), make_fact("tool.bash", None, state="attention", action="apk add bash"))
    assert refusal(context, plan_in(context, f"{tmp_path}/mpi"), machine)[1].endswith("apk add bash")


def test_a_blank_in_the_folder_of_the_build_names_the_variable_that_moves_it(tmp_path: Path) -> None:
    context = context_in(tmp_path / "my home")
    code, text = refusal(context, plan_in(context, f"{tmp_path}/mpi"))
    assert code == ExitCode.NOT_POSSIBLE_HERE
    assert "XDG_STATE_HOME" in text and "a blank" in text


def test_a_folder_of_ours_that_cannot_be_written_names_its_variable(tmp_path: Path) -> None:
    context = context_in(Path("/proc/nobody"))
    code, text = refusal(context, plan_in(context, f"{tmp_path}/mpi"))
    assert code == ExitCode.NOT_POSSIBLE_HERE and "XDG_STATE_HOME" in text


def test_a_disk_too_small_names_what_is_free_and_what_is_needed(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    plan = replace(plan_in(context, f"{tmp_path}/mpi"), disk=1 << 60)
    code, text = refusal(context, plan)
    assert code == ExitCode.NOT_POSSIBLE_HERE
    assert "free" in text and "PB are needed" in text


def test_build_and_installation_on_one_disk_are_added_up(tmp_path: Path) -> None:
    import shutil

    context = context_in(tmp_path)
    half = int(shutil.disk_usage(tmp_path).free * 0.6)
    plan = replace(plan_in(context, f"{tmp_path}/mpi"), disk=half, disk_kept=0)
    check_plan(context, box(), plan)
    assert refusal(context, replace(plan, disk_kept=half))[0] == ExitCode.NOT_POSSIBLE_HERE


def test_a_build_folder_no_program_can_be_started_from_is_told(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    fact = make_fact(
        "storage.build", {"path": "/x", "free": 1 << 40, "type": "ext4"}, state="problem",
        meaning="No program can be started from here.", action="Set XDG_STATE_HOME to a local folder.",
    )  # fmt: skip
    code, text = refusal(context, plan_in(context, f"{tmp_path}/mpi"), with_fact(box(), fact))
    assert code == ExitCode.NOT_POSSIBLE_HERE and "No program can be started" in text
