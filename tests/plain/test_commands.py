"""The command line as a person meets it: real processes, one sentence for each mistake, the right exit code."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.plain.conftest import TUI, Command
from tests.worker.conftest import MINIATURE

ARCHIVE = ("--offline", "--archive", str(MINIATURE))
PLAN = json.dumps(
    {
        "run": "20200101-000000-5.0.11", "prefix": "/nowhere/mpi", "jobs": 1, "source_folder": "/nowhere/source",
        "choice": {"recipe": "generic", "release": "5.0.11", "source": "archive", "title": "Open MPI 5.0.11"},
        "wishes": {}, "build_folder": "/nowhere/build", "options": [], "steps": [], "seconds": 1.0, "disk": 1,
        "disk_kept": 1, "packages": {},
    }
)  # fmt: skip


def assert_one_sentence(result: subprocess.CompletedProcess[str], status: int, *words: str) -> None:
    said = result.stderr.strip().splitlines()
    assert result.returncode == status, result.stderr
    assert "Traceback" not in result.stderr
    assert said[-1].startswith("mpiwizard"), result.stderr
    for word in words:
        assert word in said[-1]


VERBS = (
    "detect", "plan", "run", "runs", "attach", "resume", "stop", "tune", "validate", "doctor", "diagnose",
    "export", "uninstall",
)  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(mpiwizard: Command, verb: str) -> None:
    result = mpiwizard(verb, "--help")
    assert result.returncode == 0
    assert f"Example: mpiwizard {verb}" in " ".join(result.stdout.split())


def test_version_and_help_import_nothing_heavy(mpiwizard: Command) -> None:
    program = (
        "import sys; from mpiwizard.cli import main\n"
        "try: main([sys.argv[1]])\nexcept SystemExit: pass\n"
        "print(sorted(set(sys.modules) & {'textual', 'rich', 'psutil', 'pexpect', 'msgspec', 'httpx', 'asyncio'}))\n"
    )
    for argument in ("--version", "--help"):
        result = subprocess.run(
            [sys.executable, "-c", program, argument],
            capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(TUI)},
        )  # fmt: skip
        assert result.stdout.endswith("[]\n"), argument


def test_without_a_terminal_the_interface_says_so_in_one_sentence(mpiwizard: Command) -> None:
    assert_one_sentence(mpiwizard(), 2, "no terminal", "mpiwizard run --yes")


def test_run_without_consent_changes_nothing(mpiwizard: Command, tmp_path: Path) -> None:
    assert_one_sentence(mpiwizard("run", *ARCHIVE), 2, "--yes")
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("plan", "--recipe", "atari"), 2, ("atari", "wsl2")),
        (("plan", "--release", "9.9.9"), 2, ("9.9.9", "5.0.11")),
        (("plan", "--source", "floppy"), 2, ("floppy", "distro")),
        (("plan", "--jobs", "0"), 2, ("1 to 4096",)),
        (("plan", "--jobs", "many"), 2, ("many",)),
        (("plan", "--archive", "/none.tar.gz"), 2, ("/none.tar.gz",)),
        (("plan", "--archive", "x", "--source", "distro"), 2, ("exclude each other",)),
        (("plan", "--offline"), 4, ("--archive", "--offline")),
        (("frobnicate",), 2, ("frobnicate", "--help")),
        (("attach",), 2, ("no run yet",)),
        (("attach", "../../etc"), 2, ("not the name of a run",)),
        (("resume", "20200101-000000-4.1.4"), 2, ("mpiwizard runs",)),
        (("stop",), 2, ("no run yet",)),
        (("validate",), 2, ("--prefix",)),
        (("validate", "--prefix", "/none"), 4, ("/none",)),
        (("tune", "--prefix", "/none"), 4, ("/none",)),
        (("diagnose", "/none.log"), 2, ("/none.log",)),
        (("uninstall", "--prefix", "/none", "--yes"), 2, ("not installed by mpiwizard",)),
        (("uninstall", "--prefix", "/none"), 2, ("--yes",)),
    ],
)
def test_each_mistake_gets_one_sentence_and_its_exit_code(
    mpiwizard: Command, arguments: tuple[str, ...], status: int, words: tuple[str, ...]
) -> None:
    offline = () if "--offline" in arguments or arguments[0] != "plan" else ("--offline",)
    assert_one_sentence(mpiwizard(*arguments, *offline), status, *words)


@pytest.mark.parametrize(
    ("prefix", "status", "word"),
    [("/tmp/with a blank", 2, "blank"), ("/proc/mpi", 4, "/proc"), ("/dev/null/mpi", 4, "/dev/null")],
)
def test_a_prefix_that_cannot_be_built_into_is_refused_before_anything_starts(
    mpiwizard: Command, tmp_path: Path, prefix: str, status: int, word: str
) -> None:
    result = mpiwizard("run", "--yes", *ARCHIVE, "--prefix", prefix)
    assert_one_sentence(result, status, word)
    assert not (tmp_path / "state" / "mpiwizard" / "runs").exists()


def test_a_prefix_with_other_peoples_files_is_refused(mpiwizard: Command, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("")
    result = mpiwizard("run", "--yes", *ARCHIVE, "--prefix", str(tmp_path / "full"))
    assert result.returncode in (2, 4)
    assert_one_sentence(result, result.returncode, str(tmp_path / "full"))


def test_no_compiler_names_the_exact_install_command(mpiwizard: Command, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "perl", "df", "uname", "id"):
        if path := shutil.which(name):
            (tools / name).symlink_to(path)
    result = mpiwizard("run", "--yes", *ARCHIVE, env={"PATH": str(tools)})
    assert_one_sentence(result, 4, "gcc", "make", "install")


def test_an_archive_that_is_no_open_mpi_is_refused(mpiwizard: Command, tmp_path: Path) -> None:
    (tmp_path / "openmpi-4.1.4.tar.gz").write_text("not an archive")
    result = mpiwizard("run", "--yes", "--offline", "--archive", str(tmp_path / "openmpi-4.1.4.tar.gz"))
    assert_one_sentence(result, 2, "not an Open MPI source archive")


def test_a_wrong_checksum_names_both_sums(mpiwizard: Command) -> None:
    result = mpiwizard("run", "--yes", *ARCHIVE, "--sha256", "0" * 64)
    assert result.returncode in (1, 2)
    assert_one_sentence(result, result.returncode, "0" * 64, "Checksum mismatch")


def test_a_plan_as_json_has_a_schema_and_nothing_but_json_on_stdout(mpiwizard: Command) -> None:
    result = mpiwizard("plan", *ARCHIVE, "--json")
    assert result.returncode == 0, result.stderr
    plan = json.loads(result.stdout)
    assert plan["schema"] == 1
    assert [step["id"] for step in plan["steps"]] == [
        "fetch", "verify", "unpack", "configure", "make", "install", "tune", "validate",
    ]  # fmt: skip


def test_detect_as_json_has_a_schema_and_evidence_for_every_known_fact(mpiwizard: Command) -> None:
    result = mpiwizard("detect", "--offline", "--json")
    machine = json.loads(result.stdout)
    assert machine["schema"] == 2
    known = [fact for fact in machine["facts"] if fact.get("value") not in (None, [], "none")]
    assert len(known) > 20
    assert [fact["id"] for fact in known if not (fact.get("read_from") or fact.get("rests_on"))] == []


def test_a_closed_standard_input_does_not_disturb(mpiwizard: Command) -> None:
    result = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&- 2>&1', "sh", sys.executable, "-m", "mpiwizard"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(TUI)}, timeout=30,
    )  # fmt: skip
    assert result.returncode == 2
    assert "no terminal" in result.stdout
    assert "Traceback" not in result.stdout


def test_a_reader_that_goes_away_gets_no_traceback(mpiwizard: Command, tmp_path: Path) -> None:
    result = subprocess.run(
        ["/bin/bash", "-c", '"$@" | head -n 1', "bash", sys.executable, "-m", "mpiwizard", "plan", *ARCHIVE, "--json"],
        capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": str(TUI), "XDG_STATE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert result.stdout == "{\n"
    assert result.stderr == ""


def test_diagnose_reads_a_pipe_and_tells_the_first_error(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "mpiwizard", "diagnose", "-"],
        input=b"ok\nx.c:2:3: error: 'y' undeclared\nmake: *** [x.o] Error 1\n",
        capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(TUI)}, timeout=30,
    )  # fmt: skip
    assert result.returncode == 1
    assert b"line 2: x.c:2:3: error: 'y' undeclared" in result.stdout


def test_doctor_finds_this_box_well(mpiwizard: Command) -> None:
    result = mpiwizard("doctor", "--offline")
    assert result.returncode == 0, result.stdout
    assert "58 claims" in result.stdout


def test_runs_tells_when_there_are_none(mpiwizard: Command) -> None:
    assert "no run yet" in mpiwizard("runs").stdout
    assert json.loads(mpiwizard("runs", "--json").stdout) == {"schema": 1, "runs": []}


@pytest.mark.parametrize("verb", [("runs", "--json"), ("runs",), ("detect", "--offline")])
def test_a_full_disk_behind_stdout_is_told_in_one_sentence(tmp_path: Path, verb: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "mpiwizard", *verb],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
            env={**os.environ, "PYTHONPATH": str(TUI), "XDG_STATE_HOME": str(tmp_path)},
        )  # fmt: skip
    assert_one_sentence(result, 1, "No space left on device")
    assert "fault" not in result.stderr


@pytest.mark.parametrize("verb", [("tune",), ("validate",), ("uninstall", "--yes")])
def test_the_home_of_a_user_who_is_not_there_is_told_in_one_sentence(mpiwizard: Command, verb: tuple[str, ...]) -> None:
    assert_one_sentence(mpiwizard(*verb, "--prefix", "~nobody-at-all/mpi"), 2, "~nobody-at-all/mpi", "leads nowhere")


def test_an_archive_whose_name_is_no_text_is_refused(mpiwizard: Command, tmp_path: Path) -> None:
    archive = os.fsdecode(bytes(tmp_path) + b"/\xff.tar.xz")
    shutil.copy(MINIATURE, archive)
    assert_one_sentence(mpiwizard("plan", "--offline", "--archive", archive), 2, "no text", "rename")


def test_without_home_the_account_tells_where_it_is(mpiwizard: Command, tmp_path: Path) -> None:
    result = mpiwizard("plan", *ARCHIVE, "--json", env={"HOME": ""})
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["prefix"].endswith("/mpi/openmpi-5.0.11")


def test_a_current_folder_that_was_removed_does_not_disturb(mpiwizard: Command, tmp_path: Path) -> None:
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@" -m mpiwizard tune --prefix x'
    (tmp_path / "gone").mkdir()
    result = subprocess.run(
        ["/bin/sh", "-c", script, "sh", str(tmp_path / "gone"), sys.executable],
        capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": str(TUI), "XDG_STATE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert_one_sentence(result, 2, "x", "starts with /")


def test_a_locale_without_our_characters_gets_text_and_whole_json(mpiwizard: Command) -> None:
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    assert mpiwizard("doctor", "--offline", env=plain).returncode == 0
    assert json.loads(mpiwizard("detect", "--offline", "--json", env=plain).stdout)["schema"] == 2


def assert_gone(pid: str) -> None:
    """The process has ended; whoever inherited it may take a moment to bury it."""
    give_up = time.monotonic() + 10
    while Path("/proc", pid).exists():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def _hear_signals() -> None:
    """Tests behind nohup, or in the background of a script, have these ignored, which is not the point."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("numbers", [(signal.SIGTERM,), (signal.SIGHUP,), (signal.SIGINT, signal.SIGINT)])
