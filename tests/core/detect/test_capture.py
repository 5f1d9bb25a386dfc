"""A capture holds what detection needs to conclude the same again, and nothing that names somebody."""

from __future__ import annotations

import ipaddress
import json
import random
import shutil
import tarfile
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.detect.boxes import MACHINES, box, context_of

from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.detect import detect
from mpiwizard.core.detect.capture import capture, kept_variables
from mpiwizard.core.detect.masks import Masks
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.host import RealHost
from mpiwizard.core.recordings import RecordedHost, find_recording

KINDS = (
    "apptainer", "azure-hbv3", "bare-metal", "conda-user", "docker-cgroup-v1", "ec2-docker", "ec2-efa", "ec2-xen",
    "google",
    "laptop-hybrid", "kubernetes", "lxc", "misconfigured", "podman", "slurm-job", "wsl1-ubuntu-20.04",
    "wsl2-6.18-mirrored",
)  # fmt: skip


def replay(archive: Path, scratch: Path) -> Machine:
    scratch.mkdir()
    return detect(Context.of_recording(find_recording(archive, scratch)), Wishes())


def unpacked(archive: Path) -> str:
    """All names and contents of an archive."""
    with tarfile.open(archive) as opened:
        parts = [member.name + member.linkname for member in opened]
        for member in opened:
            if file := opened.extractfile(member) if member.isfile() else None:
                parts.append(file.read().decode("utf-8", "replace"))
    return "\n".join(parts)


def told(fact: Fact) -> tuple[str, str, object]:
    """What must be the same although names and addresses are others: id, state, and value but for its texts."""
    return fact.id, fact.state, shape(fact.value)


def shape(value: object) -> object:
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [shape(part) for part in value]
    return str if isinstance(value, str) else value


@pytest.mark.parametrize("name", KINDS)
def test_from_a_capture_the_same_is_concluded(name: str, tmp_path: Path) -> None:
    context = context_of(RecordedHost(MACHINES / name))
    kept = capture(context, tmp_path / "box.tar.gz")
    again = replay(tmp_path / "box.tar.gz", tmp_path / "scratch")
    assert [told(fact) for fact in again.facts] == [told(fact) for fact in kept.machine.facts]
    assert again.headline == kept.machine.headline
    for fact_id in ("platform.layer", "platform.virtualisation", "platform.provider", "platform.instance", "cpu.usable",
                    "kernel.single_copy", "cpu.slots", "network.fabric", "memory.shm"):  # fmt: skip
        assert again.value(fact_id) == kept.machine.value(fact_id), fact_id


def test_a_capture_of_this_box_is_replayed(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "state", tmp_path / "cache", tmp_path / "config")
    kept = capture(Context(RealHost(), folders, offline=True, patience=20), tmp_path / "box.tar.gz")
    again = replay(tmp_path / "box.tar.gz", tmp_path / "scratch")
    assert again.headline == kept.machine.headline
    assert {fact.id for fact in again.facts} == {fact.id for fact in kept.machine.facts}
    assert "/proc/cpuinfo" in kept.files
    assert "PATH" in kept.variables


SECRET_BOX = {
    "/proc/sys/kernel/hostname": "curie.lab.example.edu\n",
    "/etc/hostname": "curie\n",
    "/etc/hosts": "127.0.0.1 localhost\n203.0.113.77 curie.lab.example.edu curie\n10.20.30.40 filer01\n",
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nmarie:x:1000:1000:Marie Sklodowska,,,:/home/marie:/bin/sh\n",
    "/proc/self/status": "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nCpus_allowed_list:\t0-1\n",
    "/proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu hypervisor\nSerial\t\t: 10000000deadbeef\n",
    "/sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
    "/sys/class/dmi/id/product_uuid": "ec2a1b2c-3d4e-5f60-7182-93a4b5c6d7e8\n",
    "/sys/class/dmi/id/product_serial": "ec2a1b2c-3d4e-5f60-7182-93a4b5c6d7e8\n",
    "/sys/class/dmi/id/chassis_asset_tag": "INVENTORY-4711\n",
    "/proc/1/environ": "container=lxc\0DATABASE_PASSWORD=hunter22\0",
    "/proc/net/route": (
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
        "eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "eth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    ),
    "/proc/net/fib_trie": "Local:\n  |-- 192.168.1.23\n     /32 host LOCAL\n",
    "/proc/net/if_inet6": "20010db8000000000000000000004711 02 40 00 80     eth0\n",
    "/sys/class/net/eth0/type": "1\n",
    "/sys/class/net/eth0/flags": "0x1003\n",
    "/sys/class/net/eth0/address": "02:42:ac:11:00:02\n",
    "/proc/self/mountinfo": (
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "2 1 0:40 / /home rw - nfs4 filer01.lab.example.edu:/export/home rw,addr=10.20.30.40\n"
    ),
    "/run/cloud-init/instance-data.json": json.dumps(
        {"v1": {"cloud_name": "aws", "instance_type": "c6i.large", "local_hostname": "curie",
                "public_ssh_keys": ["ssh-ed25519 " + "A" * 60 + " marie@laptop"]}}
    ),
}  # fmt: skip
SECRETS = (
    "curie", "lab.example", "marie", "Sklodowska", "filer01", "192.168.1.23", "192.168.1.1", "0101A8C0", "10.20.30.40",
    "203.0.113.77", "2001:db8::4711", "000000004711", "02:42:ac:11:00:02", "a1b2c", "INVENTORY", "4711", "hunter22",
    "hf_verysecret", "s3cr3t", "ssh-ed25519 AAAA",
)  # fmt: skip


