"""Single signs, on boxes that have only these: what is concluded from each, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.detect.boxes import NOW, box, look

from mpiwizard.core.detect.cgroups import group_folders
from mpiwizard.core.detect.installations import classify_launcher
from mpiwizard.core.detect.kernel import classify_cma
from mpiwizard.core.detect.system import clock_skew
from mpiwizard.core.detect.tools import parse_version


def test_an_empty_box_is_unknown_and_nothing_is_guessed(tmp_path: Path) -> None:
    machine = look(box(tmp_path, {"/etc/nothing": ""}))
    known = {fact.id for fact in machine.facts if fact.value not in (None, [], "none")}
    assert known == set()
    assert machine.headline


@pytest.mark.parametrize(
    ("trial", "value"),
    [
        ({"plain": 0, "permitted": 0}, "works"),
        ({"plain": 1, "permitted": 0}, "works-with-permission"),
        ({"plain": 1, "permitted": 1}, "refused"),
        ({"plain": -1, "permitted": -1}, "refused"),
        ({}, None),
    ],
)
def test_a_trial_of_cma_is_classified(trial: dict[str, int | None], value: str | None) -> None:
    assert classify_cma(trial) == value


@pytest.mark.parametrize("scope", [2, 3])
def test_a_strict_yama_is_named_as_the_reason_and_never_changed(tmp_path: Path, scope: int) -> None:
    commands = {"python3 -m mpiwizard.core.detect.cma": {"output": '{"plain": 1, "permitted": 1, "kcmp": 1}'}}
    machine = look(box(tmp_path, {"/proc/sys/kernel/yama/ptrace_scope": f"{scope}\n"}, commands))
    fact = machine.fact("kernel.single_copy")
    assert (fact.state, fact.value) == ("attention", {"4": "none", "5": "none"})
    assert str(scope) in fact.text
    assert "sysctl" not in "".join(one.action for one in machine.facts if one.id.startswith("kernel."))


def test_a_trial_that_prints_nonsense_makes_cma_unknown_and_nothing_else(tmp_path: Path) -> None:
    commands = {"python3 -m mpiwizard.core.detect.cma": {"output": "Killed\n"}, "uname -m": {"output": "x86_64\n"}}
    machine = look(box(tmp_path, {"/etc/nothing": ""}, commands))
    assert machine.fact("kernel.cma").state == "unknown"
    assert machine.value("cpu.architecture") == "x86_64"


def test_a_group_is_looked_at_together_with_all_groups_above_it(tmp_path: Path) -> None:
    files = {
        "/proc/self/cgroup": "0::/user.slice/job/step\n",
        "/proc/self/mountinfo": "2 1 0:6 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "/sys/fs/cgroup/user.slice/job/cpu.max": "300000 100000\n",
        "/sys/fs/cgroup/user.slice/job/step/cpu.max": "max 100000\n",
        "/sys/fs/cgroup/user.slice/cpu.max": "400000 100000\n",
    }
    host = box(tmp_path, files)
    assert group_folders(host, "cpu") == (
        "/sys/fs/cgroup/user.slice/job/step",
        "/sys/fs/cgroup/user.slice/job",
        "/sys/fs/cgroup/user.slice",
        "/sys/fs/cgroup",
    )
    fact = look(host).fact("cpu.quota")
    assert (fact.value, fact.read_from) == (3.0, "/sys/fs/cgroup/user.slice/job/cpu.max")


@pytest.mark.parametrize(
    ("os_release", "family"),
    [
        ("ID=linuxmint\nID_LIKE='ubuntu debian'\n", "apt"),
        ('ID="openEuler"\n', "dnf"),
        ('ID="sles"\nID_LIKE="suse"\n', "zypper"),
        ("ID=manjaro\nID_LIKE=arch\n", "pacman"),
        ("ID=nixos\n", ""),
    ],
)
def test_the_family_follows_the_distributions_own_word(tmp_path: Path, os_release: str, family: str) -> None:
    assert look(box(tmp_path, {"/etc/os-release": os_release})).value("platform.distribution")["family"] == family


DEBIAN = {"/etc/os-release": "ID=debian\nVERSION_ID=12\n", "/proc/self/status": "Uid:\t1000\t1000\t1000\t1000\n"}


def test_without_package_lists_the_command_fetches_them_first(tmp_path: Path) -> None:
    files = {**DEBIAN, "/usr/bin/sudo": "", "/usr/bin/apt-get": "", "/usr/bin/perl": "", "/usr/bin/bash": ""}
    action = look(box(tmp_path, files)).fact("tool.cc").action
    assert action == "sudo apt-get update && sudo apt-get install gcc make"


def test_without_sudo_the_command_becomes_root_in_another_way(tmp_path: Path) -> None:
    files = {**DEBIAN, "/var/lib/apt/lists/x_Packages": "", "/usr/bin/perl": "", "/usr/bin/bash": ""}
    assert look(box(tmp_path, files)).fact("tool.make").action == "su -c 'apt-get install gcc make'"


def test_on_an_unknown_distribution_the_action_names_the_program(tmp_path: Path) -> None:
    fact = look(box(tmp_path, {"/etc/os-release": "ID=nixos\n"})).fact("tool.make")
    assert (fact.state, "make" in fact.action) == ("problem", True)


def test_a_compiler_variable_that_names_nothing_is_a_problem_of_its_own(tmp_path: Path) -> None:
    host = box(tmp_path, {**DEBIAN, "/usr/bin/gcc": ""}, environment={"CC": "icx -O2"})
    machine = look(host)
    fact = machine.fact("tool.cc")
    assert (fact.state, fact.value, fact.action) == ("problem", None, "Correct it, or forget it: unset CC")
    assert "gcc" not in machine.fact("tool.make").action


def test_a_compiler_variable_that_is_no_command_line_is_a_problem_of_its_own(tmp_path: Path) -> None:
    machine = look(box(tmp_path, {**DEBIAN, "/usr/bin/make": ""}, environment={"CC": 'gcc "'}))
    assert machine.fact("tool.cc").state == "problem"
    assert machine.fact("tool.make").state == "ok"


@pytest.mark.parametrize("os_release", ["ID=debian\n", "ID=nixos\n"])
def test_a_compiler_without_headers_is_a_problem_on_any_distribution(tmp_path: Path, os_release: str) -> None:
    commands = {"gcc -x c -fsyntax-only -": {"status": 1, "errors": "fatal error: stdio.h: No such file or directory"}}
    fact = look(box(tmp_path, {"/etc/os-release": os_release, "/usr/bin/gcc": ""}, commands)).fact("tool.cc")
    assert (fact.state, fact.value["path"]) == ("problem", "/usr/bin/gcc")
    assert fact.action


def test_a_compiler_variable_may_hold_arguments(tmp_path: Path) -> None:
    host = box(
        tmp_path,
        {**DEBIAN, "/usr/bin/ccache": "", "/usr/bin/gcc": ""},
        {"ccache gcc --version": {"output": "gcc (Debian 12.2.0-14) 12.2.0\n"}},
        {"CC": "ccache gcc"},
    )
    assert look(host).value("tool.cc") == {"path": "/usr/bin/ccache", "version": "12.2.0", "command": "ccache gcc"}


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("gcc (Debian 12.2.0-14) 12.2.0", "12.2.0"),
        ("gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", "11.4.0"),
        ("Ubuntu clang version 14.0.0-1ubuntu1.1", "14.0.0-1ubuntu1.1"),
        ("GNU Make 4.3", "4.3"),
        ("This is perl 5, version 36, subversion 0 (v5.36.0) built for x86_64-linux-gnu", "5.36.0"),
        ("nothing of the kind", ""),
    ],
)
def test_versions_are_read_from_the_first_line(line: str, version: str) -> None:
    assert parse_version(line) == version


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n", ("Open MPI", "4.1.4")),
        ("mpirun (Open MPI) 5.0.11\n", ("Open MPI", "5.0.11")),
        ("HYDRA build details:\n    Version:      4.2.1\n    CC: gcc\n", ("MPICH", "4.2.1")),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.13 Build 1\n", ("Intel MPI", "2021.13")),
        ("slurmstepd: whatever\n", ("other", "")),
        ("", None),
    ],
)
def test_a_launcher_is_known_by_its_version_text(output: str, found: tuple[str, str] | None) -> None:
    assert classify_launcher(output) == found


def test_the_same_launcher_under_two_names_is_one_installation(tmp_path: Path) -> None:
    host = box(
        tmp_path,
        {"/usr/bin/orterun": ""},
        {"/usr/bin/mpirun --version": {"output": "mpirun (Open MPI) 4.1.4\n"}},
        {"PATH": "/usr/bin:/bin"},
    )
    (tmp_path / "root/usr/bin/mpirun").symlink_to("/usr/bin/orterun")
    (tmp_path / "root/bin").mkdir()
    (tmp_path / "root/bin/mpirun").symlink_to("/usr/bin/orterun")
    machine = look(host)
    assert machine.value("mpi.installations") == [{"prefix": "/usr", "kind": "Open MPI", "release": "4.1.4"}]


def test_prefixes_of_earlier_runs_are_looked_at(tmp_path: Path) -> None:
    host = box(
        tmp_path,
        {
            "/home/ada/.local/state/mpiwizard/runs/20260101-120000-4.1.4/plan.json": '{"prefix": "/srv/mpi"}',
            "/home/ada/.local/state/mpiwizard/runs/broken/plan.json": "{",
            "/srv/mpi/bin/mpirun": "",
        },
        {"/srv/mpi/bin/mpirun --version": {"output": "mpirun (Open MPI) 4.1.4\n"}},
        {"HOME": "/home/ada"},
    )
    assert [one["prefix"] for one in look(host).value("mpi.installations")] == ["/srv/mpi"]


@pytest.mark.parametrize(
    ("behind", "skew"), [(5, 5), (-300, -300), (3600, 0), (-5.5 * 3600, 0), (90 * 86400, 90 * 86400)]
)
def test_a_hardware_clock_in_another_time_zone_is_no_skew(behind: float, skew: float) -> None:
    assert clock_skew(NOW, NOW - behind) == skew


def test_a_clock_that_drifted_is_something_to_look_at(tmp_path: Path) -> None:
    fact = look(box(tmp_path, {"/sys/class/rtc/rtc0/since_epoch": f"{NOW + 400:.0f}\n"})).fact("platform.clock")
    assert (fact.state, fact.value) == ("attention", -400)
    assert "behind" in fact.text


@pytest.mark.parametrize(
    ("release", "words"), [("6.8.0-45-generic", "hwclock -w"), ("6.6.87.2-microsoft-standard-WSL2", "wsl --shutdown")]
)
def test_only_under_wsl_the_hardware_clock_is_surely_right(tmp_path: Path, release: str, words: str) -> None:
    files = {
        "/sys/class/rtc/rtc0/since_epoch": f"{NOW + 400:.0f}\n",
        "/proc/sys/kernel/osrelease": release,
        "/proc/self/status": "",
    }
    assert words in look(box(tmp_path, files)).fact("platform.clock").action


@pytest.mark.parametrize(("option", "state"), [("rw,noexec", "problem"), ("ro", "problem"), ("rw", "ok")])
def test_a_place_where_nothing_can_run_or_be_written_is_a_problem(tmp_path: Path, option: str, state: str) -> None:
    space = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/sda1 9000000 1 8000000 1% /\n"
    host = box(
        tmp_path,
        {"/home/ada/.profile": "", "/proc/self/mountinfo": f"1 0 8:1 / / {option} - ext4 /dev/sda1 rw\n"},
        {"df -P -k /home/ada": {"output": space}},
        {"HOME": "/home/ada"},
    )
    assert look(host).fact("storage.build").state == state
