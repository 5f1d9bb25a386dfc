"""The recorded systems of virt-what, which its authors collected and labelled: we say of each what they say.

Debian's source package is fetched and unpacked for the test, and nothing of it is kept. Of what it recorded as root,
only what everybody may read is shown to our detection: the firmware's strings without the numbers, and the name that
the instruction cpuid gives. Its scripts are read, not run.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct
from tests.core.detect.boxes import look
from tests.real.debian import fetch_source

from mpiwizard.core.detect.model import Machine
from mpiwizard.core.recordings import RecordedHost, command_file

pytestmark = pytest.mark.real

AXES = ("layer", "virtualisation", "provider")
LABELS: dict[str, tuple[str, str] | None] = {  # None: says nothing that another label does not say better
    "kvm": ("virtualisation", "kvm"),
    "lkvm": ("virtualisation", "kvm"),  # kvmtool, which is KVM without QEMU
    "nutanix_ahv": ("virtualisation", "kvm"),
    "rhev": ("virtualisation", "kvm"),
    "redhat": None,
    "qemu": ("virtualisation", "qemu"),
    "hyperv": ("virtualisation", "hyper-v"),
    "vmware": ("virtualisation", "vmware"),
    "parallels": ("virtualisation", "parallels"),
    "bhyve": ("virtualisation", "bhyve"),
    "vmm": ("virtualisation", "vmm"),
    "xen": ("virtualisation", "xen"),
    "xen-hvm": ("virtualisation", "xen"),
    "xen-domU": ("virtualisation", "xen"),
    "xen-dom0": ("virtualisation", "none"),  # the hardware itself, below which Xen lies; replaces the label xen
    "ibm_power-kvm": ("virtualisation", "kvm"),
    "ibm_power-lpar_dedicated": ("virtualisation", "powervm"),
    "ibm_power-lpar_shared": ("virtualisation", "powervm"),
    "powervm_lx86": ("virtualisation", "lx86"),
    "ibm_systemz": None,
    "ibm_systemz-zvm": ("virtualisation", "zvm"),
    "docker": ("layer", "docker"),
    "podman": ("layer", "podman"),
    "lxc": ("layer", "lxc"),
    "linux_vserver": ("layer", "linux-vserver"),
    "linux_vserver-guest": ("layer", "linux-vserver"),
    "aws": ("provider", "aws"),
    "alibaba_cloud": ("provider", "alibaba"),
    "google_cloud": ("provider", "google"),
}
NOT_COVERED = {
    "illumos-lx": "a zone of illumos, whose kernel is not Linux and only answers as if it were",
    "ldoms": "a partition of a SPARC machine, an architecture that Open MPI gave up with release 4.0",
}
FIELDS = {  # (type of structure, name dmidecode prints) -> file of the kernel; numbers of a machine are root's only
    (0, "Vendor"): "bios_vendor",
    (0, "Version"): "bios_version",
    (1, "Manufacturer"): "sys_vendor",
    (1, "Product Name"): "product_name",
    (1, "Version"): "product_version",
    (2, "Manufacturer"): "board_vendor",
    (2, "Product Name"): "board_name",
    (2, "Asset Tag"): "board_asset_tag",
    (3, "Manufacturer"): "chassis_vendor",
    (3, "Asset Tag"): "chassis_asset_tag",
}


class System(Struct, frozen=True):
    name: str
    labels: tuple[str, ...]
    machine: Machine


def labels_of(script: str) -> tuple[str, ...]:
    """The words of expected="…" in a test.sh, which may go over lines."""
    found = re.search(r'^expected="(.*?)"', script, re.MULTILINE | re.DOTALL)
    assert found is not None
    return tuple(found[1].split())


def printed_by(script: str) -> str:
    """What a script prints that consists of echo and of one `cat` with the text in it."""
    text = re.search(r"^cat <<'EOF'\n(.*?)^EOF$", script, re.MULTILINE | re.DOTALL)
    if text:
        return text[1]
    lines = (line.strip().rstrip(";") for line in script.splitlines())
    return "".join(" ".join(shlex.split(line)[1:]) + "\n" for line in lines if line.startswith("echo"))


def firmware_files(dmidecode: str) -> Iterator[tuple[str, str]]:
    """The files in /sys/class/dmi/id, from what dmidecode prints; of each type the first structure counts."""
    kind = -1
    seen: set[int] = set()
    for line in dmidecode.splitlines():
        if handle := re.match(r"Handle \w+, DMI type (\d+),", line):
            kind = -1 if int(handle[1]) in seen else int(handle[1])
            seen.add(int(handle[1]))
        name, colon, value = line.strip().partition(": ")
        if colon and (kind, name) in FIELDS and value != "Not Specified":
            yield FIELDS[kind, name], value


def record(source: Path, box: Path) -> RecordedHost:
    """A recorded box of ours from a folder of virt-what's."""
    root, commands = box / "root", box / "commands"
    shutil.copytree(source, root, ignore=shutil.ignore_patterns("sbin", "test.sh", "Makefile*"))
    commands.mkdir()
    scripts = {name: (source / "sbin" / name).read_text() for name in ("dmidecode", "uname", "virt-what-cpuid-helper")}
    firmware = root / "sys/class/dmi/id"
    for name, value in firmware_files(printed_by(scripts["dmidecode"])):
        firmware.mkdir(parents=True, exist_ok=True)
        (firmware / name).write_text(value + "\n")
    answers = {
        ("uname", "-m"): printed_by(scripts["uname"]),
        ("python3", "-m", "mpiwizard.core.detect.cpuid"): printed_by(scripts["virt-what-cpuid-helper"]),
    }
    for argv, output in answers.items():
        (commands / command_file(argv)).write_text(output)
    return RecordedHost(box)


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> tuple[System, ...]:
    package = fetch_source("virt-what", tmp_path_factory.mktemp("virt-what"))
    boxes = tmp_path_factory.mktemp("boxes")
    return tuple(
        System(path.parent.name, labels_of(path.read_text()), look(record(path.parent, boxes / path.parent.name)))
        for path in sorted(package.rglob("tests/*/test.sh"))
    )