def test_nothing_that_names_somebody_is_in_a_capture(tmp_path: Path) -> None:
    environment = {
        "HOME": "/home/marie",
        "USER": "marie",
        "PATH": "/home/marie/bin:/mnt/c/Users/Marie Sklodowska/bin:/usr/bin",
        "UCX_TOKEN": "hf_verysecret",
        "OMPI_MCA_btl_tcp_if_include": "192.168.1.0/24",
        "SLURM_JOB_NODELIST": "curie[1-4]",
        "AWS_SECRET_ACCESS_KEY": "hf_verysecret",
        "FI_PROXY": "http://marie:s3cr3t@proxy.lab.example.edu:3128",
    }
    address = '[{"ifname": "eth0", "addr_info": [{"local": "192.168.1.23", "prefixlen": 24}]}]'
    commands = {"ip -json addr": {"output": address}}
    host = box(tmp_path / "box", SECRET_BOX, commands, environment)
    kept = capture(context_of(host), tmp_path / "out.tar.gz")
    everything = unpacked(tmp_path / "out.tar.gz")
    assert [secret for secret in SECRETS if secret.lower() in everything.lower()] == []
    assert kept.replaced.keys() >= {"host names", "user names", "addresses", "serial numbers"}
    again = replay(tmp_path / "out.tar.gz", tmp_path / "scratch")
    assert (again.value("platform.provider"), again.value("platform.layer")) == ("aws", "lxc")
    include = ipaddress.ip_network(again.value("network.include"))
    assert include.prefixlen == 24 and include.is_private


WORDY_BOX = {  # where names stand that nobody looks for them
    "/proc/sys/kernel/hostname": "radium42.polonium.example.org\n",
    "/etc/hosts": (
        "127.0.0.1 localhost # written by becquerel\n127.0.1.1 radium42.polonium.example.org radium42\n"
        "10.9.8.7 filer01 f2 f3 f4 f5 f6 f7 archive44\n"
    ),
    "/etc/resolv.conf": "search polonium.example.org\n",
    "/etc/passwd": (
        "root:x:0:0::/root:\nmarie:x:1000:1000::/home/marie:\npierre:x:1001:1001:P C:/home/pierre:\nx1:x:9:9::/:\n"
    ),
    "/proc/self/status": "Uid:\t1000\t1000\t1000\t1000\nCpus_allowed_list:\t0\n",
    "/proc/1/cgroup": "1:cpu:/kubepods/burstable/pod8a9b1c2d_1234_5678_9abc_def012345678/x\n2:x:/lxc/webbox/y\n",
    "/proc/self/mountinfo": (
        "1 0 8:1 / / rw - ext4 /dev/mapper/group-marie rw\n"
        "2 1 0:40 / /home rw - nfs4 archive44:/export/dept7 rw,addr=10.9.8.7\n"
        "3 1 0:41 / /mnt/share rw - cifs //storage9/secrets rw,username=lovelace,domain=ACME\n"
        "4 1 8:9 / /media/marie/STICK8 rw - vfat /dev/sdb1 rw\n"
    ),
    "/proc/net/route": "Iface\tDestination\tGateway\nenx0242ac110099\t00000000\t0101A8C0\n",
    "/sys/class/net/enx0242ac110099/type": "1\n",
    "/home/marie/.openmpi/mca-params.conf": "# of becquerel@lab.example.com\nbtl = tcp\nsome_password = hunter22\n",
    "/home/marie/.conda/environments.txt": "/home/lovelace/miniconda3/envs/sim\n",
    "/apps/modules/openmpi/4.1.lua": (
        'help([[ Ask Becquerel ]])\nprepend_path("PATH", "/apps/openmpi/bin")\nsetenv("LICENSE", "27000@becquerel")\n'
    ),
    "/apps/openmpi/bin/mpirun": "",
    "/run/nodes": "knot17.polonium\nknot17.polonium\nknot18.polonium\n",
    "/home/marie/.local/state/mpiwizard/runs/1/plan.json": '{"prefix": "/home/marie/mpi", "why": "becquerel"}',
}  # fmt: skip
WORDY_ENVIRONMENT = {
    "HOME": "/home/marie",
    "USER": "marie",
    "PATH": "/home/pierre/bin:/usr/local/bin:/usr/bin",
    "MODULEPATH": "/apps/modules",
    "PBS_JOBID": "17.knot1.polonium",
    "PBS_NODEFILE": "/run/nodes",
    "PBS_JOBNAME": "becquerel",
    "LSB_HOSTS": "knot19 knot20 knot20",
    "SLURM_JOB_NAME": "becquerel",
    "SLURM_SUBMIT_HOST": "knot21.cluster.local",
    "OMPI_MCA_orte_hnp_uri": "1;tcp://198.51.100.3:77",
    "MPI_CONTACT": "becquerel",
    "FI_SOMETHING": "https://becquerel.example.com/",
    "NCCL_SOCKET_IFNAME": "enx0242ac110099",
    "UCX_NOTE": "ip-10-9-8-7",
}


