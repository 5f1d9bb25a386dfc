"""Detection tells the machines apart that people really have. The recordings are in tests/machines."""

from __future__ import annotations

import msgspec
import pytest
from tests.core.detect.boxes import MACHINES, recorded

from mpiwizard.core.context import Wishes
from mpiwizard.core.detect.facts import labels
from mpiwizard.core.detect.model import GROUPS, Machine

ALL = sorted(path.name for path in MACHINES.iterdir() if path.is_dir())
GIB = 1 << 30


@pytest.mark.parametrize(
    ("name", "layer", "virtualisation", "provider", "instance"),
    [
        ("debian-vm", "none", "firecracker", None, None),
        ("wsl2-ubuntu-22.04", "wsl2", "hyper-v", "none", None),
        ("wsl2-ubuntu-24.04-systemd", "wsl2", "hyper-v", "none", None),
        ("wsl1-ubuntu-20.04", "wsl1", "none", "none", None),
        ("ec2-nitro", "none", "kvm", "aws", "c6i.large"),
        ("ec2-efa", "none", "kvm", "aws", "c5n.18xlarge"),
        ("ec2-docker", "docker", "kvm", "aws", "c6i.2xlarge"),
        ("ec2-xen", "none", "xen", "aws", None),
        ("ec2-metal", "none", "none", "aws", "c5.metal"),
        ("ec2-graviton", "none", "kvm", "aws", "c7g.xlarge"),
        ("azure-hbv3", "none", "hyper-v", "azure", "Standard_HB120rs_v3"),
        ("azure-d4", "none", "hyper-v", "azure", None),
        ("hyperv-guest", "none", "hyper-v", "none", None),
        ("google", "none", "kvm", "google", None),
        ("alibaba", "none", "kvm", "alibaba", None),
        ("vmware", "none", "vmware", "none", None),
        ("bare-metal", "none", "none", "none", None),
        ("docker-quota", "docker", "none", "none", None),
        ("docker-cgroup-v1", "docker", "none", "none", None),
        ("podman", "podman", "none", "none", None),
        ("lxc", "lxc", "none", "none", None),
        ("fresh-debian", "none", "kvm", "none", None),
    ],
)
def test_layer_virtualisation_and_cloud_are_told_apart(
    name: str, layer: str, virtualisation: str, provider: str | None, instance: str | None
) -> None:
    machine = recorded(name)
    seen = [machine.value(f"platform.{axis}") for axis in ("layer", "virtualisation", "provider", "instance")]
    assert seen == [layer, virtualisation, provider, instance]


@pytest.mark.parametrize(
    ("name", "headline"),
    [
        ("wsl2-ubuntu-22.04", "WSL2 on Ubuntu 22.04 · 8 usable cores · shared memory with CMA · no fast fabric"),
        (
            "debian-vm",
            "Virtual machine (Firecracker) on Debian 12 · 2 usable cores · shared memory with CMA · no fast fabric",
        ),
        (
            "ec2-efa",
            "AWS EC2 c5n.18xlarge on Ubuntu 22.04 · 36 usable cores (72 threads) · shared memory with CMA · EFA",
        ),
        (
            "ec2-docker",
            "Docker in AWS EC2 c6i.2xlarge on Ubuntu 22.04 · 4 usable cores (8 threads) · "
            "shared memory with CMA · no fast fabric",
        ),
        (
            "docker-cgroup-v1",
            "Docker on Ubuntu 20.04 · 3 usable cores · shared memory without CMA · no fast fabric",
        ),
        (
            "bare-metal",
            "Bare metal on Rocky Linux 9.4 · 16 usable cores (32 threads) · shared memory with CMA · InfiniBand",
        ),
        (
            "azure-d4",
            "Azure on Ubuntu 22.04 · 2 usable cores (4 threads) · shared memory with CMA · "
            "RDMA over Ethernet, speed not known",
        ),
    ],
)
def test_the_headline_says_it_all_in_one_sentence(name: str, headline: str) -> None:
    assert recorded(name).headline == headline


@pytest.mark.parametrize("name", ALL)
def test_every_fact_has_a_label_a_group_and_a_way_to_see_it_oneself(name: str) -> None:
    machine = recorded(name)
    for fact in machine.facts:
        assert fact.id in labels()
        assert fact.label and fact.text and fact.group in GROUPS
        assert fact.see_yourself or fact.group == "sources", fact.id
        assert all(1 <= claim <= 58 for claim in fact.claims)


