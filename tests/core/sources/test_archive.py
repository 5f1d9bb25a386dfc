"""A local archive is looked into before anything rests on it."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.worker.conftest import MINIATURE

from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.host import RealHost
from mpiwizard.core.sources.archive import probe, release_inside, version_text
from mpiwizard.core.sources.unpack import unpack


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(RealHost(), Folders(tmp_path / "s", tmp_path / "c", tmp_path / "k"), offline=True)


def tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_the_release_is_read_from_the_archive_not_from_its_name(context: Context, tmp_path: Path) -> None:
    renamed = tmp_path / "download(1).tar.xz"
    renamed.write_bytes(MINIATURE.read_bytes())
    offer = probe(context, Wishes(archive=str(renamed)))
    assert (offer.release, offer.reachable) == ("5.0.11", True)
    assert offer.sha256 == hashlib.sha256(MINIATURE.read_bytes()).hexdigest()
    assert "not checked" in offer.detail


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"this is a text file, no archive", "not an Open MPI source archive"),
        (b"", "not an Open MPI source archive"),
        (MINIATURE.read_bytes()[:3000], "not an Open MPI source archive"),
    ],
)
def test_what_is_no_archive_is_refused_in_one_sentence(
    context: Context, tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "openmpi-4.1.4.tar.gz"
    path.write_bytes(content)
    with pytest.raises(WizardError, match=reason) as caught:
        probe(context, Wishes(archive=str(path)))
    assert caught.value.exit_code == ExitCode.USAGE
    assert "\n" not in str(caught.value)


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    other = tar(tmp_path / "zlib.tar.gz", {"zlib-1.3/configure": b"#!/bin/sh\n", "zlib-1.3/VERSION": b"1.3\n"})
    with pytest.raises(WizardError, match="not an Open MPI source archive"):
        release_inside(other)


def test_a_missing_archive_and_a_malformed_sum_are_usage_errors(context: Context, tmp_path: Path) -> None:
    for wishes in (
        Wishes(archive=str(tmp_path / "none.tar.gz")),
        Wishes(archive=str(tmp_path)),
        Wishes(archive=str(MINIATURE), sha256="abc"),
    ):
        with pytest.raises(WizardError) as caught:
            probe(context, wishes)
        assert caught.value.exit_code == ExitCode.USAGE


def test_another_sum_than_the_given_one_names_both(context: Context) -> None:
    with pytest.raises(WizardError) as caught:
        probe(context, Wishes(archive=str(MINIATURE), sha256="A" * 64))
    assert "a" * 64 in str(caught.value)
    assert hashlib.sha256(MINIATURE.read_bytes()).hexdigest() in str(caught.value)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("# Open MPI\nmajor=4\nminor=1\nrelease=4\ngreek=\n", "4.1.4"),
        ("# Open MPI\nmajor=5\nminor=0\nrelease=0\ngreek=rc1\n", "5.0.0rc1"),
        ("# Something else\nmajor=4\nminor=1\nrelease=4\n", ""),
        ("# Open MPI\nmajor=four\nminor=1\nrelease=4\n", ""),
        ("# Open MPI\nmajor=4\n", ""),
        ("# Open MPI\nmajor=4\nminor=1\nrelease=4\ngreek=/../../x\n", ""),
    ],
)
def test_versions_as_open_mpi_writes_them(text: str, version: str) -> None:
    assert version_text(text) == version


@given(st.text())
def test_no_text_can_stop_the_version_reader(text: str) -> None:
    version_text("Open MPI\n" + text)


def test_unpacking_keeps_time_stamps_so_that_make_rebuilds_nothing(tmp_path: Path) -> None:
    source = tmp_path / "source"
    assert unpack(MINIATURE, source) > 40
    with tarfile.open(MINIATURE) as archive:
        assert (source / "configure").stat().st_mtime == archive.getmember("openmpi-5.0.11/configure").mtime
    assert (source / "configure").stat().st_mode & 0o100


@pytest.mark.parametrize(
    "members",
    [
        {"openmpi/configure": b"", "../outside": b"x"},
        {"openmpi/configure": b"", "second/file": b"x"},
        {"openmpi/readme": b""},
    ],
)
def test_a_hostile_or_odd_archive_is_refused_and_leaves_nothing(tmp_path: Path, members: dict[str, bytes]) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    with pytest.raises(WizardError, match="cannot be unpacked"):
        unpack(tar(tmp_path / "odd.tar.gz", members), folder / "source")
    assert list(folder.iterdir()) == []
    assert not (tmp_path / "outside").exists()


def packed(path: Path) -> bytes:
    """An archive in which every file has content of its own that no compressor shortens."""
    content = random.Random(1).randbytes
    tar(path, {"openmpi/configure": b"", **{f"openmpi/{number}": content(5000) for number in range(40)}})
    return gzip.decompress(path.read_bytes())


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("damage", ["cut", "header", "stream"])
def test_a_damaged_archive_is_never_unpacked_in_part(
    tmp_path: Path, compress: Callable[[bytes], bytes], damage: str
) -> None:
    """tarfile alone takes a damaged header for the end of the archive."""
    whole = bytearray(packed(tmp_path / "whole.tar.gz"))
    if damage == "header":
        whole[whole.index(b"openmpi/20") + 100] ^= 0x55
    content = bytearray(compress(bytes(whole)))
    if damage == "cut":
        del content[len(content) // 2 :]
    if damage == "stream":
        content[len(content) // 2] ^= 0x55
    (tmp_path / "damaged.tar").write_bytes(content)
    (tmp_path / "work").mkdir()
    if damage == "stream" and compress is bytes:
        pytest.skip("a tar file has no sum of its files' content")
    with pytest.raises(WizardError, match="cannot be unpacked") as caught:
        unpack(tmp_path / "damaged.tar", tmp_path / "work" / "source")
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "work").iterdir()) == []


def test_members_that_no_folder_can_hold_are_told_in_one_sentence(tmp_path: Path) -> None:
    odd = tmp_path / "odd.tar"
    for name, kind in (("n" * 300, tarfile.REGTYPE), ("link", tarfile.LNKTYPE), ("device", tarfile.CHRTYPE)):
        with tarfile.open(odd, "w") as archive:
            archive.addfile(tarfile.TarInfo("openmpi/configure"))
            member = tarfile.TarInfo(f"openmpi/{name}")
            member.type, member.linkname = kind, "openmpi/none"
            archive.addfile(member)
        with pytest.raises(WizardError, match=r"odd\.tar cannot be unpacked"):
            unpack(odd, tmp_path / "source")
