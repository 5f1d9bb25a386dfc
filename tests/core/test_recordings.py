"""A recording gives back what was recorded, and nothing of the box it is replayed on."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import random
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.host import RealHost, Result
from mpiwizard.core.recordings import (
    RecordedHost,
    RecordingWriter,
    RememberingHost,
    command_file,
    find_recording,
    recorded_time,
)


def test_a_file_a_folder_and_a_command_come_back(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path)
    writer.file("/etc/hostname", "box\n")
    writer.present("/usr/bin/gcc")
    writer.folder("/sys/class/infiniband")
    writer.command(["df", "-P", "/dev/shm"], Result(1, "out", "err"))
    writer.environment({"PATH": "/usr/bin"})
    host = RecordedHost(tmp_path)
    assert host.read("/etc/hostname") == "box\n"
    assert host.list("/etc") == ("hostname",)
    assert host.exists("/sys/class/infiniband") and host.list("/sys/class/infiniband") == ()
    assert host.which("gcc") == "/usr/bin/gcc"
    assert host.run(["df", "-P", "/dev/shm"]) == Result(1, "out", "err")
    assert host.run(["df"]).status == 127
    assert not host.is_real


def test_a_command_that_timed_out_is_remembered_as_such(tmp_path: Path) -> None:
    RecordingWriter(tmp_path).command(["wsl.exe"], Result(-9, timed_out=True))
    assert RecordedHost(tmp_path).run(["wsl.exe"]).timed_out


def test_a_folder_that_holds_the_files_themselves_is_a_recording_too(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "version").write_text("Linux")
    assert RecordedHost(find_recording(tmp_path, tmp_path)).read("/proc/version") == "Linux"


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../../../../../etc/passwd"])
def test_a_link_leads_to_the_recordings_own_root_never_to_ours(tmp_path: Path, target: str) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc" / "os-release").symlink_to(target)
    (root / "linked").symlink_to("/etc")
    host = RecordedHost(tmp_path)
    assert host.read("/etc/os-release") is None
    (root / "etc" / "passwd").write_text("of the recording")
    assert host.read("/etc/os-release") == host.read("/linked/os-release") == "of the recording"
    assert host.read("/../../../etc/passwd") == "of the recording"


@pytest.mark.parametrize("name", ["root", "commands"])
def test_a_folder_of_a_recording_that_is_a_link_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("/")
    with pytest.raises(WizardError, match=f"{name} is a link"):
        RecordedHost(tmp_path)


def test_files_beside_the_root_are_none_when_they_are_links(tmp_path: Path) -> None:
    box = tmp_path / "box"
    RecordingWriter(box)
    (tmp_path / "private").write_text('{"time": 1, "SECRET": "ours"}')
    for name in ("about.json", "environment.json", "commands/gcc --version", "commands/gcc --version.errors"):
        (box / name).symlink_to(tmp_path / "private")
    host = RecordedHost(box)
    assert recorded_time(box) is None
    assert host.environment == {}
    assert host.run(["gcc", "--version"]).status == 127


@pytest.mark.parametrize("time", ["NaN", "1e999", "-Infinity", '"soon"', "[1]", "null", "1" * 400])
def test_a_time_that_is_none_is_not_told(tmp_path: Path, time: str) -> None:
    (tmp_path / "about.json").write_text(f'{{"time": {time}}}')
    assert recorded_time(tmp_path) is None


@pytest.mark.parametrize("path", ["/etc/\0", "\0", "/a\0/b"])
def test_what_is_no_path_is_nothing(tmp_path: Path, path: str) -> None:
    RecordingWriter(tmp_path)
    for host in (RecordedHost(tmp_path), RealHost()):
        assert host.read(path) is None
        assert host.list(path) == ()
        assert not host.exists(path)
        assert host.resolve(path).strip("/") == path.strip("/")
        assert host.which(path) is None
        assert host.run([path]).status in (126, 127)


def test_links_in_a_circle_are_nothing(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "one").symlink_to("two")
    (tmp_path / "root" / "two").symlink_to("one")
    host = RecordedHost(tmp_path)
    assert host.read("/one") is None
    assert host.list("/one") == ()
    assert not host.exists("/one/below")
    assert host.resolve("/one") == "/one"


def test_a_pipe_or_a_device_does_not_hold_up_the_reader(tmp_path: Path) -> None:
    (tmp_path / "root" / "proc").mkdir(parents=True)
    os.mkfifo(tmp_path / "root" / "proc" / "meminfo")
    assert RecordedHost(tmp_path).read("/proc/meminfo") is None
    assert RealHost().read(str(tmp_path / "root" / "proc" / "meminfo")) is None
    assert RealHost().read("/dev/zero") is None


def test_what_is_written_below_a_linked_folder_lies_where_the_link_leads(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path)
    writer.link("/sys/class/net/eth0", "/sys/devices/pci/net/eth0")
    writer.file("/sys/class/net/eth0/mtu", "1500")
    writer.link("/sys/class/net/eth0/device/driver", "/sys/bus/pci/drivers/ena")
    host = RecordedHost(tmp_path)
    assert host.read("/sys/devices/pci/net/eth0/mtu") == "1500"
    assert host.resolve("/sys/class/net/eth0/device/driver") == "/sys/bus/pci/drivers/ena"


def test_a_recording_in_an_archive_is_unpacked(tmp_path: Path) -> None:
    RecordingWriter(tmp_path / "box").file("/etc/hostname", "box")
    with tarfile.open(tmp_path / "box.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "box", "box")
    (tmp_path / "scratch").mkdir()
    found = find_recording(tmp_path / "box.tar.gz", tmp_path / "scratch")
    assert RecordedHost(found).read("/etc/hostname") == "box"


def member(name: str, kind: bytes = tarfile.REGTYPE, **more: Any) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type = kind
    for field, value in more.items():
        setattr(found, field, value)
    return found


HOSTILE = {
    "a file outside": [member("box/../../outside")],
    "a link outside": [member("box/link", tarfile.SYMTYPE, linkname="../.."), member("box/link/outside")],
    "an absolute link": [member("box/root", tarfile.SYMTYPE, linkname="/")],
    "a hard link outside": [member("box/root/shadow", tarfile.LNKTYPE, linkname="/etc/shadow")],
    "a hard link to nothing": [member("box/root/file", tarfile.LNKTYPE, linkname="box/none")],
    "a device": [member("box/root/null", tarfile.CHRTYPE)],
    "a pipe": [member("box/root/pipe", tarfile.FIFOTYPE)],
    "a file for a folder": [member("box/root/proc/version"), member("box/root/proc")],
    "folders without end": [member("box/" + "d/" * 1900 + "file")],
    "a file without end": [member("box/root/file", pax_headers={"size": str(1 << 40)})],
    "a name without end": [member("box", tarfile.XHDTYPE, size=1 << 40)],
    "a name that is none": [member("box/root/file", pax_headers={"path": "box/\0"})],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_and_writes_nothing_elsewhere(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "given.tar.gz", "w:gz") as archive:
        for each in (member("box/root/proc/version"), *HOSTILE[name]):
            archive.addfile(each)
    scratch = tmp_path / "folder" / "scratch"
    scratch.mkdir(parents=True)
    with pytest.raises(WizardError, match=r"given\.tar\.gz cannot be unpacked") as caught:
        find_recording(tmp_path / "given.tar.gz", scratch)
    assert caught.value.exit_code == ExitCode.USAGE
    assert sorted(path.name for path in tmp_path.rglob("*") if scratch not in path.parents) == [
        "folder", "given.tar.gz", "scratch",
    ]  # fmt: skip


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_an_archive_that_was_damaged_is_refused_or_unpacked(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        text = random.Random(0).randbytes(1 << 15)
        archive.addfile(member("box/root/proc/version", size=len(text), mtime=10**12), io.BytesIO(text))
    whole = pack(plain.getvalue())
    for place in range(0, len(whole), len(whole) // 20):
        for damaged in (whole[:place], whole[:place] + b"\xff" + whole[place + 1 :]):
            (tmp_path / "given").write_bytes(damaged)
            with tempfile.TemporaryDirectory(dir=tmp_path) as scratch, contextlib.suppress(WizardError):
                assert find_recording(tmp_path / "given", Path(scratch)).is_dir()


@pytest.mark.parametrize("content", [b"", b"no archive", None])
def test_what_is_no_recording_is_refused_in_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    given_path = tmp_path / "given"
    if content is not None:
        given_path.write_bytes(content)
    with pytest.raises(WizardError) as caught:
        find_recording(given_path, tmp_path / "scratch")
    assert caught.value.exit_code == ExitCode.USAGE
    assert str(given_path) in str(caught.value)


def test_an_environment_of_another_shape_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "environment.json").write_text("[1, 2]")
    with pytest.raises(WizardError, match=r"environment\.json"):
        RecordedHost(tmp_path)


words = st.lists(st.text(st.characters(exclude_characters="\0"), min_size=1), min_size=1, max_size=4)


@given(words, words)
@example(["\udcff"], ["\udcfe"])
@settings(max_examples=200)
def test_every_command_line_has_a_file_name_of_its_own(one: list[str], other: list[str]) -> None:
    name = command_file(one)
    assert "/" not in name and len(name.encode()) <= 200 and name not in (".", "..")
    assert (command_file(other) == name) == (" ".join(one) == " ".join(other))


class Counting(RealHost):
    """The real box, which counts how often a file is read."""

    reads = 0

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        self.reads += 1
        return super().read(path, limit)


def test_a_question_is_asked_once_and_its_answer_remembered() -> None:
    counting = Counting()
    host = RememberingHost(counting)
    assert host.read("/proc/version") == host.read("/proc/version")
    assert counting.reads == 1
    assert list(host.answers()) == [("read", "/proc/version")]


def test_a_folder_that_is_silent_is_taken_as_absent(tmp_path: Path) -> None:
    (tmp_path / "dead").mkdir()
    (tmp_path / "dead" / "gcc").write_text("#!/bin/sh\n")
    (tmp_path / "dead" / "gcc").chmod(0o755)
    dead = str(tmp_path / "dead")
    host = RememberingHost(RealHost({"PATH": f"{dead}:/usr/bin:/bin"}), silent=[dead])
    assert not host.exists(f"{dead}/gcc")
    assert host.list(dead) == ()
    assert host.which("gcc") != f"{dead}/gcc"
    assert host.environment["PATH"] == "/usr/bin:/bin"
    assert host.exists(str(tmp_path))
