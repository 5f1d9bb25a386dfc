"""The systems that cloud-init's authors made up or met to test its recognition of clouds: we name the same clouds.

Debian's source package is fetched for the test, and nothing of it is kept. Its test file is read, not run: of each
system the files of the firmware, the labels of its disks and the name of the data source that must be found.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from msgspec import Struct
from tests.core.detect.boxes import box, look
from tests.real.debian import fetch_source

pytestmark = pytest.mark.real

CLOUDS = {
    "AliYun": "alibaba", "Azure-dmi-detection": "azure", "Ec2-hvm": "aws", "Ec2-xen": "aws", "GCE": "google",
    "GCE-serial": "google", "OpenStack": "openstack", "OpenStack-OpenTelekom": "openstack",
    "OpenStack-SAPCCloud": "openstack", "OpenStack-HuaweiCloud": "huawei", "OpenStack-AssetTag-Nova": "openstack",
    "OpenStack-AssetTag-Compute": "openstack", "Hetzner": "hetzner", "IBMCloud-metadata": "ibm",
    "IBMCloud-config-2": "ibm", "Oracle": "oracle", "Ec2-Outscale": "outscale",
    # Clouds that speak EC2's language, or only look so: not Amazon's.
    "Ec2-brightbox": "none", "Ec2-brightbox-negative": "none", "Ec2-ZStack": "none", "Ec2-E24Cloud": "none",
    "Ec2-E24Cloud-negative": "none", "Ec2-Outscale-negative-sysvendor": "none",
    "Ec2-Outscale-negative-productname": "none",
}  # fmt: skip
NOT_COVERED = {
    "Azure-seed-detection": "a file somebody put there",
    "ConfigDrive": "a disk with settings, which many clouds and private hosts give",
    "IBMCloud-nodisks": "known to cloud-init only while the machine is made ready",
    "Hetzner": "told by a command of FreeBSD, or by dmidecode as root alone",
    "LXD": "a manager of containers and virtual machines on any host",
    "NWCS": "a cloud nobody has asked for",
    "NoCloud": "files somebody put there",
    "OVF": "a way to hand settings to a guest of VMware",
    "RbxCloud": "a cloud nobody has asked for",
    "SmartOS": "zones and guests of illumos",
    "VMware": "a hypervisor, told on another axis",
}


class System(Struct, frozen=True):
    name: str
    files: dict[str, str]
    disks: dict[str, set[str]]  # LABEL and UUID -> those of all disks


def constants(sources: Path) -> dict[str, str]:
    """The texts that modules of cloud-init give a name of capitals: NAME = "text"."""
    found: dict[str, str] = {}
    for path in (sources / "cloudinit" / "sources").glob("DataSource*.py"):
        found.update(re.findall(r'^([A-Z_]+) = "([^"]*)"$', path.read_text(), re.MULTILINE))
    return found


def text_of(node: ast.expr, named: dict[str, str]) -> str | None:
    """The text an expression stands for, as far as it is one."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return named.get(node.id)
    if isinstance(node, ast.Attribute):
        return named.get(node.attr)
    if isinstance(node, ast.BinOp):
        left, right = text_of(node.left, named), text_of(node.right, named)
        return left + right if left is not None and right is not None else None
    return None


def read_systems(sources: Path) -> list[System]:
    module = ast.parse((sources / "tests" / "unittests" / "test_ds_identify.py").read_text())
    named = constants(sources)
    table: ast.expr | None = None
    for statement in module.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if name == "VALID_CFG":
                table = statement.value
            elif (text := text_of(statement.value, named)) is not None:
                named[name] = text
    assert isinstance(table, ast.Dict)
    entries = zip(table.keys, table.values, strict=True)
    return [read_system(text_of(key, named) or "", value, named) for key, value in entries if key]


def read_system(name: str, value: ast.expr, named: dict[str, str]) -> System:
    files: dict[str, str] = {}
    disks: dict[str, set[str]] = {"LABEL": set(), "UUID": set()}
    for node in ast.walk(value):
        if not isinstance(node, ast.Dict):
            continue
        for key, part in zip(node.keys, node.values, strict=True):
            left = text_of(key, named) if key else None
            right = text_of(part, named)
            if left and right and left.startswith("sys/"):
                files["/" + left] = right
            elif left in disks and right:
                disks[left].add(right)
    return System(name, files, disks)


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> list[System]:
    return read_systems(fetch_source("cloud-init", tmp_path_factory.mktemp("cloud-init")))


def is_left_out(name: str) -> bool:
    return name not in CLOUDS and any(name == known or name.startswith(known) for known in NOT_COVERED)


def test_we_name_the_cloud_of_every_system_that_shows_one(systems: list[System], tmp_path: Path) -> None:
    wrong = []
    for system in systems:
        if system.name not in CLOUDS:
            continue
        links = {f"/dev/disk/by-{kind.lower()}/{name}": "" for kind, names in system.disks.items() for name in names}
        xen = {"/sys/hypervisor/type": "xen\n"} if system.name.startswith(("IBM", "Ec2-xen")) else {}
        files = {"/proc/cpuinfo": "processor: 0\nflags: hypervisor\n", "/sys/class/dmi/id/bios_vendor": "x\n"}
        found = look(box(tmp_path / system.name, {**files, **xen, **links, **system.files}))
        if found.value("platform.provider") != CLOUDS[system.name]:
            wrong.append((system.name, CLOUDS[system.name], found.value("platform.provider")))
    assert wrong == []


def test_every_system_is_named_or_left_out_with_a_reason(systems: list[System]) -> None:
    names = {system.name for system in systems}
    assert names >= set(CLOUDS)
    assert [name for name in sorted(names - set(CLOUDS)) if not is_left_out(name)] == []
    left_out = [name for name in names if is_left_out(name)]
    assert [known for known in NOT_COVERED if not any(name.startswith(known) for name in left_out)] == []