@pytest.mark.parametrize("name", ALL)
def test_facts_come_in_the_order_of_groups_and_only_once(name: str) -> None:
    facts = recorded(name).facts
    positions = [GROUPS.index(fact.group) for fact in facts]
    assert positions == sorted(positions)
    assert len({fact.id for fact in facts}) == len(facts)


@pytest.mark.parametrize("name", ALL)
def test_an_unknown_fact_has_no_value_and_says_why(name: str) -> None:
    for fact in recorded(name).of_state("unknown"):
        assert fact.value is None
        assert fact.text.startswith("not known: ")


@pytest.mark.parametrize("name", ALL)
def test_what_to_look_at_comes_with_a_meaning_or_an_action(name: str) -> None:
    machine = recorded(name)
    for fact in (*machine.of_state("attention"), *machine.of_state("problem")):
        assert fact.meaning or fact.action, fact.id


@pytest.mark.parametrize("name", ALL)
def test_a_conclusion_rests_on_facts_that_were_told_before(name: str) -> None:
    told: set[str] = set()
    for fact in recorded(name).facts:
        assert set(fact.rests_on) <= told | {"memory.limit"}, fact.id
        told.add(fact.id)


@pytest.mark.parametrize("name", ALL)
def test_a_machine_survives_being_written_as_json(name: str) -> None:
    machine = recorded(name)
    assert msgspec.json.decode(msgspec.json.encode(machine), type=Machine) == machine


def test_a_recorded_box_does_not_ask_the_network() -> None:
    machine = recorded("google")
    sources = [fact for fact in machine.facts if fact.group == "sources"]
    assert len(sources) == 4
    assert {fact.state for fact in sources} == {"unknown"}


# --- CPUs and memory ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "online", "affinity", "quota", "cores", "usable"),
    [
        ("debian-vm", 2, 2, None, 2, 2),
        ("docker-quota", 16, 16, 1.5, 8, 2),
        ("docker-cgroup-v1", 16, 8, 2.5, 8, 3),
        ("lxc", 8, 2, None, 2, 2),
        ("ec2-nitro", 2, 2, None, 1, 2),
        ("ec2-graviton", 4, 4, None, 4, 4),
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


# --- kernel ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "yama", "cma", "kcmp"),
    [
        ("wsl2-ubuntu-22.04", "absent", "works", True),
        ("wsl2-ubuntu-24.04-systemd", 1, "works-with-permission", True),
        ("hyperv-guest", 0, "works", True),
        ("docker-cgroup-v1", 1, "refused", False),
        ("ec2-docker", "absent", "works", False),
        ("wsl1-ubuntu-20.04", "absent", "refused", False),
    ],
)
def test_cma_is_what_the_trial_showed(name: str, yama: object, cma: str, kcmp: bool) -> None:
    machine = recorded(name)
    assert (machine.value("kernel.yama"), machine.value("kernel.cma")) == (yama, cma)
    assert machine.fact("kernel.kcmp").value is kcmp


def test_a_yama_of_one_is_left_alone() -> None:
    fact = recorded("wsl2-ubuntu-24.04-systemd").fact("kernel.yama")
    assert (fact.state, fact.action) == ("ok", "")


def test_a_refused_kcmp_matters_only_where_cma_works() -> None:
    assert recorded("ec2-docker").fact("kernel.kcmp").state == "attention"
    assert recorded("docker-cgroup-v1").fact("kernel.kcmp").state == "info"


# --- network -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "include"),
    [
        ("debian-vm", "192.0.2.0/24"),
        ("ec2-nitro", "172.31.16.0/20"),
        ("wsl2-ubuntu-22.04", "172.22.48.0/20"),
        ("docker-quota", "172.17.0.0/16"),
        ("podman", "10.0.2.0/24"),
        ("bare-metal", "10.20.0.0/16"),  # the faster of two
        ("google", None),  # its addresses stand alone, /32
    ],
)
def test_the_network_for_tcp_is_the_fastest_that_leads_to_other_boxes(name: str, include: str | None) -> None:
    assert recorded(name).value("network.include") == include


def test_an_address_without_a_network_is_named_by_its_interface() -> None:
    assert "ens4" in recorded("google").fact("network.include").text