def test_signals_end_what_a_command_started(tmp_path: Path, numbers: tuple[signal.Signals, ...]) -> None:
    """The MPI here hangs and ignores SIGTERM; its process must not outlive the command."""
    mpirun = tmp_path / "mpi" / "bin" / "mpirun"
    mpirun.parent.mkdir(parents=True)
    mpirun.write_text(f'#!/bin/sh\ntrap "" TERM\necho $$ > "{tmp_path}/pid"\nexec sleep 60\n')
    mpirun.chmod(0o755)
    command = subprocess.Popen(
        [sys.executable, "-m", "mpiwizard", "validate", "--prefix", str(tmp_path / "mpi")],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(TUI), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        preexec_fn=_hear_signals,
    )
    give_up = time.monotonic() + 20
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < give_up
        time.sleep(0.05)
    for number in numbers:
        command.send_signal(number)
        time.sleep(0.3)
    command.communicate(timeout=60)
    assert command.returncode == 128 + numbers[0]
    assert_gone((tmp_path / "pid").read_text().strip())


@pytest.mark.parametrize("inside", ["", "state", "state/mpiwizard", "state/mpiwizard/runs/mpi", "cache/mpiwizard/mpi"])
def test_a_prefix_and_our_own_folders_may_not_lie_in_each_other(
    mpiwizard: Command, tmp_path: Path, inside: str
) -> None:
    (tmp_path / "box").mkdir()
    env = {"XDG_STATE_HOME": str(tmp_path / "box/state"), "XDG_CACHE_HOME": str(tmp_path / "box/cache")}
    result = mpiwizard("run", "--yes", *ARCHIVE, "--prefix", str(tmp_path / "box" / inside), env=env)
    assert_one_sentence(result, 2, "one in the other")


