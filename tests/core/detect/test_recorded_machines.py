"""Detection tells the machines apart that people really have. The recordings are in tests/machines."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.detect.boxes import MACHINES, DamagedHost, look, questions, recorded

from mpiwizard.core.context import Wishes
from mpiwizard.core.detect.facts import labels
from mpiwizard.core.detect.model import GROUPS, Fact, Machine
from mpiwizard.core.recordings import RecordedHost

ALL = sorted(path.name for path in MACHINES.iterdir() if path.is_dir())
pytestmark = pytest.mark.xdist_group("recorded machines")  # one process looks at each of them once
GIB = 1 << 30

PLATFORMS: dict[str, tuple[str, str | None, str | None, str | None]] = {
    # layer, virtualisation, provider, instance
    "alibaba": ("none", "kvm", "alibaba", None),
    "alibaba-plain": ("none", "kvm", "alibaba", None),
    "apptainer": ("apptainer", "none", "none", None),
    "azure-d4": ("none", "hyper-v", "azure", None),
    "azure-hbv3": ("none", "hyper-v", "azure", "Standard_HB120rs_v3"),
    "bare-metal": ("none", "none", "none", None),
    "conda-user": ("none", "none", "none", None),
    "debian-infiniband": ("none", "none", "none", None),
    "debian-vm": ("none", "firecracker", None, None),
    "docker-cgroup-v1": ("docker", "none", "none", None),
    "docker-quota": ("docker", "none", "none", None),
    "ec2-docker": ("docker", "kvm", "aws", "c6i.2xlarge"),
    "ec2-docker-quota": ("docker", "kvm", "aws", "c6i.2xlarge"),
    "ec2-efa": ("none", "kvm", "aws", "c5n.18xlarge"),
    "ec2-graviton": ("none", "kvm", "aws", "c7g.xlarge"),
    "ec2-metal": ("none", "none", "aws", "c5.metal"),
    "ec2-nitro": ("none", "kvm", "aws", "c6i.large"),
    "ec2-xen": ("none", "xen", "aws", None),
    "fresh-alpine": ("none", "kvm", "none", None),
    "fresh-arch": ("none", "kvm", "none", None),
    "fresh-debian": ("none", "kvm", "none", None),
    "fresh-fedora": ("none", "kvm", "none", None),
    "fresh-opensuse": ("none", "kvm", "none", None),
    "google": ("none", "kvm", "google", None),
    "hardened": ("none", "kvm", "none", None),
    "hyperv-guest": ("none", "hyper-v", "none", None),
    "kubernetes": ("kubernetes", "kvm", "google", None),
    "laptop-hybrid": ("none", "none", "none", None),
    "login-node": ("none", "none", "none", None),
    "lxc": ("lxc", "none", "none", None),
    "misconfigured": ("none", "none", "none", None),
    "openstack": ("none", "kvm", "openstack", None),
    "oracle": ("none", "kvm", "oracle", None),
    "podman": ("podman", "none", "none", None),
    "raspberry-pi": ("none", "none", "none", None),
    "slurm-job": ("none", "none", "none", None),
    "systemd-nspawn": ("systemd-nspawn", "none", "none", None),
    "vmware": ("none", "vmware", "none", None),
    "wsl1-ubuntu-20.04": ("wsl1", "none", "none", None),
    "wsl2-4.19": ("wsl2", "hyper-v", "none", None),
    "wsl2-5.10": ("wsl2", "hyper-v", "none", None),
    "wsl2-6.1": ("wsl2", "hyper-v", "none", None),
    "wsl2-6.18": ("wsl2", "hyper-v", "none", None),
    "wsl2-6.18-mirrored": ("wsl2", "hyper-v", "none", None),
    "wsl2-6.6": ("wsl2", "hyper-v", "none", None),
    "wsl2-docker-desktop": ("docker", "hyper-v", "none", None),
    "wsl2-ubuntu-22.04": ("wsl2", "hyper-v", "none", None),
    "wsl2-ubuntu-24.04-systemd": ("wsl2", "hyper-v", "none", None),
}

_ROOT = "platform.user"
_HOME_ON_NFS = {"storage.prefix", "storage.build"}
_QUOTA = "cpu.slots"  # mpirun does not see a quota
_KCMP = "kernel.single_copy"  # Docker refuses kcmp, so that Open MPI 5 drops CMA
TO_LOOK_AT: dict[str, set[str]] = {  # attention and problem: what a kind of machine brings along, and nothing else
    "alibaba": set(),
    "alibaba-plain": set(),
    "apptainer": _HOME_ON_NFS,
    "azure-d4": set(),
    "azure-hbv3": set(),
    "bare-metal": {"mpi.settings", *_HOME_ON_NFS},
    "conda-user": {"mpi.shell", "environment.libraries"},
    "debian-infiniband": {"mpi.defaults"},
    "debian-vm": {_ROOT},
    "docker-cgroup-v1": {_ROOT, "kernel.single_copy", _QUOTA},
    "docker-quota": {_ROOT, _KCMP, _QUOTA},
    "ec2-docker": {_ROOT, _KCMP, "memory.shm"},
    "ec2-docker-quota": {_ROOT, _KCMP, _QUOTA},
    "ec2-efa": {"memory.memlock"},
    "ec2-graviton": set(),
    "ec2-metal": set(),
    "ec2-nitro": set(),
    "ec2-xen": set(),
    "fresh-alpine": {_ROOT, "tool.cc", "tool.make", "tool.perl", "tool.bash"},
    "fresh-arch": {"tool.cc", "tool.make"},
    "fresh-debian": {"tool.cc", "tool.make"},
    "fresh-fedora": {"tool.cc", "tool.make", "tool.perl"},
    "fresh-opensuse": {"tool.cc", "tool.make"},
    "google": set(),
    "hardened": {"kernel.single_copy", "storage.prefix", "storage.build"},
    "hyperv-guest": set(),
    "kubernetes": {_QUOTA},
    "laptop-hybrid": {"cpu.hybrid"},
    "login-node": {_QUOTA, *_HOME_ON_NFS},
    "lxc": {"cpu.slots"},  # the hwloc of Open MPI 4.1 does not see its cpuset
    "misconfigured": {
        "platform.clock",
        "network.hostname",
        "mpi.settings",
        "storage.build",
        "storage.silent",
        "path.blanks",
        "environment.libraries",
        "environment.variables",
    },
    "openstack": set(),
    "oracle": set(),
    "podman": {_ROOT, "memory.shm"},
    "raspberry-pi": set(),
    "slurm-job": {*_HOME_ON_NFS, "environment.scheduler"},
    "systemd-nspawn": {_ROOT},
    "vmware": set(),
    "wsl1-ubuntu-20.04": {"platform.layer", "kernel.single_copy", "path.windows"},
    "wsl2-4.19": {"path.windows"},
    "wsl2-5.10": {"path.windows", "storage.times"},  # its clock stood still while the PC slept
    "wsl2-6.1": set(),
    "wsl2-6.18": set(),
    "wsl2-6.18-mirrored": {"network.mode"},
    "wsl2-6.6": {"path.windows"},
    "wsl2-docker-desktop": {_ROOT, _KCMP, "memory.shm"},
    "wsl2-ubuntu-22.04": {"path.windows"},
    "wsl2-ubuntu-24.04-systemd": {"network.mode"},
}


def test_every_recorded_machine_is_judged() -> None:
    assert sorted(PLATFORMS) == sorted(TO_LOOK_AT) == ALL


@pytest.mark.parametrize("name", ALL)
def test_layer_virtualisation_and_cloud_are_told_apart(name: str) -> None:
    machine = recorded(name)
    axes = ("layer", "virtualisation", "provider", "instance")
    assert tuple(machine.value(f"platform.{axis}") for axis in axes) == PLATFORMS[name]


@pytest.mark.parametrize("name", ALL)
def test_only_what_is_amiss_is_to_be_looked_at(name: str) -> None:
    machine = recorded(name)
    seen = {fact.id for state in ("attention", "problem") for fact in machine.of_state(state)}
    assert seen == TO_LOOK_AT[name]


@pytest.mark.parametrize(
    ("name", "headline"),
    [
        (
            "wsl2-ubuntu-22.04",
            "WSL2 on Ubuntu 22.04 · 8 usable cores · shared memory with CMA · no fast fabric",
        ),
        (
            "debian-vm",
            "Virtual machine (Firecracker) on Debian 12 · 2 usable cores · shared memory with CMA · no fast fabric",
        ),
        (
            "ec2-efa",
            "AWS EC2 c5n.18xlarge on Ubuntu 22.04 · 36 usable cores (72 threads) · shared memory with CMA · EFA",
        ),
        (
            "ec2-metal",
            "AWS EC2 c5.metal on Amazon Linux 2023 · 48 usable cores (96 threads) · "
            "shared memory with CMA · no fast fabric",
        ),
        (
            "ec2-docker-quota",
            "Docker in AWS EC2 c6i.2xlarge on Ubuntu 22.04 · 2 usable cores · "
            "shared memory with CMA (4.x only) · no fast fabric",
        ),
        (
            "docker-cgroup-v1",
            "Docker on Ubuntu 20.04 · 3 usable cores · shared memory without single copy · no fast fabric",
        ),
        (
            "bare-metal",
            "Bare metal on Rocky Linux 9.4 · 16 usable cores (32 threads) · shared memory with CMA · InfiniBand",
        ),
        (
            "azure-hbv3",
            "Azure Standard_HB120rs_v3 on AlmaLinux 8.10 · 120 usable cores · shared memory with CMA · InfiniBand",
        ),
        (
            "azure-d4",
            "Azure on Ubuntu 22.04 · 2 usable cores (4 threads) · shared memory with CMA · "
            "RDMA over Ethernet, speed not known",
        ),
        (
            "kubernetes",
            "Kubernetes in Google Cloud on Debian 12 · 4 usable cores · shared memory with CMA · no fast fabric",
        ),
        (
            "laptop-hybrid",
            "Bare metal on Ubuntu 24.04 · 12 usable cores (16 threads) · shared memory with CMA · no fast fabric",
        ),
        (
            "slurm-job",
            "Bare metal on Rocky Linux 9.4 · 8 usable cores · shared memory with CMA · InfiniBand",
        ),
    ],
)
def test_the_headline_says_it_all_in_one_sentence(name: str, headline: str) -> None:
    assert recorded(name).headline.startswith(headline)


# --- what holds for all ------------------------------------------------------------------------------


def known_facts(name: str) -> Iterator[Fact]:
    return (fact for fact in recorded(name).facts if fact.state != "unknown" and fact.group != "sources")


def says_nothing_is_there(fact: Fact) -> bool:
    return fact.value in (None, False, "none", "absent", "") or fact.value == []


@pytest.mark.parametrize("name", ALL)
def test_every_fact_has_a_label_a_group_and_only_claims_of_the_guide(name: str) -> None:
    for fact in recorded(name).facts:
        assert fact.id in labels()
        assert fact.label and fact.text and fact.group in GROUPS
        assert all(1 <= claim <= 58 for claim in fact.claims)


@pytest.mark.parametrize("name", ALL)
def test_every_known_fact_shows_what_it_was_read_from_or_rests_on_others(name: str) -> None:
    for fact in known_facts(name):
        assert fact.raw or fact.rests_on or says_nothing_is_there(fact), fact.id
        assert fact.see_yourself, fact.id


@pytest.mark.parametrize("name", ALL)
def test_the_files_that_a_fact_was_read_from_are_there(name: str) -> None:
    host = RecordedHost(MACHINES / name)
    for fact in known_facts(name):
        if not says_nothing_is_there(fact):
            paths = [part for part in re.split(r", | and ", fact.read_from) if re.fullmatch(r"/[^\s*]+", part)]
            assert [path for path in paths if not host.exists(path)] == [], fact.id


@pytest.mark.parametrize("name", ALL)
def test_facts_come_in_their_order_and_only_once(name: str) -> None:
    ids = [fact.id for fact in recorded(name).facts]
    assert ids == [fact_id for fact_id in labels() if fact_id in ids]
    groups = [GROUPS.index(fact.group) for fact in recorded(name).facts]
    assert groups == sorted(groups)


@pytest.mark.parametrize("name", ALL)
def test_an_unknown_fact_has_no_value_and_says_why(name: str) -> None:
    for fact in recorded(name).of_state("unknown"):
        assert fact.value is None
        assert fact.text.startswith("not known: ")
        assert "reading it failed" not in fact.text


@pytest.mark.parametrize("name", ALL)
def test_what_to_look_at_comes_with_a_meaning_or_an_action(name: str) -> None:
    machine = recorded(name)
    for fact in (*machine.of_state("attention"), *machine.of_state("problem")):
        assert fact.meaning or fact.action, fact.id


@pytest.mark.parametrize("name", ALL)
def test_a_conclusion_rests_on_facts_that_were_told(name: str) -> None:
    machine = recorded(name)
    told = {fact.id for fact in machine.facts}
    for fact in machine.facts:
        assert set(fact.rests_on) <= told - {fact.id}, fact.id
        assert all(contradiction.endswith(".") for contradiction in fact.contradictions), fact.id


@pytest.mark.parametrize("name", ALL)
def test_a_machine_survives_being_written_as_json(name: str) -> None:
    machine = recorded(name)
    assert msgspec.json.decode(msgspec.json.encode(machine), type=Machine) == machine


ALWAYS_TOLD = {"platform.layer", "kernel.cma", "cpu.usable", "memory.total", "network.fabric", "tool.cc"}
_TEXTS = st.one_of(
    st.binary(max_size=200),
    st.sampled_from([b"", b"-1", b"\0", b"9" * 40, b"0x", b"{}", b"[null]", b"\xff\xfe", "²٣".encode(), b"a" * 9000]),
    st.none(),  # it is gone
)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_damaged_files_and_outputs_cost_no_more_than_their_own_facts(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(ALL), "machine")
    texts = questions(name)
    damage = {}
    for question in data.draw(st.sets(st.sampled_from(sorted(texts)), min_size=1, max_size=8), "damaged"):
        text = texts[question].encode()
        cut = data.draw(st.integers(0, len(text)), "kept")
        new = data.draw(_TEXTS, "new")
        whole = new is None or data.draw(st.booleans(), "whole")
        damage[question] = new if whole else text[:cut] + (new or b"") + text[cut + 8 :]
    folders = data.draw(st.sets(st.sampled_from([path for kind, path, *_ in texts if kind == "read"]), max_size=2))
    machine = look(DamagedHost(MACHINES / name, damage, sorted(folders)))
    assert [fact.text for fact in machine.facts if "reading it failed" in fact.text] == []
    assert {fact.id for fact in machine.facts} >= ALWAYS_TOLD
    assert msgspec.json.decode(msgspec.json.encode(machine), type=Machine) == machine


# --- CPUs and memory ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "online", "affinity", "quota", "cores", "usable"),
    [
        ("debian-vm", 2, 2, None, 2, 2),
        ("docker-quota", 16, 16, 1.5, 8, 2),
        ("docker-cgroup-v1", 16, 8, 2.5, 4, 3),
        ("ec2-docker-quota", 8, 8, 2.0, 4, 2),
        ("kubernetes", 16, 16, 4.0, 8, 4),
        ("login-node", 32, 32, 4.0, 16, 4),
        ("slurm-job", 32, 8, None, 8, 8),
        ("lxc", 8, 2, None, 2, 2),
        ("laptop-hybrid", 16, 16, None, 12, 16),
        ("ec2-nitro", 2, 2, None, 1, 2),
        ("ec2-graviton", 4, 4, None, 4, 4),
        ("raspberry-pi", 4, 4, None, 4, 4),
        ("wsl2-ubuntu-24.04-systemd", 16, 16, None, 8, 16),
    ],
)
def test_usable_cpus_are_what_affinity_and_quota_leave(
    name: str, online: int, affinity: int, quota: float | None, cores: int, usable: int
) -> None:
    machine = recorded(name)
    seen = [machine.value(f"cpu.{what}") for what in ("online", "affinity", "quota", "cores", "usable")]
    assert seen == [online, affinity, quota, cores, usable]


@pytest.mark.parametrize(
    ("name", "limit", "available"),
    [
        ("docker-quota", 2 * GIB, 2 * GIB - 300_000_000),
        ("docker-cgroup-v1", 4 * GIB, 4 * GIB - 600_000_000),
        ("kubernetes", 8 * GIB, 8 * GIB - 300_000_000),
        ("slurm-job", 16 * GIB, 16 * GIB - 500_000_000),
        ("login-node", 16 * GIB, 16 * GIB - 600_000_000),
        ("debian-vm", None, 23_700 << 20),
    ],
)
def test_memory_honours_the_limit_and_what_the_group_uses_of_it(name: str, limit: int | None, available: int) -> None:
    machine = recorded(name)
    assert (machine.value("memory.limit"), machine.value("memory.available")) == (limit, available)


def test_a_small_shared_memory_is_seen_with_the_switch_that_enlarges_it() -> None:
    fact = recorded("ec2-docker").fact("memory.shm")
    assert (fact.state, fact.value["size"]) == ("attention", 64 << 20)
    assert "--shm-size" in fact.action


def test_a_low_limit_of_locked_memory_matters_where_there_is_a_fabric() -> None:
    assert recorded("ec2-efa").fact("memory.memlock").state == "attention"
    assert recorded("azure-hbv3").fact("memory.memlock").state == "ok"
    assert recorded("azure-d4").fact("memory.memlock").state == "info"
    assert recorded("ec2-nitro").fact("memory.memlock").state == "info"


# --- kernel ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "version", "yama"),
    [
        ("wsl2-4.19", [4, 19, 84], "absent"),
        ("wsl2-5.10", [5, 10, 102, 1], "absent"),
        ("wsl2-ubuntu-22.04", [5, 15, 153, 1], "absent"),
        ("wsl2-6.1", [6, 1, 21, 1], "absent"),
        ("wsl2-6.6", [6, 6, 29, 1], 1),
        ("wsl2-6.18", [6, 18, 35, 2], 1),
    ],
)
def test_cma_is_ready_on_every_kernel_of_wsl2_whatever_its_yama(name: str, version: list[int], yama: object) -> None:
    machine = recorded(name)
    assert (machine.value("kernel.version"), machine.value("kernel.yama")) == (version, yama)
    assert machine.value("kernel.config") == "y"  # though its CONFIG_CMA, which is another thing, is not set
    assert machine.value("kernel.single_copy") == {"4": "cma", "5": "cma"}
    assert machine.fact("kernel.yama").action == ""  # there is nothing to set, on none of them


@pytest.mark.parametrize(
    ("name", "cma", "kcmp", "four", "five"),
    [
        ("hyperv-guest", "works", True, "cma", "cma"),
        ("ec2-efa", "works-with-permission", True, "cma", "cma"),
        ("kubernetes", "works", True, "cma", "cma"),
        ("lxc", "works", True, "cma", "cma"),
        ("ec2-docker", "works", False, "cma", "none"),
        ("docker-quota", "works-with-permission", False, "cma", "none"),
        ("docker-cgroup-v1", "refused", False, "none", "none"),
        ("wsl1-ubuntu-20.04", "refused", False, "none", "none"),
        ("hardened", "refused", True, "none", "none"),
    ],
)
def test_which_single_copy_works_is_concluded_for_both_series(
    name: str, cma: str, kcmp: bool, four: str, five: str
) -> None:
    machine = recorded(name)
    assert (machine.value("kernel.cma"), machine.fact("kernel.kcmp").value) == (cma, kcmp)
    assert machine.value("kernel.single_copy") == {"4": four, "5": five}


def test_no_kernel_setting_is_ever_to_be_changed() -> None:
    for name in ALL:
        assert not any("sysctl" in fact.action for fact in recorded(name).facts)


def test_the_container_that_refuses_kcmp_is_told_how_to_allow_it() -> None:
    assert "--cap-add=SYS_PTRACE" in recorded("ec2-docker").fact("kernel.single_copy").action


# --- slots -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "four", "five"),
    [
        ("ec2-nitro", 1, 1),  # one for each core, not for each thread
        ("ec2-metal", 48, 48),
        ("laptop-hybrid", 12, 12),
        ("docker-quota", 8, 8),
        ("lxc", 8, 2),
        ("slurm-job", 8, 8),  # four tasks on each of two nodes
    ],
)
def test_the_slots_are_those_mpirun_would_take(name: str, four: int, five: int) -> None:
    assert recorded(name).value("cpu.slots") == {"4": four, "5": five}


@pytest.mark.parametrize(("name", "ranks"), [("docker-quota", 2), ("kubernetes", 4), ("login-node", 4), ("lxc", 2)])
def test_more_slots_than_can_run_come_with_the_number_to_give(name: str, ranks: int) -> None:
    fact = recorded(name).fact("cpu.slots")
    assert fact.state == "attention"
    assert f"mpirun -n {ranks} " in fact.action


@pytest.mark.parametrize(
    ("name", "sockets", "nodes"),
    [("ec2-metal", 2, 2), ("azure-hbv3", 2, 4), ("ec2-nitro", 1, 1), ("laptop-hybrid", 1, 1)],
)
def test_sockets_and_numa_nodes_are_counted(name: str, sockets: int, nodes: int) -> None:
    machine = recorded(name)
    assert (machine.value("cpu.sockets"), len(machine.value("cpu.numa"))) == (sockets, nodes)


def test_a_kernel_without_nodes_is_no_fault() -> None:
    assert recorded("wsl2-5.10").fact("cpu.numa").state in ("info", "ok", "unknown")  # NUMA is off there


@pytest.mark.parametrize(
    ("name", "microarchitecture"),
    [
        ("ec2-efa", "skylake_avx512"),
        ("ec2-metal", "cascadelake"),
        ("ec2-nitro", "icelake"),
        ("ec2-xen", "broadwell"),
        ("ec2-graviton", "neoverse_v1"),
        ("azure-hbv3", "zen3"),
        ("google", "zen2"),
        ("laptop-hybrid", "alderlake"),
        ("raspberry-pi", "aarch64"),  # its Cortex-A72 has no AES, which that of archspec has
    ],
)
def test_the_microarchitecture_is_named_as_archspec_does(name: str, microarchitecture: str) -> None:
    assert recorded(name).value("cpu.microarchitecture") == microarchitecture


# --- network -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "include"),
    [
        ("debian-vm", "192.0.2.0/24"),
        ("ec2-nitro", "172.31.16.0/20"),
        ("wsl2-ubuntu-22.04", "172.22.48.0/20"),
        ("wsl2-6.18-mirrored", "192.168.1.0/24"),
        ("docker-quota", "172.17.0.0/16"),
        ("podman", "10.0.2.0/24"),
        ("kubernetes", "10.244.1.0/24"),
        ("laptop-hybrid", "192.168.178.0/24"),  # not Docker's, libvirt's or the VPN's
        ("azure-d4", "10.0.0.0/24"),
        ("openstack", "10.1.4.0/22"),
        ("systemd-nspawn", "192.168.77.0/28"),  # not the one of the link alone
        ("google", None),  # its addresses stand alone, /32
    ],
)
def test_the_network_for_tcp_is_one_that_leads_to_other_boxes(name: str, include: str | None) -> None:
    assert recorded(name).value("network.include") == include


def test_a_faster_network_than_that_of_the_default_route_is_taken_and_the_other_named() -> None:
    fact = recorded("bare-metal").fact("network.include")
    assert fact.value == "10.20.0.0/16"
    assert any("eno1" in contradiction for contradiction in fact.contradictions)


def test_an_address_without_a_network_is_named_by_its_interface() -> None:
    assert "ens4" in recorded("google").fact("network.include").text


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("ec2-nitro", {"ens5": "virtual-card", "lo": "loopback"}),
        ("azure-d4", {"eth0": "virtual-card", "enP1s1": "virtual-function", "lo": "loopback"}),
        ("google", {"ens4": "virtual-card", "docker0": "docker", "lo": "loopback"}),
        ("docker-quota", {"eth0": "veth", "lo": "loopback"}),
        ("podman", {"tap0": "tunnel", "lo": "loopback"}),
        ("bare-metal", {"eno1": "physical", "ib0": "infiniband", "lo": "loopback"}),
        ("wsl2-6.18", {"eth0": "wsl-nat", "lo": "loopback"}),
        ("wsl2-6.18-mirrored", {"eth0": "wsl-mirrored", "loopback0": "wsl-mirrored", "lo": "loopback"}),
        (
            "laptop-hybrid",
            {
                "wlp0s20f3": "wireless",
                "docker0": "docker",
                "virbr0": "bridge",
                "tun0": "vpn",
                "vethab12cd3": "veth",
                "lo": "loopback",
            },
        ),
    ],
)
def test_each_interface_is_known_by_its_kind(name: str, kinds: dict[str, str]) -> None:
    interfaces = recorded(name).value("network.interfaces")
    assert {interface["name"]: interface["kind"] for interface in interfaces} == kinds


def test_without_ip_the_addresses_come_from_proc() -> None:
    interfaces = {one["name"]: one for one in recorded("docker-quota").value("network.interfaces")}
    assert interfaces["eth0"]["addresses"] == ["172.17.0.2/16"]


@pytest.mark.parametrize(
    ("name", "fabric"),
    [
        ("azure-hbv3", ["mlx5_an0: RoCE", "mlx5_ib0: InfiniBand"]),
        ("azure-d4", ["mlx5_0: RoCE"]),
        ("ec2-efa", ["rdmap0s6: EFA"]),
        ("alibaba", ["erdma_0: eRDMA"]),
        ("alibaba-plain", []),
        ("ec2-nitro", []),
        ("google", []),
    ],
)
def test_a_fabric_is_known_by_link_layer_and_driver(name: str, fabric: list[str]) -> None:
    assert recorded(name).value("network.fabric") == fabric


def test_libraries_to_build_with_are_found_where_the_vendors_put_them() -> None:
    assert recorded("ec2-efa").value("network.libfabric") == "/opt/amazon/efa"
    assert recorded("ec2-efa").value("network.providers")["version"] == "1.22.0amzn4.0"
    assert recorded("azure-hbv3").value("network.ucx") == "/opt/hpcx-v2.18-gcc/ucx"
    assert recorded("google").value("network.libfabric") is None


def test_the_mirrored_network_of_wsl_is_something_to_look_at() -> None:
    assert recorded("wsl2-6.18-mirrored").fact("network.mode").state == "attention"
    assert recorded("wsl2-6.18").fact("network.mode").state == "info"


@pytest.mark.parametrize(
    ("name", "state"), [("misconfigured", "attention"), ("ec2-nitro", "info"), ("azure-d4", "info"), ("lxc", "info")]
)
def test_a_name_that_leads_astray_is_told_from_one_that_a_name_server_knows(name: str, state: str) -> None:
    assert recorded(name).fact("network.hostname").state == state


# --- tools -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("fresh-debian", "sudo apt-get install gcc make"),
        ("fresh-fedora", "sudo dnf install gcc make perl"),
        ("fresh-opensuse", "sudo zypper install gcc make"),
        ("fresh-alpine", "apk add gcc musl-dev make perl bash"),
        ("fresh-arch", "sudo pacman -S --needed gcc make"),
    ],
)
def test_one_exact_command_installs_all_that_is_missing(name: str, command: str) -> None:
    machine = recorded(name)
    problems = machine.of_state("problem")
    assert {fact.id for fact in problems} >= {"tool.cc", "tool.make"}
    assert {fact.action for fact in problems} == {command}
    assert all(fact.value is None for fact in problems)


def test_versions_of_tools_are_read_without_the_packagers_numbers() -> None:
    machine = recorded("ec2-efa")
    versions = {tool: machine.value(f"tool.{tool}")["version"] for tool in ("cc", "make", "perl", "bash")}
    assert versions == {"cc": "11.4.0", "make": "4.3", "perl": "5.34.0", "bash": "5.1.16"}


# --- what is there already ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "installations"),
    [
        (
            "bare-metal",
            {
                "/usr/lib64/openmpi": ("Open MPI", "4.1.1"),
                "/usr/lib64/mpich": ("MPICH", "4.1.1"),
                "/opt/intel/oneapi/mpi/2021.13": ("Intel MPI", "2021.13"),
            },
        ),
        (
            "ec2-efa",
            {"/opt/amazon/openmpi": ("Open MPI", "4.1.7"), "/opt/amazon/openmpi5": ("Open MPI", "5.0.8")},
        ),
        ("vmware", {"/usr/lib64/mpi/gcc/openmpi4": ("Open MPI", "4.1.6")}),
        (
            "conda-user",
            {
                "/home/ada/miniconda3/envs/sim": ("MPICH", "4.2.2"),
                "/usr": ("Open MPI", "4.1.2"),
                "/opt/openmpi-4.1.5": ("Open MPI", "4.1.5"),
            },
        ),
    ],
)
def test_installations_are_found_where_they_usually_are(name: str, installations: dict[str, tuple[str, str]]) -> None:
    found = {one["prefix"]: (one["kind"], one["release"]) for one in recorded(name).value("mpi.installations")}
    assert found == installations


def test_an_mpi_mixed_of_three_is_said_with_what_it_breaks() -> None:
    fact = recorded("conda-user").fact("mpi.shell")
    assert fact.state == "attention"
    assert fact.value["mpirun"] == "/home/ada/miniconda3/envs/sim"
    assert fact.value["mpicc"] == "/usr"
    assert fact.value["libmpi"] == "/opt/openmpi-4.1.5/lib/libmpi.so.40"


def test_a_distributions_parameters_matter_where_there_is_a_fabric_to_turn_off() -> None:
    assert recorded("debian-infiniband").fact("mpi.defaults").state == "attention"
    assert recorded("conda-user").fact("mpi.defaults").state == "info"


def test_modules_of_a_cluster_are_listed_without_running_them() -> None:
    modules = str(recorded("login-node").value("mpi.modules"))
    assert all(name in modules for name in ("openmpi/4.1.6", "openmpi/5.0.3", "mpich/4.2.1"))
    assert "gcc" not in modules


def test_settings_that_change_every_job_are_something_to_look_at() -> None:
    fact = recorded("bare-metal").fact("mpi.settings")
    assert fact.state == "attention"
    assert [(one["name"], one["value"]) for one in fact.value] == [("pml", "ucx"), ("btl_tcp_if_include", "eno1")]


# --- hazards -----------------------------------------------------------------------------------------


def test_windows_folders_in_path_are_listed_and_counted() -> None:
    fact = recorded("wsl2-ubuntu-22.04").fact("path.windows")
    assert (fact.state, len(fact.value), fact.text) == ("attention", 4, "4 entries, 2 with blanks")
    assert recorded("wsl2-ubuntu-24.04-systemd").fact("path.windows").state == "ok"


def test_a_network_drive_is_something_to_look_at() -> None:
    machine = recorded("bare-metal")
    for fact_id in ("storage.prefix", "storage.build"):
        assert (machine.fact(fact_id).state, machine.value(fact_id)["type"]) == ("attention", "nfs4")


def test_a_prefix_on_a_windows_drive_is_something_to_look_at() -> None:
    fact = recorded("wsl2-ubuntu-22.04", Wishes(prefix="/mnt/c/src/openmpi")).fact("storage.prefix")
    assert (fact.state, fact.value["type"]) == ("attention", "9p")
    assert fact.claims == (10,)


def test_a_home_where_no_program_may_start_is_a_problem() -> None:
    assert {fact.id for fact in recorded("hardened").of_state("problem")} == {"storage.prefix", "storage.build"}


def test_a_drive_that_does_not_answer_is_named_and_costs_nothing_else() -> None:
    machine = recorded("misconfigured")
    assert machine.value("storage.silent") == ["/mnt/archive"]
    assert machine.fact("storage.prefix").state != "unknown"


def test_a_folder_of_path_with_a_blank_and_open_to_all_is_named_for_both() -> None:
    traps = recorded("misconfigured").value("path.blanks")
    assert {(trap["folder"], trap["kind"]) for trap in traps} == {
        ("/home/ada/my tools/bin", "blank"),
        ("/home/ada/my tools/bin", "writable"),
    }


def test_variables_that_change_open_mpi_are_told_from_those_that_do_not() -> None:
    fact = recorded("misconfigured").fact("environment.variables")
    assert all(name in fact.text for name in ("FI_PROVIDER", "OMPI_CC", "UCX_TLS"))
    assert "LC_ALL" not in fact.text
    for name in ("bare-metal", "slurm-job", "apptainer", "kubernetes"):
        assert recorded(name).fact("environment.variables").state == "ok"


def test_a_language_that_is_not_installed_is_said_and_no_alarm() -> None:
    assert recorded("misconfigured").value("environment.locale")["installed"] is False
    assert recorded("laptop-hybrid").value("environment.locale")["installed"] is True


@pytest.mark.parametrize(
    ("name", "files"), [("misconfigured", "info"), ("hardened", "ok"), ("ec2-nitro", "ok"), ("wsl2-4.19", "ok")]
)
def test_few_open_files_are_counted_in_ranks(name: str, files: str) -> None:
    assert recorded(name).fact("environment.files").state == files


def test_a_job_of_a_scheduler_is_known_by_its_variables_and_a_login_node_is_none() -> None:
    assert "4711" in recorded("slurm-job").fact("environment.scheduler").text
    assert recorded("login-node").fact("environment.scheduler").state == "ok"


def test_a_clock_that_stood_still_is_seen_by_files_from_the_future() -> None:
    fact = recorded("wsl2-5.10").fact("storage.times")
    assert (fact.state, fact.value) == ("attention", 5400)
    assert "wsl --shutdown" in fact.action


def test_a_hardware_clock_that_agrees_is_fine() -> None:
    assert recorded("bare-metal").fact("platform.clock").state == "ok"
    assert recorded("misconfigured").fact("platform.clock").state == "attention"
