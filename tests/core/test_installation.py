"""An Open MPI is recognised by what its mpirun says, and called in the way its release needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.host import RealHost
from mpiwizard.core.installation import Installation, find_installation, launch, launch_environment

FOUR = Installation("/opt/four", "4.1.8", "/opt/four/bin/mpicc", "/opt/four/bin/mpirun")
FIVE = Installation("/opt/five", "5.0.11rc1", "/opt/five/bin/mpicc", "/opt/five/bin/mpirun")


def prefix_that_says(folder: Path, script: str) -> str:
    """A prefix whose mpirun is a shell script."""
    (folder / "bin").mkdir()
    mpirun = folder / "bin" / "mpirun"
    mpirun.write_text("#!/bin/sh\n" + script)
    mpirun.chmod(0o755)
    return str(folder)


def test_the_release_comes_from_mpirun(installation: Installation) -> None:
    assert installation.release.startswith("5.0.")
    assert installation.major == 5


@pytest.mark.parametrize("release", ["4.1.4", "5.0.11rc1", "6.0.0a1-dirty"])
def test_a_release_may_have_a_suffix(tmp_path: Path, release: str) -> None:
    prefix = prefix_that_says(tmp_path, f"printf 'mpirun (Open MPI) {release}\\n\\nReport bugs to …\\n'")
    assert find_installation(RealHost(), prefix + "/").release == release


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("printf 'HYDRA build details:\\n    Version: 4.2\\n'", "MPICH"),
        ("echo 'Intel(R) MPI Library for Linux* OS, Version 2021.13'", "Intel MPI"),
        ("echo 'use srun instead' >&2; exit 1", "use srun instead"),
        ("exit 0", "nothing"),
    ],
)
def test_another_mpi_is_named_and_refused(tmp_path: Path, script: str, words: str) -> None:
    with pytest.raises(WizardError, match=words) as refusal:
        find_installation(RealHost(), prefix_that_says(tmp_path, script))
    assert refusal.value.exit_code == ExitCode.NOT_POSSIBLE_HERE


def test_a_folder_without_mpi_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WizardError, match="no MPI in") as refusal:
        find_installation(RealHost(), str(tmp_path))
    assert refusal.value.exit_code == ExitCode.NOT_POSSIBLE_HERE


def test_each_parameter_is_given_once() -> None:
    command = launch(FOUR, 2, ["./a.out", "x"], {"btl": "self,vader"})
    assert command == ["/opt/four/bin/mpirun", "-n", "2", "--mca", "btl", "self,vader", "./a.out", "x"]


def test_oversubscription_is_said_in_the_words_of_the_release() -> None:
    assert "--oversubscribe" in launch(FOUR, 9, ["true"], {}, oversubscribe=True)
    assert "--map-by :OVERSUBSCRIBE" in " ".join(launch(FIVE, 9, ["true"], {}, oversubscribe=True))


def test_settings_for_another_open_mpi_do_not_reach_this_one() -> None:
    foreign = {
        "OMPI_MCA_btl": "tcp", "PMIX_MCA_x": "1", "PRTE_MCA_y": "1", "OPAL_PREFIX": "/else",
        "OMPI_CC": "icc", "OMPI_CFLAGS": "-O0", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "0",
    }  # fmt: skip
    host = RealHost({"PATH": "/usr/bin", "LD_LIBRARY_PATH": "/else/lib", "HOME": "/home/me", **foreign})
    assert launch_environment(host, FIVE) == {
        "PATH": "/opt/five/bin:/usr/bin",
        "LD_LIBRARY_PATH": "/opt/five/lib:/else/lib",
        "HOME": "/home/me",
    }


def test_an_installation_that_was_moved_may_be_told_so() -> None:
    environment = launch_environment(RealHost({"OPAL_PREFIX": "/opt/five"}), FIVE)
    assert environment["OPAL_PREFIX"] == "/opt/five"


def test_user_0_may_launch_when_asked_for() -> None:
    environment = launch_environment(RealHost({}), FOUR, root=True)
    assert environment["OMPI_ALLOW_RUN_AS_ROOT"] == environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_a_real_mpirun_takes_the_command(installation: Installation, ranks: int) -> None:
    host = RealHost()
    command = launch(installation, ranks, ["/bin/echo", "here"], {"btl": "self,sm"}, oversubscribe=True, root=True)
    result = host.run(command, timeout=30, environment=launch_environment(host, installation, root=True))
    assert (result.status, result.output.split()) == (0, ["here"] * ranks), result.errors
