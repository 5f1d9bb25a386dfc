"""Our block in a parameter file comes and goes; everything else in the file stays byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiwizard.core.detect.parameters import parse_parameters
from mpiwizard.core.errors import WizardError
from mpiwizard.core.tune.block import BEGIN, END, other_settings, remove_block, write_block

FIRST, SECOND = {"smsc": "^cma"}, {"btl_vader_single_copy_mechanism": "cma", "mpi_yield_when_idle": "1"}


def own_settings(file: Path) -> dict[str, str]:
    """What stands between our marks."""
    inside = file.read_bytes().rpartition(BEGIN.encode())[2].partition(END.encode())[0]
    return parse_parameters(inside.decode())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "etc" / "openmpi-mca-params.conf"


@given(st.binary().filter(lambda content: b"mpiwizard" not in content))
def test_undo_restores_any_file_byte_for_byte(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.mktemp("etc") / "params.conf"
    file.write_bytes(content)
    write_block(file, FIRST, {})
    write_block(file, SECOND, {"mpi_yield_when_idle": "ranks share cores"})
    assert own_settings(file) == SECOND
    assert file.read_bytes().startswith(content)
    assert remove_block(file)
    assert file.read_bytes() == content


def test_a_file_that_we_made_goes_with_the_block(file: Path) -> None:
    write_block(file, FIRST, {})
    assert remove_block(file) and not file.exists()


def test_a_file_that_we_made_stays_when_somebody_added_to_it(file: Path) -> None:
    write_block(file, FIRST, {})
    file.write_text(file.read_text() + "btl = ^tcp\n")
    assert remove_block(file)
    assert file.read_text() == "btl = ^tcp\n"


def test_the_block_is_replaced_where_it_stands(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("# the site's file")
    write_block(file, FIRST, {})
    file.write_text(file.read_text() + "btl = ^tcp\n")
    write_block(file, SECOND, {"btl_vader_single_copy_mechanism": "38 % faster"})
    assert file.read_text() == (
        f"# the site's file\n{BEGIN}\n# 38 % faster\nbtl_vader_single_copy_mechanism = cma\n"
        f"mpi_yield_when_idle = 1\n{END}\nbtl = ^tcp\n"
    )


def test_no_settings_means_no_block(file: Path) -> None:
    write_block(file, {}, {})
    assert not file.exists()
    write_block(file, FIRST, {})
    write_block(file, {}, {})
    assert not file.exists()


def test_settings_of_others_are_told_apart(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("  btl=^tcp  \n#smsc = knem\n")
    write_block(file, FIRST, {})
    assert other_settings(file) == {"btl": "^tcp"}
    assert own_settings(file) == FIRST


@pytest.mark.parametrize("content", [f"{BEGIN}\nsmsc = cma\n", f"a = 1\n{END}\n"])
def test_a_damaged_block_is_left_alone_and_told(file: Path, content: str) -> None:
    file.parent.mkdir()
    file.write_text(content)
    with pytest.raises(WizardError, match="by hand"):
        write_block(file, FIRST, {})
    assert file.read_text() == content


def test_a_link_stays_a_link_and_the_mode_stays(file: Path, tmp_path: Path) -> None:
    real = tmp_path / "real.conf"
    real.write_text("btl = ^tcp\n")
    real.chmod(0o640)
    file.parent.mkdir()
    file.symlink_to(real)
    write_block(file, FIRST, {})
    assert file.is_symlink() and own_settings(real) == FIRST
    assert real.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.glob(".*")) == []