def test_a_foreign_mpi_that_was_only_tuned_is_not_built_over(mpiwizard: Command, tmp_path: Path) -> None:
    (tmp_path / "mpi" / "share" / "mpiwizard").mkdir(parents=True)
    (tmp_path / "mpi" / "share" / "mpiwizard" / "tuning.json").write_text("{}")
    result = mpiwizard("run", "--yes", *ARCHIVE, "--prefix", str(tmp_path / "mpi"))
    assert_one_sentence(result, 4, "did not put there")


@pytest.mark.parametrize("verb", ["runs", "attach", "resume", "export", "stop"])
@pytest.mark.parametrize("spoiled", ["plan.json", "report.json"])
def test_a_run_whose_files_are_spoiled_gives_no_traceback(
    mpiwizard: Command, tmp_path: Path, verb: str, spoiled: str
) -> None:
    folder = tmp_path / "state" / "mpiwizard" / "runs" / "20200101-000000-5.0.11"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text('{"run": ' if spoiled == "plan.json" else PLAN)
    (folder / "journal.jsonl").write_text(
        'garbage\n\0\n[1]\n{"event":"run-finished","time":1,"outcome":"odd"}\n'
        '{"event":"run-finished","time":1,"outcome":"done"}\n'
    )
    result = mpiwizard(verb, *(() if verb == "runs" else (folder.name,)))
    assert "fault" not in result.stderr
    assert "Traceback" not in result.stderr
    assert result.returncode == {"runs": 0, "export": 0 if spoiled == "report.json" else 1}.get(verb, result.returncode)