def test_names_are_found_wherever_they_stand(tmp_path: Path) -> None:
    commands = {
        "ip -json addr": {"output": '[{"ifname": "enx0242ac110099", "ifalias": "becquerel", "addr_info": []}]'},
        "df -P -k /home/marie": {"output": "Filesystem\narchive44:/export/dept7 1000 5 995 1% /home\n"},
        "lscpu": {"errors": "lscpu: RADIUM42 is not known to pierre"},
    }
    host = box(tmp_path / "box", WORDY_BOX, commands, WORDY_ENVIRONMENT)
    kept = capture(context_of(host), tmp_path / "out.tar.gz")
    everything = unpacked(tmp_path / "out.tar.gz").lower()
    names = ("radium42", "polonium", "becquerel", "filer01", "archive44", "marie", "pierre", "lovelace", "dept7",
             "storage9", "secrets", "acme", "stick8", "webbox", "knot", "8a9b1c2d", "0242ac110099", "10.9.8.7",
             "10-9-8-7", "198.51.100.3", "hunter22")  # fmt: skip
    assert [name for name in names if name in everything] == []
    again = replay(tmp_path / "out.tar.gz", tmp_path / "scratch")
    assert [told(fact) for fact in again.facts] == [told(fact) for fact in kept.machine.facts]
    assert again.value("environment.scheduler")["nodes"] == 2


@pytest.mark.parametrize("kind", ["advertisers", "bytes"])
def test_names_without_number_do_not_keep_a_capture_from_ending(tmp_path: Path, kind: str) -> None:
    many = "".join(f"0.0.0.0 ads{number}.tracker{number}.example.com\n" for number in range(20_000))
    places = ["/etc/hosts", "/etc/passwd"]
    if kind == "bytes":
        places.append("/proc/cpuinfo")
        many = random.Random(0).randbytes(1 << 20).decode("utf-8", "replace")
    files = {**SECRET_BOX, **{path: SECRET_BOX[path] + many for path in places}}
    begin = time.monotonic()
    capture(context_of(box(tmp_path / "box", files)), tmp_path / "out.tar.gz")
    assert time.monotonic() - begin < 8
    everything = unpacked(tmp_path / "out.tar.gz")
    assert not [secret for secret in ("curie", "tracker7", "203.0.113.77") if secret in everything]


WORDS = ("node1", "box.home", "dev.local", "usr", "login.cluster.lan", "ip-10-0-0-9.ec2.internal")


@pytest.mark.parametrize("name", WORDS)
def test_names_that_are_words_of_systems_do_no_damage(tmp_path: Path, name: str) -> None:
    user = name.partition(".")[0]
    variables = {**RecordedHost(MACHINES / "ec2-efa").environment, "USER": user, "SLURM_SUBMIT_HOST": name}
    (tmp_path / "box").mkdir()
    for part in ("root", "commands"):
        shutil.copytree(MACHINES / "ec2-efa" / part, tmp_path / "box" / part, symlinks=True)
    (tmp_path / "box" / "root/proc/sys/kernel/hostname").write_text(name + "\n")
    (tmp_path / "box" / "root/etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {name} {user}\n")
    (tmp_path / "box" / "environment.json").write_text(json.dumps(variables))
    kept = capture(context_of(RecordedHost(tmp_path / "box")), tmp_path / "out.tar.gz")
    again = replay(tmp_path / "out.tar.gz", tmp_path / "scratch")
    assert [told(fact) for fact in again.facts] == [told(fact) for fact in kept.machine.facts]
    assert again.headline == kept.machine.headline


