"""The cloud a machine is rented from and the type it is rented as, by what lies on the machine itself.

The metadata service of a cloud is never asked: cloud-init has done so at the start, and keeps the answer in a file.
Marks are those of cloud-init's ds-identify where nothing else is said.
"""

from __future__ import annotations

import json
import re
from typing import Any

from mpiwizard.core.detect.facts import first_line
from mpiwizard.core.detect.marks import DMI, RELEASE, Finding, Mark, find_mark, read_dmi, wsl_version
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

PROVIDER_NAMES = {
    "aws": "AWS EC2",
    "azure": "Azure",
    "google": "Google Cloud",
    "alibaba": "Alibaba Cloud",
    "tencent": "Tencent Cloud",
    "huawei": "Huawei Cloud",
    "oracle": "Oracle Cloud",
    "ibm": "IBM Cloud",
    "digitalocean": "DigitalOcean",
    "hetzner": "Hetzner",
    "openstack": "OpenStack",
    "akamai": "Akamai (Linode)",
    "cloudsigma": "CloudSigma",
    "exoscale": "Exoscale",
    "outscale": "3DS Outscale",
    "scaleway": "Scaleway",
    "upcloud": "UpCloud",
    "vultr": "Vultr",
}
CLOUD_INIT = "/run/cloud-init/instance-data.json"  # everybody may read it, secrets are left out
_CLOUD_ID = "/run/cloud-init/cloud-id"
_XEN_UUID = "/sys/hypervisor/uuid"
_DISKS = "/dev/disk"

_MARKS: tuple[Mark, ...] = (
    ("aws", {"sys_vendor": "Amazon EC2"}),
    ("aws", {"bios_vendor": "Amazon EC2"}),
    ("aws", {"bios_version": r".*\.amazon"}),  # the types upon Xen, as virt-what knows them
    # Any Hyper-V guest has Microsoft's other strings; this one only Azure's.
    ("azure", {"chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77"}),
    ("google", {"product_name": "Google Compute Engine"}),
    ("google", {"product_serial": "GoogleCloud-.*"}),
    ("alibaba", {"product_name": "Alibaba Cloud ECS"}),
    ("alibaba", {"sys_vendor": ".*Alibaba Cloud.*"}),  # virt-what
    ("tencent", {"sys_vendor": "Tencent Cloud"}),  # seen in dmidecode's output by others
    ("huawei", {"sys_vendor": "Huawei Cloud"}),  # the same
    ("huawei", {"chassis_asset_tag": "HUAWEICLOUD"}),
    ("oracle", {"chassis_asset_tag": r"OracleCloud\.com"}),
    ("ibm", {"chassis_vendor": "IBM:Cloud Compute Server.*"}),  # VPC; Coroot's node agent and cnquery know it so
    ("digitalocean", {"sys_vendor": "DigitalOcean"}),
    ("hetzner", {"sys_vendor": "Hetzner"}),
    ("akamai", {"sys_vendor": "Linode|Akamai"}),
    ("cloudsigma", {"product_name": "CloudSigma"}),
    ("exoscale", {"product_name": "Exoscale.*"}),
    ("outscale", {"sys_vendor": "3DS Outscale", "product_name": "3DS Outscale VM"}),
    ("scaleway", {"sys_vendor": "Scaleway"}),
    ("upcloud", {"sys_vendor": "UpCloud"}),
    ("vultr", {"sys_vendor": "Vultr"}),
    ("openstack", {"product_name": "OpenStack.*"}),
    ("openstack", {"chassis_asset_tag": "OpenStack (Nova|Compute)|OpenTelekomCloud|SAP CCloud VM"}),
)
_CLOUD_IDS = {"gce": "google", "aliyun": "alibaba", "ibmcloud": "ibm", "tencentcloud": "tencent"}
_INSTANCE_KEYS = {  # below `ds` of the file cloud-init keeps: where each of its data sources puts the type
    "aws": (("meta_data", "instance_type"), ("dynamic", "instance_identity", "document", "instanceType")),
    "azure": (("meta_data", "imds", "compute", "vmSize"),),
    "alibaba": (("meta_data", "instance", "instance_type"),),
    "oracle": (("shape",),),
    "openstack": (("ec2_metadata", "instance_type"),),
    "scaleway": (("meta_data", "commercial_type"),),
}