def test_a_finished_run_without_its_report_says_how_to_measure_again(mpiwizard: Command, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "mpiwizard" / "runs" / "20200101-000000-5.0.11"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(PLAN)
    (folder / "journal.jsonl").write_text('{"event":"run-finished","time":1,"outcome":"done"}\n')
    assert_one_sentence(mpiwizard("attach"), 1, "report", "mpiwizard validate --prefix /nowhere/mpi")


def test_control_c_does_not_wait_for_a_mirror_that_does_not_answer(tmp_path: Path) -> None:
    apt = tmp_path / "bin" / "apt-get"
    apt.parent.mkdir()
    apt.write_text(f'#!/bin/sh\necho $$ > "{tmp_path}/pid"\nexec sleep 60\n')
    apt.chmod(0o755)
    (apt.parent / "apt-config").symlink_to("/bin/true")
    command = subprocess.Popen(
        [sys.executable, "-m", "mpiwizard", "detect"],
        stdout=subprocess.DEVNULL,
        env={
            **os.environ, "PYTHONPATH": str(TUI), "XDG_STATE_HOME": str(tmp_path), "https_proxy": "http://127.0.0.1:9",
            "PATH": f"{apt.parent}:{os.environ['PATH']}",
        },
    )  # fmt: skip
    give_up = time.monotonic() + 20
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        if command.poll() is not None:
            pytest.skip("this box has no apt sources")
        assert time.monotonic() < give_up
        time.sleep(0.05)
    command.send_signal(signal.SIGINT)
    assert command.wait(timeout=60) == 130
    assert_gone((tmp_path / "pid").read_text().strip())


def test_a_run_that_fails_leaves_stdout_to_results(mpiwizard: Command, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "mpiwizard" / "runs" / "20200101-000000-5.0.11"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(PLAN)
    (folder / "journal.jsonl").write_text('{"event":"run-finished","time":1,"outcome":"failed","text":"It broke."}\n')
    result = mpiwizard("attach")
    assert (result.returncode, result.stdout) == (1, "")
    assert "It broke." in result.stderr
    assert f"mpiwizard resume {folder.name}" in result.stderr