def expected(labels: tuple[str, ...]) -> dict[str, str]:
    """What the labels say on our axes. Raises KeyError for a label nobody has thought about."""
    said = [LABELS[label] for label in labels]
    return dict(one for one in said if one is not None)


def test_we_agree_with_virt_what_on_every_system_our_axes_cover(systems: tuple[System, ...]) -> None:
    wrong = []
    for system in systems:
        if system.name in NOT_COVERED:
            continue
        labelled = expected(system.labels)
        for axis in AXES:
            seen = system.machine.value(f"platform.{axis}")
            # virt-what says nothing where there is nothing, and where it cannot tell: then we may not name anything.
            right = seen == labelled[axis] if axis in labelled else seen in ("none", None)
            if not right:
                wrong.append((system.name, axis, labelled.get(axis), seen))
    assert wrong == []


def test_the_list_of_systems_that_no_axis_covers_is_exact(systems: tuple[System, ...]) -> None:
    uncovered = {system.name for system in systems if not set(system.labels) <= set(LABELS)}
    assert uncovered == set(NOT_COVERED)
    assert len(systems) - len(uncovered) >= 38
    for system in systems:
        if system.name in uncovered:  # and of these we claim no hypervisor and no cloud
            assert system.machine.value("platform.virtualisation") in ("none", None)
            assert system.machine.value("platform.provider") in ("none", None)


def test_bare_metal_is_known_to_be_that(systems: tuple[System, ...]) -> None:
    kinds = {system.name: system.machine.value("platform.virtualisation") for system in systems}
    bare = {"baremetal", "aws-baremetal-x86", "ppc64-baremetal", "rhel5-xen-dom0", "lxc", "linux-vserver"}
    assert {name for name, kind in kinds.items() if kind == "none"} >= bare


def test_the_type_of_an_instance_is_read_where_the_firmware_has_it(systems: tuple[System, ...]) -> None:
    types = {system.name: system.machine.value("platform.instance") for system in systems}
    named = {name: kind for name, kind in types.items() if kind is not None}
    assert named == {"aws-baremetal-x86": "i3.metal", "aws-kvm-arm": "a1.medium", "aws-kvm-x86": "c5.large"}


def test_every_conclusion_about_them_shows_its_evidence(systems: tuple[System, ...]) -> None:
    for system in systems:
        for axis in AXES:
            fact = system.machine.fact(f"platform.{axis}")
            assert fact.state == "unknown" or fact.value == "none" or (fact.raw and fact.read_from), system.name
