"""What was installed can be removed exactly, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mpiwizard.core.build.manifest import begin_manifest, remove_installation, require_ours, write_manifest
from mpiwizard.core.errors import ExitCode, WizardError


def install(prefix: Path) -> None:
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "mpirun").write_text("program")
    (prefix / "bin" / "mpiexec").symlink_to("mpirun")
    (prefix / "etc").mkdir()
    (prefix / "etc" / "openmpi-mca-params.conf").write_text("# nothing")
    (prefix / "lib").mkdir()
    (prefix / "lib64").symlink_to("lib")
    write_manifest(prefix)


def test_an_untouched_installation_is_removed_without_a_trace(tmp_path: Path) -> None:
    prefix = tmp_path / "mpi"
    install(prefix)
    require_ours(prefix)
    removed, kept = remove_installation(prefix)
    assert (removed, kept) == (5, ())
    assert not prefix.exists()


def test_changed_and_foreign_files_stay_and_changed_ones_are_named(tmp_path: Path) -> None:
    prefix = tmp_path / "mpi"
    install(prefix)
    (prefix / "etc" / "openmpi-mca-params.conf").write_text("btl = self")
    (prefix / "bin" / "mine").write_text("not ours")
    (prefix / "bin" / "mpirun").unlink()
    _removed, kept = remove_installation(prefix)
    assert kept == ("etc/openmpi-mca-params.conf",)
    assert sorted(path.name for path in prefix.rglob("*") if path.is_file()) == ["mine", "openmpi-mca-params.conf"]


def test_a_folder_that_is_not_ours_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WizardError) as caught:
        remove_installation(tmp_path)
    assert caught.value.exit_code == ExitCode.USAGE
    assert (tmp_path / "file").exists()


def test_a_manifest_cannot_lead_out_of_the_prefix(tmp_path: Path) -> None:
    prefix = tmp_path / "mpi"
    install(prefix)
    outside = tmp_path / "precious"
    outside.write_text("x")
    import hashlib

    with (prefix / "share" / "mpiwizard" / "manifest.txt").open("a") as file:
        file.write(f"{hashlib.sha256(b'x').hexdigest()}  ../precious\n")
    remove_installation(prefix)
    assert outside.exists()


def test_an_installation_behind_a_link_is_removed_and_the_link_stays(tmp_path: Path) -> None:
    install(tmp_path / "mpi")
    (tmp_path / "link").symlink_to("mpi")
    assert remove_installation(tmp_path / "link")[1] == ()
    assert (tmp_path / "link").is_symlink()
    assert not (tmp_path / "mpi").exists()


def test_a_folder_in_the_place_of_a_file_counts_as_changed(tmp_path: Path) -> None:
    prefix = tmp_path / "mpi"
    install(prefix)
    (prefix / "bin" / "mpirun").unlink()
    (prefix / "bin" / "mpirun").mkdir()
    assert "bin/mpirun" in remove_installation(prefix)[1]


@pytest.mark.parametrize("name", [b"\xff", b"a\x0cb", "\u2028".encode(), b"a  b"])
def test_a_file_with_an_odd_name_is_removed_too(tmp_path: Path, name: bytes) -> None:
    prefix = tmp_path / "mpi"
    (prefix / "bin").mkdir(parents=True)
    Path(os.fsdecode(bytes(prefix / "bin") + b"/" + name)).write_text("x")
    write_manifest(prefix)
    assert remove_installation(prefix) == (2, ())
    assert not prefix.exists()


def test_an_installation_that_was_cut_off_is_not_said_to_be_removed(tmp_path: Path) -> None:
    begin_manifest(tmp_path)
    (tmp_path / "half").write_text("")
    with pytest.raises(WizardError, match="cut off"):
        remove_installation(tmp_path)
    assert (tmp_path / "half").exists()
