"""Drives: where one builds, installs and keeps temporary files, and those that answer nobody."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.core.detect.boxes import box, context_of, look

from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.detect import detect, loader, silent, storage
from mpiwizard.core.detect.capture import capture
from mpiwizard.core.detect.disk import Space, parse_df
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.host import RealHost
from mpiwizard.core.recordings import RecordedHost, find_recording

PROBES = (*storage.PROBES, *silent.PROBES)


def storage_of(context: Context, prefix: str = "") -> Machine:
    """The facts of storage alone, for speed."""
    return survey_machine(context, Wishes(prefix=prefix), None, PROBES)


def told(host: RecordedHost, fact_id: str) -> Fact:
    return storage_of(context_of(host)).fact(fact_id)


# --- drives that do not answer ----------------------------------------------------------------------


@pytest.fixture
def dead_drive(tmp_path: Path) -> Iterator[Path]:
    """A drive whose process never answers, as that of a server that is down. Only root can have one."""
    folder = tmp_path / "dead drive"
    folder.mkdir()
    try:
        process = os.open("/dev/fuse", os.O_RDWR)
    except OSError:
        pytest.skip("there is no FUSE here")
    try:
        options = f"fd={process},rootmode=40000,user_id=0,group_id=0".encode()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"server:/apps", bytes(folder), b"fuse.test", 0, options):
            pytest.skip("drives cannot be mounted here")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
    finally:
        os.close(process)  # whoever still waits there gets an error


def context_with(path: str, folder: Path) -> Context:
    environment = {"PATH": path, "HOME": str(folder / "home")}
    return Context(RealHost(environment), Folders(folder / "state", folder / "cache", folder / "config"), offline=True)


def test_a_drive_that_does_not_answer_is_named_and_holds_up_nothing(dead_drive: Path, tmp_path: Path) -> None:
    context = context_with(f"{dead_drive}/bin:{os.environ['PATH']}", tmp_path)
    healthy = detect(context_with(os.environ["PATH"], tmp_path), Wishes())
    started = monotonic()
    machine = detect(context, Wishes())
    assert monotonic() - started < 8  # 1 s more than without the drive, on a box with nothing else to do
    fact = machine.fact("storage.silent")
    assert (fact.state, fact.value) == ("attention", [str(dead_drive)])
    assert "server:/apps" in fact.raw
    assert f"umount -l '{dead_drive}'" in fact.action
    assert machine.value("tool.cc") == healthy.value("tool.cc")
    assert not {fact.id for fact in machine.of_state("unknown")} - {fact.id for fact in healthy.of_state("unknown")}


def test_nothing_can_be_installed_on_a_drive_that_does_not_answer(dead_drive: Path, tmp_path: Path) -> None:
    machine = storage_of(context_with(os.environ["PATH"], tmp_path), f"{dead_drive}/openmpi")
    fact = machine.fact("storage.prefix")
    assert (fact.state, fact.value["type"]) == ("problem", "fuse.test")
    assert "does not answer" in fact.text


def test_a_capture_of_a_box_with_a_drive_that_does_not_answer_tells_the_same(dead_drive: Path, tmp_path: Path) -> None:
    kept = capture(context_with(f"{dead_drive}/bin:/usr/bin:/bin", tmp_path), tmp_path / "box.tar.gz")
    (tmp_path / "scratch").mkdir()
    again = detect(Context.of_recording(find_recording(tmp_path / "box.tar.gz", tmp_path / "scratch")), Wishes())
    for fact_id in ("storage.silent", "tool.cc", "storage.build"):
        assert again.fact(fact_id).state == kept.machine.fact(fact_id).state, fact_id
    assert len(again.value("storage.silent")) == 1


def test_a_library_path_on_a_drive_that_does_not_answer_holds_up_every_program(
    dead_drive: Path, tmp_path: Path
) -> None:
    context = context_with(os.environ["PATH"], tmp_path)
    environment = {**context.host.environment, "LD_LIBRARY_PATH": f"{dead_drive}/lib"}
    context = replace(context, host=RealHost(environment))
    fact = survey_machine(context, Wishes(), None, loader.PROBES).fact("environment.libraries")
    assert (fact.state, "does not answer" in fact.meaning) == ("attention", True)


def test_a_drive_nobody_would_look_at_is_not_asked(dead_drive: Path, tmp_path: Path) -> None:
    machine = storage_of(context_with(os.environ["PATH"], tmp_path / "elsewhere"))
    assert (machine.value("storage.silent"), machine.fact("storage.silent").state) == ([], "ok")


def test_without_drives_of_others_no_program_is_asked(tmp_path: Path) -> None:
    host = box(tmp_path, {"/proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"})
    assert look(host).value("storage.silent") == []


# --- where one builds and installs ------------------------------------------------------------------

SPACE = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/sda1 90000000 1 {free} 1% /\n"
FILES = "Filesystem Inodes IUsed IFree IUse% Mounted on\n/dev/sda1 6553600 1 {free} 1% /\n"


def disk_box(
    folder: Path,
    mount: str = "1 0 8:1 / / rw - ext4 /dev/sda1 rw",
    space: int = 80_000_000,
    files: int = 5_000_000,
    environment: dict[str, str] | None = None,
) -> RecordedHost:
    """A box with one file system, of which so many kibibytes and inodes are free."""
    commands = {}
    for path in ("/home/ada", "/tmp", "/scratch/tmp"):
        commands[f"df -P -k {path}"] = {"output": SPACE.format(free=space)}
        commands[f"df -P -i {path}"] = {"output": FILES.format(free=files)}
    kept = {"/home/ada/.profile": "", "/tmp/.keep": "", "/scratch/tmp/.keep": "", "/proc/self/mountinfo": mount + "\n"}
    return box(folder, kept, commands, {"HOME": "/home/ada", **(environment or {})})


def test_a_place_with_room_is_fine_and_shows_what_was_read(tmp_path: Path) -> None:
    fact = told(disk_box(tmp_path), "storage.build")
    assert (fact.state, fact.meaning, fact.action) == ("ok", "", "")
    assert fact.value == {"path": "/home/ada/.local/state/mpiwizard/runs", "free": 80_000_000 << 10, "type": "ext4"}
    assert "ext4 /dev/sda1" in fact.raw and "80000000" in fact.raw


@pytest.mark.parametrize(
    ("space", "files", "state"),
    [
        (80_000_000, 100, "problem"),  # bytes alone are not enough
        (80_000_000, 40_000, "attention"),
        (80_000_000, 0, "problem"),
        (100_000, 5_000_000, "problem"),
        (800_000, 5_000_000, "attention"),
    ],
)
def test_a_place_without_room_for_bytes_or_files_is_told(tmp_path: Path, space: int, files: int, state: str) -> None:
    fact = told(disk_box(tmp_path, space=space, files=files), "storage.build")
    assert (fact.state, bool(fact.meaning), bool(fact.action)) == (state, True, True)


def test_a_file_system_that_counts_no_files_has_room_for_them(tmp_path: Path) -> None:
    host = disk_box(tmp_path)
    (tmp_path / "commands" / "df -P -i %2Fhome%2Fada").write_text(
        "Filesystem Inodes IUsed IFree IUse% Mounted on\n/dev/sda1 0 0 0 - /\n"
    )
    assert told(host, "storage.build").state == "ok"


def test_how_full_it_is_is_said_where_it_is_nearly_full(tmp_path: Path) -> None:
    assert "97 % full" in told(disk_box(tmp_path, space=2_000_000), "storage.build").text


@pytest.mark.parametrize(
    ("mount", "prefix", "build"),
    [
        ("1 0 8:1 / / rw,noexec - ext4 /dev/sda1 rw", "problem", "problem"),
        ("1 0 8:1 / / rw - ext4 /dev/sda1 ro", "problem", "problem"),  # remounted after an error
        ("1 0 8:1 / / rw - vfat /dev/sda1 rw", "attention", "attention"),
        ("1 0 0:9 / / rw - nfs4 server:/home rw", "attention", "attention"),
        ("1 0 0:9 / / rw - btrfs /dev/sda1 rw", "ok", "ok"),
        ("1 0 0:9 / / rw - overlay overlay rw", "ok", "ok"),
    ],
)
def test_the_kind_of_file_system_decides(tmp_path: Path, mount: str, prefix: str, build: str) -> None:
    machine = storage_of(context_of(disk_box(tmp_path, mount)))
    assert (machine.fact("storage.prefix").state, machine.fact("storage.build").state) == (prefix, build)


def test_of_several_things_the_worst_decides_and_all_are_told(tmp_path: Path) -> None:
    fact = told(disk_box(tmp_path, "1 0 0:9 / / rw,noexec - nfs4 server:/home rw"), "storage.build")
    assert fact.state == "problem"
    assert "configure starts many" in fact.meaning and "network drive" in fact.meaning and "quota -s" in fact.meaning


def test_what_belongs_to_a_container_goes_with_it(tmp_path: Path) -> None:
    host = disk_box(tmp_path, "1 0 0:9 / / rw - overlay overlay rw")
    (tmp_path / "root" / ".dockerenv").touch()
    fact = look(host).fact("storage.prefix")
    assert (fact.state, "gone with it" in fact.meaning) == ("info", True)


# --- temporary files --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["vboxsf", "fuse.vmhgfs-fuse", "virtiofs", "fakeowner"])
def test_a_folder_that_a_host_shares_is_no_place_to_build(tmp_path: Path, kind: str) -> None:
    fact = told(disk_box(tmp_path, f"1 0 0:9 / / rw - {kind} share rw"), "storage.build")
    assert (fact.state, fact.action) == ("attention", "Set XDG_STATE_HOME to a local folder.")


def test_temporary_files_go_where_the_first_variable_says(tmp_path: Path) -> None:
    variables = {"TMP": "/nowhere", "TMPDIR": "/scratch/tmp"}
    fact = told(disk_box(tmp_path, environment=variables), "storage.temporary")
    assert (fact.state, fact.value["path"]) == ("ok", "/scratch/tmp")
    assert fact.read_from.startswith("$TMPDIR")


@pytest.mark.parametrize("folder", ["/nowhere", "tmp", "./scratch/tmp"])
def test_a_folder_for_temporary_files_that_does_not_exist_is_told(tmp_path: Path, folder: str) -> None:
    fact = told(disk_box(tmp_path, environment={"TEMP": folder}), "storage.temporary")
    assert (fact.state, fact.action) == ("attention", "unset TEMP")


@pytest.mark.parametrize(
    ("mount", "state"),
    [
        ("1 0 0:9 / / rw - nfs4 server:/tmp rw", "attention"),
        ("1 0 0:9 / / rw - lustre 192.0.2.1@tcp:/tmp rw", "attention"),
        ("1 0 0:9 / / rw - 9p C: rw", "attention"),
        ("1 0 0:9 / / ro - ext4 /dev/sda1 rw", "problem"),
        ("1 0 0:9 / / rw,noexec - ext4 /dev/sda1 rw", "info"),
        ("1 0 0:9 / / rw - tmpfs tmpfs rw", "ok"),
    ],
)
def test_temporary_files_belong_on_a_local_drive(tmp_path: Path, mount: str, state: str) -> None:
    assert told(disk_box(tmp_path, mount), "storage.temporary").state == state


# --- real file systems ------------------------------------------------------------------------------


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes file systems in memory with the options that are given; only root can."""
    made: list[Path] = []

    def mount(options: str) -> Path:
        folder = tmp_path / f"disk{len(made)}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True).returncode:
            pytest.skip("file systems cannot be mounted here")
        made.append(folder)
        return folder

    yield mount
    for folder in made:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize(
    ("options", "state", "words"),
    [
        ("size=2g,nr_inodes=1m", "attention", "memory"),
        ("size=2g,noexec", "problem", "configure starts many"),
        ("size=2g,ro", "problem", "Nothing can be written"),
        ("size=2g,nr_inodes=500", "problem", "inodes"),
    ],
)
def test_a_real_file_system_is_judged_by_its_options(
    mounted: Callable[[str], Path], options: str, state: str, words: str
) -> None:
    folder = mounted(options)
    fact = storage_of(context_with(os.environ["PATH"], folder)).fact("storage.build")
    assert (fact.state, fact.value["type"], words in fact.meaning) == (state, "tmpfs", True)


def test_open_mpi_would_find_no_place_for_its_session_on_a_real_drive_that_is_read_only(
    mounted: Callable[[str], Path], tmp_path: Path
) -> None:
    context = context_with(os.environ["PATH"], tmp_path)
    environment = {**context.host.environment, "TMPDIR": str(mounted("ro,size=1m"))}
    fact = storage_of(replace(context, host=RealHost(environment))).fact("storage.temporary")
    assert (fact.state, fact.value["type"]) == ("problem", "tmpfs")


# --- whatever df prints -----------------------------------------------------------------------------


@settings(max_examples=100)
@given(text=st.text(), unit=st.sampled_from([1, 1024]))
def test_nothing_df_prints_makes_its_parser_fail(text: str, unit: int) -> None:
    parse_df(text, unit)


@given(size=st.integers(0, 1 << 50), free=st.integers(0, 1 << 50), name=st.text("abc 0/:_", min_size=1))
def test_df_is_understood_whatever_the_file_system_is_called(size: int, free: int, name: str) -> None:
    text = f"Filesystem Inodes IUsed IFree IUse% Mounted on\n/{name}x {size} 7 {free} 1% /mnt\n"
    assert parse_df(text, 1) == Space(size, free)