class Asked(dict[str, str]):
    """An environment that remembers which variables it was asked for."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(variables)
        self.names: set[str] = set()

    def get(self, name: str, otherwise: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, otherwise)


def test_every_variable_that_detection_asks_for_is_kept() -> None:
    for name in ("login-node", "kubernetes", "conda-user", "slurm-job"):
        host = RecordedHost(MACHINES / name)
        host.environment = asked = Asked(host.environment)
        detect(context_of(host), Wishes())
        assert asked.names - kept_variables(dict.fromkeys(asked.names, ""), Masks([], [], b"key")).keys() == set()


def test_versions_are_no_addresses() -> None:
    masks = Masks([], [], b"key")
    for text in ("5.15.153.1-microsoft-standard-WSL2", "gcc (GCC) 13.2.1 20240912", "Open MPI v4.1.4", "std::vector"):
        assert masks.plain(text) == text


def test_a_name_that_tells_nothing_stays() -> None:
    masks = Masks(["ubuntu", "localhost"], ["root", "ec2-user"], b"key")
    assert masks.plain("ubuntu root ec2-user") == "ubuntu root ec2-user"


addresses = st.builds(ipaddress.IPv4Address, st.integers(0, 2**32 - 1))


@given(
    st.sampled_from(["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]),
    st.integers(0),
    st.integers(0),
    st.binary(min_size=1, max_size=8),
)
@settings(max_examples=100)
def test_addresses_of_one_network_stay_in_one_network(kind: str, one: int, other: int, key: bytes) -> None:
    network = ipaddress.ip_network(kind)
    first, second = (network[number % (network.num_addresses - 2) + 1] for number in (one, other))
    masks = Masks([], [], key)
    masked = [ipaddress.ip_address(masks.plain(str(address))) for address in (first, second)]
    assert all(address in network for address in masked)
    for length in (16, 20, 24):
        together = [ipaddress.ip_network((address, length), strict=False) for address in (first, second)]
        if together[0] == together[1]:
            same = {ipaddress.ip_network((address, length), strict=False) for address in masked}
            assert len(same) == 1


@given(st.text(), st.sampled_from(["/etc/hosts", "/proc/net/route", "/run/cloud-init/instance-data.json", "ip addr"]))
@settings(max_examples=100)
def test_whatever_a_file_holds_masking_ends(text: str, source: str) -> None:
    assert isinstance(Masks(["curie"], ["marie"], b"key").text(text, source), str)


@given(st.lists(addresses, min_size=1, max_size=4))
@settings(max_examples=100)
def test_no_address_comes_through_but_those_that_tell_nothing(found: list[ipaddress.IPv4Address]) -> None:
    masks = Masks([], [], b"a fixed key: one address in 65,536 is replaced by itself")
    text = masks.text("".join(f"{address} name\n" for address in found), "/etc/hosts")
    for address in found:
        if f"{address} " in text:  # loopback, netmasks and multicast, networks
            number = int(address)
            assert address.is_loopback or number >> 29 == 7 or number >> 24 == 0 or not number & 0xFF


def test_only_variables_that_detection_looks_at_are_kept() -> None:
    variables = {"PATH": "/usr/bin", "EDITOR": "vi", "FI_PROVIDER": "efa", "FI_AUTH_KEY": "x", "GITHUB_TOKEN": "x"}
    kept = kept_variables(variables, Masks([], [], b"key"))
    assert kept == {"PATH": "/usr/bin", "FI_PROVIDER": "efa", "FI_AUTH_KEY": "REPLACED"}


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out.tar.gz").write_text("mine")
    with pytest.raises(WizardError) as caught:
        capture(context_of(box(tmp_path / "box", {"/proc/version": "Linux"})), tmp_path / "out.tar.gz")
    assert caught.value.exit_code == ExitCode.USAGE
    assert (tmp_path / "out.tar.gz").read_text() == "mine"


def test_a_capture_that_is_interrupted_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_given: object, **_more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tarfile.TarFile, "add", interrupted)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with pytest.raises(KeyboardInterrupt):
        capture(context_of(box(tmp_path / "box", {"/proc/version": "Linux"})), tmp_path / "out.tar.gz")
    assert not (tmp_path / "out.tar.gz").exists()
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("name", [".tar.gz", ".hidden", "box"])
def test_whatever_an_archive_is_called_it_is_replayed(tmp_path: Path, name: str) -> None:
    (tmp_path / "out").mkdir()
    capture(context_of(box(tmp_path / "box", {"/proc/sys/kernel/osrelease": "6.1.0"})), tmp_path / "out" / name)
    assert replay(tmp_path / "out" / name, tmp_path / "scratch").value("kernel.release") == "6.1.0"


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WizardError, match="cannot be written"):
        capture(context_of(box(tmp_path / "box", {"/proc/version": "Linux"})), tmp_path / "no" / "out.tar.gz")