def test_without_ip_the_addresses_come_from_proc() -> None:
    interfaces = {one["name"]: one for one in recorded("docker-quota").value("network.interfaces")}
    assert interfaces["eth0"]["addresses"] == ["172.17.0.2/16"]
    assert interfaces["lo"]["kind"] == "loopback"


@pytest.mark.parametrize(
    ("name", "fabric"),
    [
        ("azure-hbv3", ["mlx5_an0: RoCE", "mlx5_ib0: InfiniBand"]),
        ("azure-d4", ["mlx5_0: RoCE"]),
        ("ec2-efa", ["rdmap0s6: EFA"]),
        ("alibaba", ["erdma_0: eRDMA"]),
        ("ec2-nitro", []),
    ],
)
def test_a_fabric_is_known_by_link_layer_and_driver(name: str, fabric: list[str]) -> None:
    assert recorded(name).value("network.fabric") == fabric


def test_a_low_limit_of_locked_memory_matters_where_there_is_a_fabric() -> None:
    assert recorded("ec2-efa").fact("network.memlock").state == "attention"
    assert recorded("azure-hbv3").fact("network.memlock").state == "ok"
    assert recorded("ec2-nitro").fact("network.memlock").value is None


def test_libraries_to_build_with_are_found_where_the_vendors_put_them() -> None:
    assert recorded("ec2-efa").value("network.libfabric") == "/opt/amazon/efa"
    assert recorded("azure-hbv3").value("network.ucx") == "/opt/hpcx-v2.18-gcc/ucx"
    assert recorded("google").value("network.libfabric") is None


def test_the_mirrored_network_of_wsl_is_something_to_look_at() -> None:
    assert recorded("wsl2-ubuntu-24.04-systemd").fact("network.mode").state == "attention"
    assert recorded("wsl2-ubuntu-22.04").fact("network.mode").state == "info"


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


def test_windows_folders_in_path_are_listed_and_counted() -> None:
    fact = recorded("wsl2-ubuntu-22.04").fact("path.windows")
    assert (fact.state, len(fact.value), fact.text) == ("attention", 4, "4 entries, 2 with blanks")
    assert recorded("wsl2-ubuntu-24.04-systemd").fact("path.windows").state == "ok"


def test_versions_of_tools_are_read_without_the_packagers_numbers() -> None:
    machine = recorded("debian-vm")
    versions = {tool: machine.value(f"tool.{tool}")["version"] for tool in ("cc", "make", "perl", "bash")}
    assert versions == {"cc": "12.2.0", "make": "4.3", "perl": "5.34.0", "bash": "5.1.16"}


# --- what is there already ---------------------------------------------------------------------------


def test_installations_are_found_where_they_usually_are() -> None:
    found = {one["prefix"]: (one["kind"], one["release"]) for one in recorded("bare-metal").value("mpi.installations")}
    assert found == {
        "/usr/lib64/openmpi": ("Open MPI", "4.1.1"),
        "/usr/lib64/mpich": ("MPICH", "4.1.1"),
        "/opt/intel/oneapi/mpi/2021.13": ("Intel MPI", "2021.13"),
    }


def test_vendors_installations_are_found() -> None:
    prefixes = [one["prefix"] for one in recorded("ec2-efa").value("mpi.installations")]
    assert prefixes == ["/opt/amazon/openmpi", "/opt/amazon/openmpi5"]


def test_settings_that_change_every_job_are_something_to_look_at() -> None:
    fact = recorded("bare-metal").fact("mpi.settings")
    assert fact.state == "attention"
    assert [(one["name"], one["value"]) for one in fact.value] == [("pml", "ucx"), ("btl_tcp_if_include", "eno1")]


# --- storage -----------------------------------------------------------------------------------------


def test_a_network_drive_is_something_to_look_at() -> None:
    machine = recorded("bare-metal")
    for fact_id in ("storage.prefix", "storage.build"):
        assert (machine.fact(fact_id).state, machine.value(fact_id)["type"]) == ("attention", "nfs4")


def test_a_prefix_on_a_windows_drive_is_something_to_look_at() -> None:
    fact = recorded("wsl2-ubuntu-22.04", Wishes(prefix="/mnt/c/src/openmpi")).fact("storage.prefix")
    assert (fact.state, fact.value["type"]) == ("attention", "9p")
    assert fact.claims == (10,)


def test_a_hardware_clock_that_agrees_is_fine() -> None:
    assert recorded("bare-metal").fact("platform.clock").state == "ok"
