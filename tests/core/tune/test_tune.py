"""Tuning tries settings turn by turn, keeps what is better beyond doubt, and can undo all it wrote."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.core.fakes import context_in, machine_with, scripted_mpi

from mpiwizard.core.detect.model import Machine
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.frontend import Frontend
from mpiwizard.core.host import RealHost
from mpiwizard.core.installation import Installation
from mpiwizard.core.probes import Probes
from mpiwizard.core.recipes import load_recipes
from mpiwizard.core.tune import load_tuning, tune, undo_tuning
from mpiwizard.core.tune.model import Tuning
from mpiwizard.core.tune.trial import Candidate, single_copy, try_out

ROOT = {"uid": os.getuid(), "root": os.getuid() == 0}
BOX = machine_with(cpu_usable=2, kernel_cma="works", platform_user=ROOT)
HERE = machine_with(cpu_usable=len(os.sched_getaffinity(0)), platform_user=ROOT)
FASTER, SLOWER = "[1.0,1.0,1.0]", "[2.0,2.0,2.0]"  # microseconds for half a round trip


def answer(samples: str) -> str:
    return f'echo \'a library says hello\'; echo \'{{"test":"latency","size":65536,"samples":{samples}}}\''


def tuned(folder: Path, with_cma: str, without: str, machine: Machine = BOX, release: str = "4.1.4") -> Tuning:
    """Tune an installation whose runs with and without CMA answer as given."""
    cases = f"*mechanism' cma'*) {with_cma};;\n*smsc' cma'*) {with_cma};;\n*) {without};;"
    installation = scripted_mpi(folder / "prefix", release, cases)
    return tune(context_in(folder), machine, load_recipes(), installation, folder / "work")


def parameter_file(tuning: Tuning) -> Path:
    return Path(tuning.prefix, "etc", "openmpi-mca-params.conf")


@pytest.mark.parametrize(
    ("release", "on", "off"),
    [
        ("4.1.4", "btl_vader_single_copy_mechanism = cma", "btl_vader_single_copy_mechanism = none"),
        ("5.0.7", "smsc = cma", "smsc = ^cma"),
    ],
)
def test_the_better_way_is_written_in_the_words_of_the_release(tmp_path: Path, release: str, on: str, off: str) -> None:
    better = tuned(tmp_path / "a", answer(FASTER), answer(SLOWER), release=release)
    assert better.trials[0].kept and better.trials[0].gain == pytest.approx(1.0)
    assert on in parameter_file(better).read_text().splitlines()
    worse = tuned(tmp_path / "b", answer(SLOWER), answer(FASTER), release=release)
    assert worse.trials[0].kept and worse.trials[0].gain == pytest.approx(1.0)
    assert off in parameter_file(worse).read_text().splitlines()


def test_equal_settings_are_left_alone(tmp_path: Path) -> None:
    tuning = tuned(tmp_path, answer(FASTER), answer(FASTER))
    assert not tuning.trials[0].kept and tuning.parameters == {}
    assert "Left to Open MPI" in tuning.trials[0].verdict
    assert not parameter_file(tuning).exists()


def test_a_setting_that_crashes_loses_and_nothing_more(tmp_path: Path) -> None:
    tuning = tuned(tmp_path, "echo 'CMA is not here' >&2; exit 7", answer(FASTER))
    (trial,) = tuning.trials
    assert trial.interval is None and "status 7: CMA is not here" in trial.verdict
    assert tuning.parameters == {"btl_vader_single_copy_mechanism": "none"}


def test_one_run_that_fails_decides_nothing(tmp_path: Path) -> None:
    once = f"test -e {tmp_path}/again || {{ touch {tmp_path}/again; exit 7; }}; {answer(FASTER)}"
    trial = tuned(tmp_path, once, answer(SLOWER)).trials[0]
    assert trial.kept and trial.setting.endswith("= cma") and len(trial.samples_after) == 15


def test_when_even_the_plain_way_fails_nothing_is_decided(tmp_path: Path) -> None:
    tuning = tuned(tmp_path, answer(FASTER), "exit 1")
    assert tuning.parameters == {} and "Nothing is changed" in tuning.trials[0].verdict


def test_a_machine_that_refuses_cma_is_not_claimed_to_be_measured(tmp_path: Path) -> None:
    machine = machine_with(cpu_usable=2, kernel_cma="refused", platform_user=ROOT)
    tuning = tuned(tmp_path, "exit 9", "exit 9", machine)
    (trial,) = tuning.trials
    assert (trial.kept, trial.interval, trial.samples_after) == (True, None, ())
    assert "Not measured" in trial.verdict
    assert tuning.parameters == {"btl_vader_single_copy_mechanism": "none"}


def test_a_line_that_somebody_wrote_stays(tmp_path: Path) -> None:
    file = tmp_path / "prefix" / "etc" / "openmpi-mca-params.conf"
    file.parent.mkdir(parents=True)
    file.write_text("btl_vader_single_copy_mechanism = emulated\n")
    tuning = tuned(tmp_path, answer(FASTER), answer(SLOWER))
    assert tuning.parameters == {} and "that line stays" in tuning.trials[0].verdict
    assert file.read_text() == "btl_vader_single_copy_mechanism = emulated\n"


def test_two_ranks_on_one_processor_are_said_to_be_so(tmp_path: Path) -> None:
    tuning = tuned(tmp_path, answer(FASTER), answer(SLOWER), machine_with(cpu_usable=1, platform_user=ROOT))
    assert "share one processor" in tuning.trials[0].method


def test_undo_restores_the_prefix_byte_for_byte(tmp_path: Path) -> None:
    file = tmp_path / "prefix" / "etc" / "openmpi-mca-params.conf"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"# without a line end")
    tuning = tuned(tmp_path, answer(FASTER), answer(SLOWER))
    assert load_tuning(tuning.prefix) == tuning
    assert all(Path(written.path).exists() for written in tuning.written)
    assert set(undo_tuning(tuning.prefix)) == {written.path for written in tuning.written} | {
        f"{tuning.prefix}/share/mpiwizard/tuning.json"
    }
    assert file.read_bytes() == b"# without a line end"
    assert not list(Path(tuning.prefix, "share").rglob("*"))
    assert undo_tuning(tuning.prefix) == ()


def test_undo_leaves_the_ways_to_use_an_installation_of_ours(tmp_path: Path) -> None:
    tuning = tuned(tmp_path, answer(FASTER), answer(SLOWER))
    own = Path(tuning.prefix, "share", "mpiwizard")
    (own / "manifest.txt").write_text("")
    undo_tuning(tuning.prefix)
    assert (own / "environment.sh").exists()
    assert not (own / "tuning.json").exists()


def test_tuning_again_replaces_what_was_tuned_before(tmp_path: Path) -> None:
    tuned(tmp_path, answer(FASTER), answer(SLOWER))
    again = tuned(tmp_path, answer(SLOWER), answer(FASTER))
    text = parameter_file(again).read_text()
    assert text.count("btl_vader_single_copy_mechanism =") == 1 and "= none" in text


@pytest.mark.skipif(os.getuid() == 0, reason="user 0 may write everywhere")
def test_a_prefix_that_cannot_be_written_is_refused_before_measuring(tmp_path: Path) -> None:
    installation = scripted_mpi(tmp_path / "prefix", "4.1.4", "*) exit 1;;")
    (tmp_path / "prefix").chmod(0o555)
    with pytest.raises(WizardError, match="may not write") as refusal:
        tune(context_in(tmp_path), BOX, load_recipes(), installation, tmp_path / "work")
    assert refusal.value.exit_code == ExitCode.NOT_POSSIBLE_HERE


def test_the_environment_script_puts_this_installation_first_once(tmp_path: Path) -> None:
    tuning = tuned(tmp_path / "with blanks", answer(FASTER), answer(SLOWER))
    script = next(written.path for written in tuning.written if written.path.endswith("environment.sh"))
    host = RealHost({"PATH": "/usr/bin:/bin"})
    shown = host.run(["/bin/sh", "-euc", '. "$1"; . "$1"; echo "$PATH"', "sh", script])
    assert shown.output == f"{tuning.prefix}/bin:/usr/bin:/bin\n", shown.errors


def test_the_modulefile_names_the_installation(tmp_path: Path) -> None:
    tuning = tuned(tmp_path, answer(FASTER), answer(SLOWER))
    text = Path(tuning.prefix, "share/mpiwizard/modulefiles/openmpi/4.1.4").read_text()
    assert text.startswith("#%Module") and tuning.prefix in text and "$prefix" in text


@pytest.mark.real
def test_a_real_and_clear_difference_is_found(installation: Installation, tmp_path: Path) -> None:
    """Shared memory against TCP through the loopback, on the wheel's Open MPI."""
    probes = Probes(RealHost(), HERE, installation, tmp_path / "work")
    probes.compile("bench")
    candidate = Candidate("btl", "Transport", "btl", "self,sm", "self,tcp", "self,sm", {"pml": "ob1"})
    trial = try_out(candidate, probes, HERE, Frontend(), pairs=12)
    assert trial.kept and trial.interval and trial.interval[0] > 0, trial
    assert trial.setting == "btl = self,sm" and len(trial.samples_after) == 12


def test_a_real_open_mpi_takes_both_single_copy_settings(installation: Installation, tmp_path: Path) -> None:
    probes = Probes(RealHost(), HERE, installation, tmp_path / "work")
    probes.compile("bench")
    trial = try_out(single_copy(installation), probes, HERE, Frontend(), pairs=1)
    assert len(trial.samples_before) == len(trial.samples_after) == 1, trial.verdict
    assert not trial.kept, "one pair proves nothing"
