"""CPUs: how they lie together, which of them are ours, and how many ranks mpirun would start on them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import archspec
import archspec.cpu
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.detect.boxes import box, look, texts_with

from mpiwizard.core.detect.cgroups import cpu_quota, cpuset_cpus, cpuset_for_hwloc
from mpiwizard.core.detect.hybrid import kinds_of_cores
from mpiwizard.core.detect.microarchitecture import microarchitecture, parse_first_processor
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.detect.slots import parse_tasks_per_node
from mpiwizard.core.detect.topology import (
    as_cpu_list,
    groups_by_cpuinfo,
    parse_cpu_list,
    parse_cpu_mask,
    parts_of,
    read_topology,
)
from mpiwizard.core.host import RealHost
from mpiwizard.core.recordings import RememberingHost

SYS = "/sys/devices/system"
CGROUP2 = "30 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
RECORDED_PROCESSORS = Path(archspec.__file__).parent / "json/tests/targets"
cpu_sets = st.frozensets(st.integers(0, 600))
junk = texts_with(
    "processor", "\t: ", "0", "1", "\n", "\n\n", "core id", "physical id", "CPU part", "0xd08", "flags", "²",
    "cpu\t: POWER", "99999999", "-", ",", "(x", ")", "\0", "CPU implementer\t: 0x41\n", "vendor_id : ",
)  # fmt: skip


def machine_files(cores: int, threads: int = 1, sockets: int = 1) -> dict[str, str]:
    """The files of a box whose second threads are numbered after all first ones, as Intel's and AMD's are."""
    count = cores * threads
    files = {f"{SYS}/cpu/online": f"0-{count - 1}\n", "/proc/self/status": f"Cpus_allowed_list:\t0-{count - 1}\n"}
    for cpu in range(count):
        core = cpu % cores
        socket = core * sockets // cores
        siblings = [core + thread * cores for thread in range(threads)]
        package = [other for other in range(count) if other % cores * sockets // cores == socket]
        files[f"{SYS}/cpu/cpu{cpu}/topology/core_cpus_list"] = as_cpu_list(siblings) + "\n"
        files[f"{SYS}/cpu/cpu{cpu}/topology/package_cpus_list"] = as_cpu_list(package) + "\n"
    return files


def in_group(path: str, files: Mapping[str, str]) -> dict[str, str]:
    """A process in a control group of version 2."""
    return {
        "/proc/self/cgroup": f"0::{path}\n",
        "/proc/self/cpuset": f"{path}\n",
        "/proc/self/mountinfo": CGROUP2,
        "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
        **{f"/sys/fs/cgroup{path.rstrip('/')}/{name}": text for name, text in files.items()},
    }


def slots_of(machine: Machine) -> tuple[object, str, str]:
    fact = machine.fact("cpu.slots")
    return fact.value, fact.state, fact.action


# --- parsers -----------------------------------------------------------------------------------------


@given(cpu_sets)
def test_lists_and_masks_name_the_same_cpus(cpus: frozenset[int]) -> None:
    mask = f"{sum(1 << cpu for cpu in cpus):0160x}"
    assert parse_cpu_list(as_cpu_list(cpus)) == cpus
    assert parse_cpu_mask(",".join(mask[start : start + 8] for start in range(0, 160, 8)) + "\n") == cpus


@pytest.mark.parametrize(
    "parse", [parse_cpu_list, parse_cpu_mask, parts_of, parse_tasks_per_node, parse_first_processor]
)
@given(text=junk)
def test_no_text_makes_a_parser_fail(parse: object, text: str) -> None:
    parse(text)  # type: ignore[operator]


@given(text=junk, cpus=cpu_sets)
def test_cpuinfo_makes_groups_of_cpus_that_were_asked_for(text: str, cpus: frozenset[int]) -> None:
    cores, sockets = groups_by_cpuinfo(text, cpus)
    assert cpus.issuperset(frozenset().union(*cores, *sockets))


@settings(max_examples=30)
@given(text=junk, architecture=st.sampled_from(["x86_64", "aarch64", "ppc64le", "riscv64", "s390x", "", "²"]))
def test_any_cpuinfo_has_a_microarchitecture_of_its_architecture_or_none(text: str, architecture: str) -> None:
    found = microarchitecture(architecture, text)
    assert found is None or str(found.family) == architecture


def test_a_list_may_end_with_a_zero_byte() -> None:
    assert parse_cpu_list("0-2,8\n\0") == {0, 1, 2, 8}


# --- topology ----------------------------------------------------------------------------------------


def test_the_real_box_has_the_cores_and_sockets_lscpu_shows() -> None:
    output = subprocess.run(["lscpu", "--parse=CPU,CORE,SOCKET"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(",") for line in output.splitlines() if not line.startswith("#")]
    topology = read_topology(RealHost())
    assert topology.threads == {int(row[0]) for row in rows}
    assert (len(topology.cores), len(topology.sockets)) == (
        len({row[1] for row in rows}),
        len({row[2] for row in rows}),
    )


def test_a_file_is_read_for_each_group_only(tmp_path: Path) -> None:
    files = machine_files(cores=128, threads=2, sockets=2)
    host = RememberingHost(box(tmp_path, files))
    topology = read_topology(host)
    assert (len(topology.threads), len(topology.cores), len(topology.sockets)) == (256, 128, 2)
    assert len(host.answers()) < 150


def test_cpus_that_are_switched_off_belong_to_nothing(tmp_path: Path) -> None:
    files = {**machine_files(cores=4, threads=2), f"{SYS}/cpu/online": "1-6\n"}
    topology = read_topology(box(tmp_path, files))
    assert (topology.threads, len(topology.cores)) == (parse_cpu_list("1-6"), 4)
    assert {4} in topology.cores  # its sibling 0 is off


def test_old_kernels_tell_it_by_masks_and_a_file_for_each_cpu(tmp_path: Path) -> None:
    files = {
        f"{SYS}/cpu/cpu{cpu}/topology/{name}": f"00000000,0000000{mask}\n"
        for cpu, core in ((0, 3), (1, 3), (2, 4), (3, 8))
        for name, mask in (("thread_siblings", core), ("core_siblings", "f"))
    }
    topology = read_topology(box(tmp_path, {**files, f"{SYS}/cpu/cpu3/online": "0\n"}))
    assert topology.cores == ({0, 1}, {2})
    assert topology.sockets == ({0, 1, 2},)


def test_modules_of_amds_bulldozer_are_two_cores(tmp_path: Path) -> None:
    files = machine_files(cores=2, threads=2)
    files |= {f"{SYS}/cpu/cpu{cpu}/topology/core_id": f"{cpu}\n" for cpu in range(4)}
    files["/proc/cpuinfo"] = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 21\n"
    assert len(read_topology(box(tmp_path, files)).cores) == 4


def test_memory_without_cpus_is_told_apart(tmp_path: Path) -> None:
    files = machine_files(cores=4)
    for node, cpus in enumerate(("0-1", "2-3", "", "")):
        files[f"{SYS}/node/node{node}/cpulist"] = f"{cpus}\n"
        files[f"{SYS}/node/node{node}/meminfo"] = f"Node {node} MemTotal:       1048576 kB\n"
    fact = look(box(tmp_path, files)).fact("cpu.numa")
    assert fact.text == "2, and 2 with memory alone"
    assert fact.value[1:3] == [
        {"node": 1, "cpus": "2-3", "memory": 1 << 30},
        {"node": 2, "cpus": "", "memory": 1 << 30},
    ]


def test_a_kernel_without_numa_has_all_memory_in_one_node(tmp_path: Path) -> None:
    files = {**machine_files(cores=2), "/proc/meminfo": "MemTotal:  2048 kB\n"}
    assert look(box(tmp_path, files)).value("cpu.numa") == [{"node": 0, "cpus": "0-1", "memory": 2 << 20}]


@pytest.mark.parametrize("text", ["", "\0\0\0", "4294967295", "x" * 100_000, "-1\n"])
def test_damaged_files_cost_their_own_facts(text: str, tmp_path: Path) -> None:
    files = dict.fromkeys(machine_files(cores=4), text) | {"/proc/self/status": "Cpus_allowed_list:\t0-3\n"}
    machine = look(box(tmp_path, files))
    assert machine.value("cpu.affinity") == 4
    assert not [fact.text for fact in machine.facts if "reading it failed" in fact.text]


def test_a_box_that_tells_nothing_has_unknown_cpus(tmp_path: Path) -> None:
    machine = look(box(tmp_path, {}))
    facts = [fact for fact in machine.facts if fact.group == "cpu" and fact.id not in ("cpu.hybrid",)]
    assert {fact.state for fact in facts} == {"unknown"}


# --- what the processor is -----------------------------------------------------------------------------


def test_the_real_box_has_the_microarchitecture_archspec_says() -> None:
    found = microarchitecture(os.uname().machine, Path("/proc/cpuinfo").read_text())
    assert str(found) == str(archspec.cpu.host())


@pytest.mark.skipif(not RECORDED_PROCESSORS.is_dir(), reason="archspec came without its recorded processors")
def test_archspecs_recorded_processors_are_recognised() -> None:
    wrong = {}
    for file in RECORDED_PROCESSORS.glob("linux-*"):
        text = file.read_text()
        name = file.name.split("-", 2)[2]
        kinds = {"vendor_id": "x86_64", "CPU implementer": "aarch64", "hart": "riscv64", "POWER": "ppc64le"}
        architecture = next(architecture for mark, architecture in kinds.items() if mark in text)
        found = str(microarchitecture(architecture, text))
        if found not in (name, f"{name}le"):
            wrong[file.name] = found
    assert wrong == {}


def test_the_processor_is_named_by_its_entry_and_not_by_its_number(tmp_path: Path) -> None:
    files = {"/proc/cpuinfo": "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n"}
    fact = look(box(tmp_path, files)).fact("cpu.model")
    assert (fact.value, fact.raw) == ("POWER9, altivec supported", "cpu\t\t: POWER9, altivec supported")


# --- kinds of cores ------------------------------------------------------------------------------------


def hybrid(folder: Path, files: Mapping[str, str]) -> Fact:
    return look(box(folder, files)).fact("cpu.hybrid")


def test_fast_and_slow_cores_of_intel_are_told_apart(tmp_path: Path) -> None:
    files = machine_files(cores=12)
    files |= {"/sys/devices/cpu_core/cpus": "0-3\n", "/sys/devices/cpu_atom/cpus": "4-11\n"}
    fact = hybrid(tmp_path, files)
    assert (fact.state, fact.text) == ("attention", "4 performance (0-3), 8 efficient (4-11)")
    assert fact.value == [{"kind": "performance", "cpus": "0-3"}, {"kind": "efficient", "cpus": "4-11"}]
    assert fact.action == "mpirun -n 4 --map-by core ./program"


def test_only_the_kinds_that_are_ours_matter(tmp_path: Path) -> None:
    files = machine_files(cores=12) | {"/proc/self/status": "Cpus_allowed_list:\t0-3\n"}
    files |= {"/sys/devices/cpu_core/cpus": "0-3\n", "/sys/devices/cpu_atom/cpus": "4-11\n"}
    fact = hybrid(tmp_path, files)
    assert (fact.value, fact.state) == (None, "info")


def test_kinds_of_arm_are_told_by_their_capacity(tmp_path: Path) -> None:
    files = machine_files(cores=6)
    files |= {f"{SYS}/cpu/cpu{cpu}/cpu_capacity": "446\n" if cpu < 4 else f"{1020 + cpu - 1}\n" for cpu in range(6)}
    fact = hybrid(tmp_path, files)
    assert fact.text == "2 capacity 1024 (4-5), 4 capacity 446 (0-3)"
    assert fact.action == ""  # mpirun would begin with the slow ones


def test_kinds_of_arm_are_told_by_cpuinfo_where_nothing_else_does(tmp_path: Path) -> None:
    cpuinfo = "".join(f"processor\t: {cpu}\nCPU part\t: 0xd0{3 + 5 * (cpu > 1)}\n\n" for cpu in range(4))
    kinds = kinds_of_cores(box(tmp_path, {"/proc/cpuinfo": cpuinfo}), frozenset(range(4)))
    assert kinds.cpus == {"part 0xd03": {0, 1}, "part 0xd08": {2, 3}}


# --- control groups ------------------------------------------------------------------------------------


def test_the_tightest_quota_of_nested_groups_counts(tmp_path: Path) -> None:
    files = in_group("/a/b", {"cpu.max": "max 100000\n"}) | {"/sys/fs/cgroup/a/cpu.max": "150000 100000\n"}
    assert cpu_quota(box(tmp_path, files)) == (1.5, "/sys/fs/cgroup/a/cpu.max")


def test_in_a_hybrid_hierarchy_the_quota_is_that_of_version_1(tmp_path: Path) -> None:
    files = {
        "/proc/self/cgroup": "4:cpu,cpuacct:/job\n3:cpuset:/job\n0::/job\n",
        "/proc/self/mountinfo": "30 20 0:1 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "31 20 0:2 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "32 20 0:3 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n",
        "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "50000\n",
        "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
        "/sys/fs/cgroup/cpuset/job/cpuset.cpus": "2-3\n",
    }
    host = box(tmp_path, files)
    assert cpu_quota(host) == (0.5, "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us")
    assert cpuset_cpus(host) == cpuset_for_hwloc(host) == ({2, 3}, "/sys/fs/cgroup/cpuset/job/cpuset.cpus")


def test_an_empty_cpuset_takes_over_that_of_the_group_around_it(tmp_path: Path) -> None:
    files = in_group("/a/b", {"cpuset.cpus": "\n"}) | {"/sys/fs/cgroup/a/cpuset.cpus": "4-5\n"}
    assert cpuset_cpus(box(tmp_path, files)) == ({4, 5}, "/sys/fs/cgroup/a/cpuset.cpus")


def test_without_a_status_the_cpuset_tells_what_is_allowed(tmp_path: Path) -> None:
    files = machine_files(cores=8) | in_group("/", {"cpuset.cpus.effective": "2-4\n"})
    del files["/proc/self/status"]
    fact = look(box(tmp_path, files)).fact("cpu.affinity")
    assert (fact.value, fact.read_from) == (3, "/sys/fs/cgroup/cpuset.cpus.effective")


def test_hwloc_does_not_find_a_cpuset_that_a_container_has_under_another_name(tmp_path: Path) -> None:
    files = {
        "/proc/self/cpuset": "/docker/0a1b\n",
        "/proc/self/cgroup": "3:cpuset:/docker/0a1b\n",
        "/proc/self/mountinfo": "31 20 0:2 /docker/0a1b /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n",
        "/sys/fs/cgroup/cpuset/cpuset.cpus": "0-3\n",
    }
    host = box(tmp_path, files)
    assert cpuset_for_hwloc(host) is None
    assert cpuset_cpus(host) == ({0, 1, 2, 3}, "/sys/fs/cgroup/cpuset/cpuset.cpus")


# --- slots ---------------------------------------------------------------------------------------------


def test_a_quota_lets_mpirun_overload_the_box(tmp_path: Path) -> None:
    files = machine_files(cores=8, threads=2) | in_group("/", {"cpu.max": "150000 100000\n"})
    machine = look(box(tmp_path, files))
    assert (machine.value("cpu.cores"), machine.value("cpu.usable")) == (8, 2)
    assert slots_of(machine) == ({"4": 8, "5": 8}, "attention", "mpirun -n 2 ./program")
    assert machine.fact("cpu.slots").text == "8; 2 can run at a time"


def test_what_a_person_types_to_see_a_limit_survives_the_shell_and_root(tmp_path: Path) -> None:
    group = "/user.slice/app-org.kde.konsole\\x2d17.scope"  # as systemd writes a hyphen
    files = machine_files(cores=8) | in_group(group, {"cpu.max": "150000 100000\n", "memory.max": "1000\n"})
    files |= {"/proc/self/status": "Uid:\t0\t0\t0\t0\n", "/proc/meminfo": "MemTotal: 2000 kB\nMemFree: 1000 kB\n"}
    machine = look(box(tmp_path, files))
    for fact_id, name in (("cpu.quota", "cpu.max"), ("memory.limit", "memory.max")):
        words = shlex.split(machine.fact(fact_id).see_yourself)
        assert words == ["cat", f"/sys/fs/cgroup{group}/{name}"]
    assert machine.fact("cpu.slots").see_yourself == "mpirun --allow-run-as-root hostname | wc -l"


def test_an_affinity_mask_is_not_seen_and_left_by_binding(tmp_path: Path) -> None:
    files = machine_files(cores=4) | {"/proc/self/status": "Cpus_allowed_list:\t3\n"}
    machine = look(box(tmp_path, files))
    assert slots_of(machine) == ({"4": 4, "5": 4}, "attention", "mpirun -n 1 --bind-to none ./program")


def test_a_cpuset_of_version_2_is_unknown_to_the_hwloc_of_4_1(tmp_path: Path) -> None:
    files = machine_files(cores=8) | in_group("/", {"cpuset.cpus.effective": "0-1\n"})
    files["/proc/self/status"] = "Cpus_allowed_list:\t0-1\n"
    machine = look(box(tmp_path, files))
    assert slots_of(machine) == ({"4": 8, "5": 2}, "attention", "mpirun -n 2 --bind-to none ./program")
    assert machine.fact("cpu.slots").text == "8 in Open MPI 4, 2 in 5; 2 can run at a time"


def test_wsl_with_all_its_threads_takes_its_cores(tmp_path: Path) -> None:
    files = machine_files(cores=8, threads=2)
    files["/proc/sys/kernel/osrelease"] = "5.15.153.1-microsoft-standard-WSL2\n"
    machine = look(box(tmp_path, files))
    assert slots_of(machine) == ({"4": 8, "5": 8}, "info", "")
    assert machine.value("cpu.usable") == 16


def test_a_virtual_machine_may_show_threads_as_cores(tmp_path: Path) -> None:
    files = machine_files(cores=4) | {"/proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu hypervisor\n"}
    machine = look(box(tmp_path, files))
    assert machine.value("cpu.cores") == 4
    assert "threads of one real core" in machine.fact("cpu.cores").meaning


def test_a_raspberry_pi_without_topology_has_cores_but_hwloc_does_not_find_them(tmp_path: Path) -> None:
    cpuinfo = "".join(f"processor\t: {cpu}\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n\n" for cpu in range(4))
    files = {"/proc/cpuinfo": cpuinfo, "/proc/self/status": "Cpus_allowed_list:\t0-3\n"}
    machine = look(box(tmp_path, files))
    assert [machine.value(f"cpu.{what}") for what in ("online", "cores", "usable", "hybrid")] == [4, 4, 4, None]
    assert "--use-hwthread-cpus" in machine.fact("cpu.slots").text
    assert machine.fact("cpu.slots").state == "unknown"


def test_threads_without_cores_leave_mpirun_without_slots(tmp_path: Path) -> None:
    files = {f"{SYS}/cpu/online": "0-1\n", "/proc/self/status": "Cpus_allowed_list:\t0-1\n"}
    files |= {f"{SYS}/cpu/cpu{cpu}/topology/core_siblings_list": "0-1\n" for cpu in range(2)}
    machine = look(box(tmp_path, files))
    assert slots_of(machine) == ({"4": 0, "5": 0}, "attention", "mpirun --use-hwthread-cpus ./program")


@pytest.mark.parametrize(
    ("tasks", "slots", "state"),
    [("4", 4, "info"), ("4(x2),3", 11, "info"), ("16", 16, "attention"), ("", None, "unknown")],
)
def test_in_a_slurm_job_the_slots_are_slurms_tasks(tasks: str, slots: int | None, state: str, tmp_path: Path) -> None:
    environment = {"SLURM_JOBID": "7", "SLURM_TASKS_PER_NODE": tasks}
    fact = look(box(tmp_path, machine_files(cores=8), environment=environment)).fact("cpu.slots")
    assert fact.value == (None if slots is None else {"4": slots, "5": slots})
    assert fact.state == state


def mpirun_lines(prefix: Path, environment: Mapping[str, str]) -> int:
    """How many processes the Open MPI in `prefix` starts when nobody says a number."""
    result = subprocess.run(
        [prefix / "bin/mpirun", "--allow-run-as-root", "--bind-to", "none", "echo", "one of them"],
        env={**os.environ, "OPAL_PREFIX": str(prefix), "PRTE_MCA_plm": "isolated", **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return len(re.findall("^one of them$", result.stdout, re.MULTILINE))


def test_the_real_box_has_the_slots_a_real_mpirun_takes(wheel_copy: Path) -> None:
    assert look(RealHost()).value("cpu.slots")["5"] == mpirun_lines(wheel_copy, {})


def test_a_real_mpirun_takes_as_many_slots_of_a_recorded_box(wheel_copy: Path, tmp_path: Path) -> None:
    files = machine_files(cores=4, threads=2) | in_group(
        "/", {"cpuset.cpus.effective": "0-2,4\n", "cpu.max": "100000 100000\n"}
    )
    files["/proc/mounts"] = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
    files["/proc/self/status"] = "Cpus_allowed_list:\t0-1,4\n"  # an affinity mask that leaves out core 2
    for cpu in range(8):  # hwloc reads masks
        for new, old in (("core_cpus", "thread_siblings"), ("package_cpus", "core_siblings")):
            cpus = parse_cpu_list(files[f"{SYS}/cpu/cpu{cpu}/topology/{new}_list"])
            files[f"{SYS}/cpu/cpu{cpu}/topology/{new}"] = f"{sum(1 << one for one in cpus):x}\n"
            files[f"{SYS}/cpu/cpu{cpu}/topology/{old}"] = files[f"{SYS}/cpu/cpu{cpu}/topology/{new}"]
    slots = look(box(tmp_path, files)).value("cpu.slots")
    recorded = {
        "HWLOC_FSROOT": str(tmp_path / "root"), "HWLOC_THISSYSTEM": "1", "HWLOC_COMPONENTS": "linux,stop"
    }  # fmt: skip
    assert slots["5"] == mpirun_lines(wheel_copy, recorded) == 3


def test_names_that_only_look_like_cpus_are_none(tmp_path: Path) -> None:
    files = machine_files(cores=2) | {f"{SYS}/cpu/cpufreq/boost": "1\n", f"{SYS}/cpu/cpu999999999/online": "1\n"}
    assert read_topology(box(tmp_path, files)).threads == {0, 1}
