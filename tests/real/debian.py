"""Source packages of the distribution, fetched with apt into a private folder and unpacked; nothing of them is kept."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from mpiwizard.core.host import RealHost
from mpiwizard.core.sources.distro import source_lists


def fetch_source(package: str, folder: Path) -> Path:
    """The unpacked upstream archive of a source package, in a folder of the test's own."""
    lists = source_lists(RealHost())
    if not lists:
        pytest.skip("this distribution has no source packages that apt could fetch")
    for name in ("lists/partial", "archives/partial", "sources", "download"):
        (folder / name).mkdir(parents=True)
    for name, text in lists.items():
        (folder / "sources" / name).write_text(text)
    settings = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": folder / "sources",
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache": folder,
        "Dir::Cache::Archives": folder / "archives",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    for command in (["update"], ["source", "--download-only", "--only-source", package]):
        subprocess.run(
            ["apt-get", "-qq", *options, *command],
            cwd=folder / "download",
            check=True,
            timeout=300,
            capture_output=True,
        )
    archives = [path for path in (folder / "download").glob("*.orig.tar.*") if not path.name.endswith(".asc")]
    with tarfile.open(archives[0]) as archive:  # signed by the distribution: apt has checked it
        archive.extractall(folder / "unpacked")
    (unpacked,) = (folder / "unpacked").iterdir()
    return unpacked