def find_provider(host: Host) -> Finding:
    """ "none" for no cloud that is known here, None when there is no telling."""
    dmi = read_dmi(host)
    marked = find_mark(dmi, _MARKS)
    if wsl_version(host.read(RELEASE) or ""):
        doubt = _("The firmware names {cloud}, but the kernel is WSL's, on a Windows of whatever machine.")
        doubts = (doubt.format(cloud=PROVIDER_NAMES[marked.value or ""]),) if marked else ()
        return Finding("none", RELEASE, host.read(RELEASE) or "", "", doubts)
    found = _by_xen_uuid(host) or marked or _by_product_uuid(dmi) or _by_disks(host)
    cloud_id = first_line(host.read(_CLOUD_ID))
    kept = provider_of_cloud_id(cloud_id)
    if found is None and kept:
        return Finding(kept, _CLOUD_ID, cloud_id)
    if found is None:
        fields = ("sys_vendor", "product_name", "chassis_asset_tag")
        raw = "\n".join(f"{name}: {dmi[name]}" for name in fields if name in dmi)
        return Finding("none" if dmi else None, DMI if dmi else "", raw)
    if kept and kept not in (found.value, "openstack"):  # some clouds are made with OpenStack
        doubt = _("cloud-init took it for {cloud}.").format(cloud=PROVIDER_NAMES[kept])
        return Finding(found.value, found.read_from, found.raw, found.note, (doubt,))
    return found


def _by_xen_uuid(host: Host) -> Finding | None:
    uuid = first_line(host.read(_XEN_UUID))
    return Finding("aws", _XEN_UUID, uuid) if uuid.lower().startswith("ec2") else None


def _by_product_uuid(dmi: dict[str, str]) -> Finding | None:
    """Other makers' numbers may begin so by chance, but not both, and not alike."""
    uuid, serial = dmi.get("product_uuid", "").lower(), dmi.get("product_serial", "").lower()
    if not uuid.startswith("ec2") or uuid != serial:
        return None
    return Finding("aws", f"{DMI}/product_uuid", f"product_uuid: {uuid}")


def _by_disks(host: Host) -> Finding | None:
    """IBM's classic machines upon Xen bring a disk with their settings."""
    if first_line(host.read("/sys/hypervisor/type")) != "xen":
        return None
    labels = {name.lower() for name in host.list(f"{_DISKS}/by-label")}
    if "metadata" in labels:
        return Finding("ibm", f"{_DISKS}/by-label", "METADATA")
    if "config-2" in labels and "9796-932E" in host.list(f"{_DISKS}/by-uuid"):
        return Finding("ibm", f"{_DISKS}/by-uuid", "9796-932E")
    return None


def provider_of_cloud_id(cloud_id: str) -> str:
    """One of our names for cloud-init's, such as gce or aws-china; empty where it knows of no cloud."""
    name = re.sub(r"-(china|gov)$", "", cloud_id)
    name = _CLOUD_IDS.get(name, name)
    return name if name in PROVIDER_NAMES else ""


def find_instance(host: Host, provider: str) -> Finding:
    """The type or size of a rented machine; None where nothing on the box tells it."""
    dmi = read_dmi(host)
    product = dmi.get("product_name", "")
    if provider == "aws" and re.fullmatch(r"[\w-]+\.[\w-]+", product):
        return Finding(product, f"{DMI}/product_name", product)
    chassis = dmi.get("chassis_vendor", "")
    if provider == "ibm" and chassis.count(":") > 1:
        return Finding(chassis.rpartition(":")[2], f"{DMI}/chassis_vendor", chassis)
    keys = _INSTANCE_KEYS.get(provider, ())
    kept = parse_kept(host.read(CLOUD_INIT) or "")
    for path in keys:
        if value := _value_below(kept, path):
            return Finding(value, CLOUD_INIT, f'"{path[-1]}": "{value}"')
    return Finding(None, CLOUD_INIT if keys else f"{DMI}/product_name")


def parse_kept(text: str) -> Any:
    """What a data source of cloud-init left in its file; None when it holds something else."""
    try:
        return json.loads(text)["ds"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _value_below(kept: Any, path: tuple[str, ...]) -> str:
    for key in path:  # cloud-init has written keys with hyphens and with underscores, in different years
        if not isinstance(kept, dict):
            return ""
        kept = next((value for name, value in kept.items() if name.replace("-", "_") == key), None)
    plain = isinstance(kept, str) and re.fullmatch(r"[\w.-]+", kept)  # what is kept from us is told in a sentence
    return kept if plain and isinstance(kept, str) else ""
