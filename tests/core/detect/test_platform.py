"""The layer around us, the hypervisor below, the cloud: three axes, each with its evidence, each to be overruled."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.detect import boxes
from tests.core.detect.boxes import NOW, box, recorded

from mpiwizard.core.context import Wishes
from mpiwizard.core.detect import platform, system
from mpiwizard.core.detect.clouds import find_instance, parse_kept, provider_of_cloud_id
from mpiwizard.core.detect.marks import hypervisor_flag, wsl_version
from mpiwizard.core.detect.masks import Masks
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.detect.platform import axes, check_assumption
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.detect.virtualisation import (
    cpuid_command,
    find_virtualisation,
    has_dom0_feature,
    hypervisor_of_lscpu,
    kind_by_signatures,
    kind_by_word,
)
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.host import Host, RealHost

OVERLAY = "1 0 0:80 / / rw - overlay overlay rw\n"
DISK = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
MOUNTED_FILE = "2 1 8:1 /containers/1/hosts /etc/hosts rw - ext4 /dev/sda1 rw\n"
RELEASE = {"/proc/sys/kernel/osrelease": "6.1.0-23-amd64\n"}
WSL2 = {"/proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2\n"}
AZURE = {"chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77"}
CLOUD_INIT = "/run/cloud-init/instance-data.json"
VIRTUAL = {"/proc/cpuinfo": "flags : fpu sse hypervisor lahf_lm\n"}
REAL = {"/proc/cpuinfo": "flags : fpu sse lahf_lm\n"}
CPUID = "python3 -m mpiwizard.core.detect.cpuid"


def look(host: Host, wishes: Wishes | None = None) -> Machine:
    """What the probes of platform and system alone say of a box."""
    probes = (*platform.PROBES, *system.PROBES)
    return survey_machine(boxes.context_of(host), wishes or Wishes(), None, probes, host)


def firmware(**strings: str) -> dict[str, str]:
    return {f"/sys/class/dmi/id/{name}": text + "\n" for name, text in strings.items()}


def seen(machine: Machine) -> tuple[object, ...]:
    return tuple(machine.value(f"platform.{axis}") for axis in ("layer", "virtualisation", "provider"))


# --- the layer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ("4.4.0-19041-Microsoft", 1),
        ("4.19.128-microsoft-standard", 2),
        ("5.10.60.1-microsoft-standard-WSL2", 2),
        ("6.18.35.2-microsoft-standard-WSL2", 2),
        ("6.6.0-my-own-microsoft-build", 2),
        ("6.1.0-23-amd64", 0),
        ("", 0),
    ],
)
def test_the_kernels_name_tells_wsl_and_its_version(release: str, version: int) -> None:
    assert wsl_version(release) == version


@pytest.mark.parametrize(
    ("files", "environment", "layer"),
    [
        ({"/.dockerenv": "", "/proc/self/mountinfo": OVERLAY}, {}, "docker"),
        ({"/.dockerenv": "", "/proc/self/mountinfo": DISK}, {}, "none"),
        ({"/.dockerenv": ""}, {}, "docker"),
        ({"/.dockerenv": "", "/proc/self/mountinfo": DISK + MOUNTED_FILE}, {}, "docker"),
        ({"/run/.containerenv": ""}, {}, "podman"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"/.dockerenv": "", "/run/secrets/kubernetes.io/serviceaccount/token": ""}, {}, "kubernetes"),
        ({"/var/run/secrets/kubernetes.io/serviceaccount/token": ""}, {}, "kubernetes"),
        ({}, {"APPTAINER_NAME": "mpi.sif"}, "apptainer"),
        ({}, {"SINGULARITY_NAME": "mpi.sif"}, "apptainer"),
        ({"/.singularity.d/runscript": "", "/proc/self/mountinfo": OVERLAY}, {}, "apptainer"),
        ({"/proc/self/mountinfo": DISK}, {"APPTAINER_NAME": "mpi.sif"}, "none"),
        ({"/run/systemd/container": "systemd-nspawn\n"}, {}, "systemd-nspawn"),
        ({"/run/host/container-manager": "podman\n"}, {}, "podman"),
        ({"/run/systemd/container": "rkt\n"}, {}, "container"),
        ({"/run/systemd/container": "incus\n"}, {}, "lxc"),
        ({"/run/systemd/container": "wsl\n"}, {}, "none"),
        ({"/proc/1/environ": "container=lxc\0TERM=linux\0"}, {}, "lxc"),
        ({"/proc/1/environ": "container=oci\0"}, {}, "container"),
        ({"/proc/1/environ": "container=oci\0", "/run/.containerenv": ""}, {}, "podman"),
        ({"/proc/1/environ": "container=\0"}, {}, "none"),
        ({"/proc/vz/version": ""}, {}, "openvz"),
        ({"/proc/vz/version": "", "/proc/bc/0": ""}, {}, "none"),
        ({"/proc/self/status": "Name:\tcat\nVxID: 41639\n"}, {}, "linux-vserver"),
        ({"/proc/self/status": "Name:\tcat\nVxID: 0\n"}, {}, "none"),
        ({"/proc/1/cgroup": "4:cpu:/kubepods/burstable/pod1\n"}, {}, "kubernetes"),
        ({"/proc/self/cgroup": "0::/system.slice/cri-containerd-0a1b.scope\n"}, {}, "kubernetes"),
        ({"/proc/self/cgroup": "0::/machine.slice/crio-0a1b.scope\n"}, {}, "kubernetes"),
        ({"/proc/self/cgroup": "4:cpu:/docker/0123456789ab\n"}, {}, "docker"),
        ({"/proc/self/cgroup": "0::/system.slice/docker-0123456789ab.scope\n"}, {}, "docker"),
        ({"/proc/self/cgroup": "0::/user.slice/libpod-0a1b.scope\n"}, {}, "podman"),
        ({"/proc/1/cgroup": "0::/lxc.payload.box/init.scope\n"}, {}, "lxc"),
        ({"/proc/1/cgroup": "0::/lxc.monitor.box\n"}, {}, "none"),
        ({"/proc/self/cgroup": "0::/system.slice/docker.service\n"}, {}, "none"),
        ({"/proc/1/cgroup": "0::/init.scope\n"}, {}, "none"),
        ({"/proc/self/mountinfo": "1 0 0:5 / /proc rw - proc proc rw\n"}, {}, "chroot"),
    ],
)  # fmt: skip
def test_a_layer_is_known_by_any_of_its_signs(
    tmp_path: Path, files: dict[str, str], environment: dict[str, str], layer: str
) -> None:
    fact = look(box(tmp_path, {**RELEASE, **files}, environment=environment)).fact("platform.layer")
    assert fact.value == layer
    assert fact.raw and fact.read_from and fact.see_yourself


def test_without_proc_nothing_is_said_of_the_layer(tmp_path: Path) -> None:
    fact = look(box(tmp_path, {"/etc/hostname": "node1\n"})).fact("platform.layer")
    assert (fact.value, fact.state) == (None, "unknown")


def test_a_container_inside_wsl_is_a_container_in_a_hyper_v_machine(tmp_path: Path) -> None:
    files = {"/.dockerenv": "", "/proc/self/mountinfo": OVERLAY, **WSL2}
    assert seen(look(box(tmp_path, files))) == ("docker", "hyper-v", "none")


def test_lxd_and_incus_are_lxc_and_are_named(tmp_path: Path) -> None:
    files = {**RELEASE, "/run/systemd/container": "lxc\n", "/dev/incus/sock": ""}
    assert look(box(tmp_path, files)).fact("platform.layer").text == "LXC (Incus)"


@pytest.mark.parametrize(
    ("files", "environment", "sign"),
    [
        ({"/.dockerenv": "", "/proc/self/mountinfo": DISK}, {}, "/.dockerenv"),
        ({"/proc/self/mountinfo": DISK}, {"APPTAINER_NAME": "mpi.sif"}, "$APPTAINER_NAME"),
        ({"/.dockerenv": ""}, {}, "mountinfo"),
        ({"/proc/self/mountinfo": DISK}, {"WSL_DISTRO_NAME": "Debian"}, "WSL_DISTRO_NAME"),
    ],
)
def test_a_sign_that_nothing_confirms_is_named(
    tmp_path: Path, files: dict[str, str], environment: dict[str, str], sign: str
) -> None:
    fact = look(box(tmp_path, {**RELEASE, **files}, environment=environment)).fact("platform.layer")
    (doubt,) = fact.contradictions
    assert sign in doubt


# --- the hypervisor -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "kind", "text"),
    [
        ({**REAL, **firmware(sys_vendor="LENOVO")}, "none", "none, this is the hardware itself"),
        ({**VIRTUAL, **firmware(sys_vendor="Nutanix", product_name="AHV")}, "kvm", "KVM (Nutanix AHV)"),
        ({**VIRTUAL, **firmware(product_name="RHEV Hypervisor")}, "kvm", "KVM (RHEV)"),
        ({**VIRTUAL, **firmware(sys_vendor="innotek GmbH", product_name="VirtualBox")}, "virtualbox", "VirtualBox"),
        ({**VIRTUAL, **firmware(sys_vendor="Parallels International GmbH.")}, "parallels", "Parallels"),
        ({**VIRTUAL, **firmware(bios_vendor="BHYVE")}, "bhyve", "bhyve"),
        ({**VIRTUAL, **firmware(product_name="Apple Virtualization Generic")}, "apple", "Apple Virtualization"),
        ({**VIRTUAL, "/sys/firmware/acpi/tables/FACP": "FACP\x04FIRECKFCVMFADT"}, "firecracker", "Firecracker"),
        ({**VIRTUAL, "/sys/devices/system/clocksource/clocksource0/available_clocksource": "kvm-clock tsc\n"},
         "kvm", "KVM"),
        ({**VIRTUAL, **firmware(sys_vendor="QEMU")}, "qemu", "QEMU"),
        (VIRTUAL, "other", "yes, of a kind not known here"),
        ({"/sys/hypervisor/type": "xen\n", "/proc/xen/capabilities": ""}, "xen", "Xen"),
        ({"/sys/hypervisor/type": "xen\n", "/proc/xen/capabilities": "control_d\n"},
         "none", "none, this is the hardware itself (dom0 of Xen)"),
        ({"/sys/hypervisor/type": "xen\n", "/sys/hypervisor/properties/features": "00002e05\n"},
         "none", "none, this is the hardware itself (dom0 of Xen)"),
        ({"/sys/hypervisor/type": "xen\n", "/sys/hypervisor/properties/features": "00002705\n"}, "xen", "Xen"),
        ({"/proc/cpuinfo": "vendor_id\t: User Mode Linux\n"}, "uml", "User-mode Linux"),
        ({"/proc/cpuinfo": "vendor_id       : IBM/S390\n", "/proc/sysinfo": "LPAR Name: L15\n"},
         "lpar", "LPAR (PR/SM)"),
        ({"/proc/cpuinfo": "vendor_id       : IBM/S390\n", "/proc/sysinfo": "VM00 Control Program: KVM/Linux\n"},
         "kvm", "KVM"),
        ({"/proc/cpuinfo": "platform: pSeries\nmodel: IBM pSeries (emulated by qemu)\n", "/proc/device-tree/model": ""},
         "qemu", "QEMU"),
        ({"/proc/cpuinfo": "Hardware : BCM2835\n", "/proc/device-tree/compatible": "raspberrypi,4-model-b\0brcm"},
         "none", "none, this is the hardware itself"),
        ({"/proc/device-tree/hypervisor/compatible": "linux,kvm\0"}, "kvm", "KVM"),
    ],
)  # fmt: skip
def test_a_hypervisor_is_known_by_the_files_everybody_may_read(
    tmp_path: Path, files: dict[str, str], kind: str, text: str
) -> None:
    fact = look(box(tmp_path, {**RELEASE, **files})).fact("platform.virtualisation")
    assert (fact.value, fact.text) == (kind, text)
    assert fact.raw and fact.read_from


@pytest.mark.parametrize(
    ("printed", "kind"),
    [
        ("KVMKVMKVM", "kvm"),
        ("Microsoft Hv\nKVMKVMKVM\n", "kvm"),  # KVM that plays Hyper-V for Windows
        ("Microsoft Hv\nXenVMMXenVMM", "xen"),
        ("Microsoft Hv", "hyper-v"),
        ("bhyve bhyve \n", "bhyve"),
        ("OpenBSDVMM58", "vmm"),
        ("TCGTCGTCGTCG", "qemu"),
        ("?", ""),
        ("", ""),
    ],
)
def test_the_processor_names_its_hypervisor_behind_the_one_it_plays(printed: str, kind: str) -> None:
    assert kind_by_signatures(printed) == kind


def test_the_processor_is_asked_where_files_leave_it_open(tmp_path: Path) -> None:
    host = box(tmp_path, {**RELEASE, **VIRTUAL, **firmware(sys_vendor="QEMU")}, {CPUID: {"output": "TCGTCGTCGTCG\n"}})
    fact = look(host).fact("platform.virtualisation")
    assert (fact.value, fact.read_from, fact.raw) == ("qemu", "cpuid", "TCGTCGTCGTCG")


def test_other_tools_are_believed_where_the_processor_may_not_be_asked(tmp_path: Path) -> None:
    host = box(tmp_path, {**RELEASE, **VIRTUAL}, {"systemd-detect-virt --vm": {"output": "oracle\n"}})
    assert look(host).value("platform.virtualisation") == "virtualbox"
    lscpu = box(tmp_path / "2", {**RELEASE, **VIRTUAL}, {"lscpu": {"output": "Hypervisor vendor:   VMware\n"}})
    assert look(lscpu).value("platform.virtualisation") == "vmware"


@pytest.mark.parametrize("printed", ["none", "vm-other"])
def test_a_tool_that_sees_nothing_does_not_outweigh_the_processors_flag(tmp_path: Path, printed: str) -> None:
    host = box(tmp_path, {**RELEASE, **VIRTUAL}, {"systemd-detect-virt --vm": {"output": printed + "\n"}})
    assert look(host).value("platform.virtualisation") == "other"


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({**VIRTUAL, **firmware(sys_vendor="Amazon EC2", product_name="c5.metal")}, "speak of"),
        ({**REAL, **firmware(sys_vendor="VMware, Inc.")}, "do not speak of"),
    ],
)
def test_flags_that_speak_against_the_firmware_are_named(tmp_path: Path, files: dict[str, str], word: str) -> None:
    (doubt,) = look(box(tmp_path, {**RELEASE, **files})).fact("platform.virtualisation").contradictions
    assert word in doubt


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="only x86 has the instruction cpuid")
def test_the_processor_of_this_machine_answers_what_lscpu_reads_too() -> None:
    """The tool reads the same leaf; where a security policy forbids our program, it says so by its status."""
    answer = subprocess.run(cpuid_command(RealHost()), capture_output=True, text=True, check=False)
    assert answer.returncode in (0, 1)
    if answer.returncode == 1:
        pytest.skip("no memory may be made executable here")
    flag = hypervisor_flag(Path("/proc/cpuinfo").read_text())
    assert bool(answer.stdout.strip()) == bool(flag)
    lscpu = subprocess.run(["lscpu"], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    vendor = kind_by_word(hypervisor_of_lscpu(lscpu.stdout))
    if vendor and vendor != "hyper-v":
        assert kind_by_signatures(answer.stdout) == vendor


# --- the cloud ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strings", "provider"),
    [
        ({"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine"}, "none"),
        ({"sys_vendor": "Google", "product_name": "Eve"}, "none"),  # a Chromebook
        ({"sys_vendor": "Google", "product_name": "Google Compute Engine"}, "google"),
        ({"product_serial": "GoogleCloud-0123"}, "google"),
        ({"sys_vendor": "Tencent Cloud", "product_name": "CVM"}, "tencent"),
        ({"sys_vendor": "QEMU", "chassis_asset_tag": "HUAWEICLOUD"}, "huawei"),
        ({"sys_vendor": "QEMU", "chassis_asset_tag": "OracleCloud.com"}, "oracle"),
        ({"sys_vendor": "QEMU", "chassis_vendor": "IBM:Cloud Compute Server 1.0:bx2-2x8"}, "ibm"),
        ({"sys_vendor": "OpenStack Foundation", "product_name": "OpenStack Nova"}, "openstack"),
        ({"sys_vendor": "QEMU", "chassis_asset_tag": "OpenTelekomCloud"}, "openstack"),
        ({"sys_vendor": "DigitalOcean", "product_name": "Droplet"}, "digitalocean"),
        ({"sys_vendor": "Hetzner", "product_name": "vServer"}, "hetzner"),
        ({"sys_vendor": "Linode"}, "akamai"),
        ({"sys_vendor": "Akamai"}, "akamai"),
        ({"sys_vendor": "Scaleway"}, "scaleway"),
        ({"sys_vendor": "Vultr"}, "vultr"),
        ({"sys_vendor": "UpCloud"}, "upcloud"),
        ({"product_name": "Exoscale Compute Platform"}, "exoscale"),
        ({"product_name": "CloudSigma"}, "cloudsigma"),
        ({"sys_vendor": "3DS Outscale", "product_name": "3DS Outscale VM"}, "outscale"),
        ({"sys_vendor": "Xen", "bios_version": "4.11.amazon"}, "aws"),
        ({"product_uuid": "EC2A0000-01", "product_serial": "ec2a0000-01"}, "aws"),
        ({"sys_vendor": "HPE", "product_uuid": "EC2A0000-01", "product_serial": "CZ1234"}, "none"),
    ],
)
def test_a_cloud_is_known_by_its_own_mark_only(tmp_path: Path, strings: dict[str, str], provider: str) -> None:
    fact = look(box(tmp_path, firmware(**strings))).fact("platform.provider")
    assert fact.value == provider
    assert provider == "none" or (fact.raw and "/sys/class/dmi/id/" in fact.read_from)


def test_ibms_classic_machines_are_known_by_their_disk(tmp_path: Path) -> None:
    xen = {**RELEASE, "/sys/hypervisor/type": "xen\n", **firmware(sys_vendor="Xen", product_name="HVM domU")}
    assert look(box(tmp_path, {**xen, "/dev/disk/by-label/METADATA": ""})).value("platform.provider") == "ibm"
    disks = {"/dev/disk/by-label/config-2": "", "/dev/disk/by-uuid/9796-932E": ""}
    assert look(box(tmp_path / "2", {**xen, **disks})).value("platform.provider") == "ibm"
    assert look(box(tmp_path / "3", xen)).value("platform.provider") == "none"


def test_bare_metal_of_a_cloud_is_cloud_and_not_virtual(tmp_path: Path) -> None:
    files = {**RELEASE, **REAL, **firmware(chassis_asset_tag="OracleCloud.com")}
    assert seen(look(box(tmp_path, files))) == ("none", "none", "oracle")


def test_wsl_comes_before_the_firmware_which_is_named(tmp_path: Path) -> None:
    machine = look(box(tmp_path, {**WSL2, **VIRTUAL, **firmware(**AZURE)}))
    assert seen(machine) == ("wsl2", "hyper-v", "none")
    (doubt,) = machine.fact("platform.provider").contradictions
    assert "Azure" in doubt


def test_azures_chassis_without_a_hypervisor_is_a_contradiction(tmp_path: Path) -> None:
    fact = look(box(tmp_path, {**RELEASE, **REAL, **firmware(**AZURE)})).fact("platform.provider")
    assert fact.value == "azure"
    assert len(fact.contradictions) == 1


@pytest.mark.parametrize(
    ("cloud_id", "provider"),
    [("gce", "google"), ("aws-china", "aws"), ("aliyun", "alibaba"), ("azure-gov", "azure"), ("nocloud", None)],
)
def test_without_dmi_cloud_init_tells_the_cloud(tmp_path: Path, cloud_id: str, provider: str | None) -> None:
    machine = look(box(tmp_path, {"/run/cloud-init/cloud-id": f"{cloud_id}\n"}))
    assert machine.value("platform.provider") == provider


@pytest.mark.parametrize(("cloud_id", "count"), [("hetzner", 1), ("huawei", 0), ("openstack", 0), ("nocloud", 0)])
def test_a_cloud_init_of_another_opinion_is_named(tmp_path: Path, cloud_id: str, count: int) -> None:
    files = {**firmware(chassis_asset_tag="HUAWEICLOUD"), "/run/cloud-init/cloud-id": f"{cloud_id}\n"}
    fact = look(box(tmp_path, files)).fact("platform.provider")
    assert (fact.value, len(fact.contradictions)) == ("huawei", count)


# --- the type of an instance --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "kept", "instance"),
    [
        ("aws", {"meta_data": {"instance-type": "m4.large"}}, "m4.large"),
        ("aws", {"meta-data": {"instance-type": "m4.large"}}, "m4.large"),
        ("aws", {"dynamic": {"instance-identity": {"document": {"instanceType": "t2.micro"}}}}, "t2.micro"),
        ("azure", {"meta_data": {"imds": {"compute": {"vmSize": "Standard_HB176rs_v4"}}}}, "Standard_HB176rs_v4"),
        ("alibaba", {"meta-data": {"instance": {"instance-type": "ecs.g6e.large"}}}, "ecs.g6e.large"),
        ("oracle", {"shape": "BM.HPC2.36", "hostname": "node1"}, "BM.HPC2.36"),
        ("openstack", {"ec2_metadata": {"instance-type": "m1.small"}}, "m1.small"),
        ("scaleway", {"meta_data": {"commercial_type": "DEV1-S"}}, "DEV1-S"),
        ("google", {"meta_data": {"availability-zone": "europe-west3-a"}}, None),
        ("aws", {"meta_data": {"instance-type": "redacted for non-root user"}}, None),
        ("aws", {"meta_data": ["instance-type"]}, None),
    ],
)
def test_what_cloud_init_kept_tells_the_type(
    tmp_path: Path, provider: str, kept: Mapping[str, object], instance: str | None
) -> None:
    text = json.dumps({"ds": kept})
    assert find_instance(box(tmp_path, {CLOUD_INIT: text}), provider).value == instance
    captured = Masks((), (), b"key").text(text, CLOUD_INIT)
    assert find_instance(box(tmp_path / "captured", {CLOUD_INIT: captured}), provider).value == instance


def test_firmware_tells_the_type_where_a_cloud_writes_it_there(tmp_path: Path) -> None:
    ibm = firmware(chassis_vendor="IBM:Cloud Compute Server 1.0:bx2-2x8")
    assert look(box(tmp_path, ibm)).value("platform.instance") == "bx2-2x8"
    assert recorded("ec2-efa").fact("platform.instance").raw == "c5n.18xlarge"


@pytest.mark.parametrize("kept", ["", "{broken", "[]", '{"ds": {"meta_data": {"imds": null}}}'])
def test_a_size_that_azure_did_not_leave_behind_is_unknown(tmp_path: Path, kept: str) -> None:
    fact = look(box(tmp_path, {**firmware(**AZURE), CLOUD_INIT: kept})).fact("platform.instance")
    assert (fact.value, fact.state) == (None, "unknown")


# --- what other tools say -----------------------------------------------------------------------------


def test_a_tool_that_falls_for_a_left_over_file_is_contradicted(tmp_path: Path) -> None:
    files = {**RELEASE, "/.dockerenv": "", "/proc/self/mountinfo": DISK}
    words = {"--container": "docker", "--vm": "kvm"}
    commands = {f"systemd-detect-virt {option}": {"output": f"{word}\n"} for option, word in words.items()}
    fact = look(box(tmp_path, files, commands)).fact("platform.opinion")
    assert fact.text == "systemd-detect-virt: docker, kvm"
    assert fact.contradictions == ("systemd-detect-virt says docker, but no sign of a container holds.",)


@pytest.mark.parametrize(("vendor", "count"), [("KVM", 0), ("VMware", 1), ("Klingon", 0)])
def test_a_tool_that_names_another_hypervisor_is_contradicted(tmp_path: Path, vendor: str, count: int) -> None:
    files = {**RELEASE, **VIRTUAL, **firmware(sys_vendor="KVM")}
    host = box(tmp_path, files, {"lscpu": {"output": f"Hypervisor vendor:  {vendor}\n"}})
    assert len(look(host).fact("platform.opinion").contradictions) == count


def test_without_other_tools_nothing_is_said_of_them(tmp_path: Path) -> None:
    assert "platform.opinion" not in {fact.id for fact in look(box(tmp_path, RELEASE)).facts}


def test_a_tool_that_hangs_costs_only_its_own_opinion(tmp_path: Path) -> None:
    """A recorded command that timed out: the axes are told all the same, by files."""
    host = box(tmp_path, {**RELEASE, **REAL, **firmware(sys_vendor="HPE")}, {"lscpu": {"output": ""}})
    (tmp_path / "commands/lscpu.status").write_text("timed out")
    machine = look(host)
    assert seen(machine) == ("none", "none", "none")
    assert "platform.opinion" not in {fact.id for fact in machine.facts}


# --- what the person says -----------------------------------------------------------------------------


def test_the_person_overrules_the_cloud_and_its_type_is_looked_for(tmp_path: Path) -> None:
    files = {**RELEASE, **VIRTUAL, **firmware(sys_vendor="QEMU"), CLOUD_INIT: json.dumps({"ds": {"shape": "VM.E4"}})}
    machine = look(box(tmp_path, files), Wishes(assume=(("provider", "oracle"),)))
    fact = machine.fact("platform.provider")
    assert (fact.value, fact.text, fact.state) == ("oracle", "Oracle Cloud, as you said", "info")
    assert (fact.read_from, fact.raw) == ("you", "provider=oracle")
    assert fact.contradictions == ("Found here: none that is known here.",)
    assert machine.value("platform.instance") == "VM.E4"
    assert "Oracle Cloud VM.E4" in machine.headline


def test_no_cloud_by_the_persons_word_has_no_type_of_instance(tmp_path: Path) -> None:
    assume = (("provider", "none"), ("instance", "c5.large"))
    machine = look(box(tmp_path, firmware(sys_vendor="Amazon EC2", product_name="c5.large")), Wishes(assume=assume))
    assert machine.value("platform.provider") == "none"
    assert "platform.instance" not in {fact.id for fact in machine.facts}
    assert "Found here: AWS EC2." in machine.fact("platform.provider").contradictions


def test_the_person_may_name_the_type_that_nothing_tells(tmp_path: Path) -> None:
    machine = look(box(tmp_path, firmware(product_name="Google Compute Engine")), Wishes(assume=(("instance", "h4d"),)))
    fact = machine.fact("platform.instance")
    assert (fact.text, fact.contradictions) == ("h4d, as you said", ())  # what is not known speaks against nothing


def test_later_facts_follow_a_layer_the_person_states(tmp_path: Path) -> None:
    files = {**RELEASE, **REAL, "/proc/meminfo": "MemTotal: 8000000 kB\nMemAvailable: 7000000 kB\n"}
    found = boxes.look(box(tmp_path, files))
    said = boxes.look(box(tmp_path / "2", files), Wishes(assume=(("layer", "wsl2"),)))
    assert (found.headline.startswith("Bare metal"), said.headline.startswith("WSL2")) == (True, True)
    assert said.fact("platform.layer").contradictions == ("Found here: none.",)
    assert "wslconfig" in said.fact("memory.total").meaning + said.fact("memory.total").action
    assert "wslconfig" not in found.fact("memory.total").meaning + found.fact("memory.total").action


def test_what_the_person_says_and_what_is_found_may_agree(tmp_path: Path) -> None:
    machine = look(box(tmp_path, {**RELEASE, **REAL}), Wishes(assume=(("virtualisation", "none"),)))
    assert machine.fact("platform.virtualisation").contradictions == ()


@pytest.mark.parametrize(
    ("axis", "value", "named"),
    [
        ("provider", "amazon", "aws, azure, google"),
        ("layer", "", "docker, podman"),
        ("colour", "blue", "layer, virtualisation, provider, instance"),
        ("instance", "  ", "c6i.large"),
        ("instance", "a\x1b[2J", "c6i.large"),
    ],
)
def test_what_cannot_be_said_is_refused_with_what_can(tmp_path: Path, axis: str, value: str, named: str) -> None:
    with pytest.raises(WizardError) as caught:
        check_assumption(axis, value)
    assert caught.value.exit_code == ExitCode.USAGE
    assert named in str(caught.value)


def test_every_value_that_may_be_said_is_understood(tmp_path: Path) -> None:
    host = box(tmp_path, {**RELEASE, **REAL})
    for axis in ("layer", "virtualisation", "provider"):
        for value, name in axes()[axis].items():
            check_assumption(axis, value)
            fact = look(host, Wishes(assume=((axis, value),))).fact(f"platform.{axis}")
            assert (fact.value, fact.text) == (value, f"{name}, as you said")


def test_an_assumption_that_nobody_checked_makes_its_fact_unknown_and_nothing_else(tmp_path: Path) -> None:
    machine = look(box(tmp_path, {**RELEASE, **REAL}), Wishes(assume=(("provider", "amazon"),)))
    assert machine.fact("platform.provider").state == "unknown"
    assert machine.value("platform.layer") == "none"


# --- distribution, user, clock ------------------------------------------------------------------------


def test_facts_of_the_system_show_the_lines_they_were_read_from(tmp_path: Path) -> None:
    files = {
        "/etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\nHOME_URL="https://www.debian.org/"\n',
        "/proc/1/comm": "systemd\n",
        "/proc/self/status": "Name:\tcat\nUid:\t1000\t1000\t1000\t1000\n",
        "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000:Ada Lovelace,Room 1:/home/ada:/bin/sh\n",
        "/sys/class/rtc/rtc0/since_epoch": f"{NOW:.0f}\n",
    }
    machine = look(box(tmp_path, files))
    raw = {name: machine.fact(f"platform.{name}").raw for name in ("distribution", "init", "user", "clock")}
    assert raw["distribution"] == 'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian'
    assert raw["init"] == "systemd"
    assert raw["user"] == "Uid:\t1000\t1000\t1000\t1000\nada:x:1000"
    assert raw["clock"] == "since_epoch: 1700000000, the clock of the system: 1700000000"


# --- whatever a box holds -----------------------------------------------------------------------------

words = st.sampled_from(
    ["flags\t: fpu", " hypervisor", "vendor_id: IBM/S390", "\nplatform: pSeries", "Hypervisor vendor:", "\n", ":", "\0"]
)
texts = st.one_of(st.text(), st.lists(words).map("".join), st.binary().map(lambda raw: raw.decode("utf-8", "replace")))


@settings(max_examples=100, deadline=None)
@given(texts)
def test_no_text_makes_a_parser_of_the_platform_fail(text: str) -> None:
    for parse in (
        kind_by_signatures, kind_by_word, hypervisor_of_lscpu, hypervisor_flag, provider_of_cloud_id, parse_kept,
        has_dom0_feature,
    ):  # fmt: skip
        parse(text)


class OneText(RealHost):
    """A box whose every file holds the same text, and whose programs print it."""

    def __init__(self, text: str) -> None:
        super().__init__({})
        self._text = text

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        return self._text

    def which(self, program: str) -> str | None:
        return None


@settings(max_examples=100, deadline=None)
@given(texts, st.sampled_from(["aws", "azure", "ibm", "oracle"]))
def test_no_file_makes_the_search_for_an_instance_fail(text: str, provider: str) -> None:
    assert find_instance(OneText(text), provider).read_from


def test_finding_the_platform_of_a_recorded_box_takes_no_time(tmp_path: Path) -> None:
    host = box(tmp_path, {**RELEASE, **VIRTUAL, **firmware(sys_vendor="QEMU")}, {CPUID: {"output": "KVMKVMKVM\n"}})
    started = time.monotonic()
    find_virtualisation(host)
    assert time.monotonic() - started < 0.2
