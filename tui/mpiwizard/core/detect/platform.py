"""What the box is, on axes of their own: container or WSL, kind of virtual machine, cloud.

An EC2 machine may run Docker, WSL2 is a guest of Hyper-V, and a cloud rents bare metal too: so none
of these follows from another. Signs are those of systemd-detect-virt, cloud-init's ds-identify and
util-linux' lscpu.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from mpiwizard.core.detect.facts import Probe, Survey, ask, first_line, make_fact, unknown_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.detect.mounts import mount_of, read_mounts
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

AZURE_CHASSIS = "7783-7084-3265-9085-8269-3286-77"  # any Hyper-V guest has Microsoft's other strings

LAYER_NAMES = {
    "wsl1": "WSL1",
    "wsl2": "WSL2",
    "docker": "Docker",
    "podman": "Podman",
    "lxc": "LXC",
    "kubernetes": "Kubernetes",
    "apptainer": "Apptainer",
    "systemd-nspawn": "systemd-nspawn",
}
VIRTUALISATION_NAMES = {
    "kvm": "KVM",
    "hyper-v": "Hyper-V",
    "xen": "Xen",
    "vmware": "VMware",
    "virtualbox": "VirtualBox",
    "qemu": "QEMU",
    "firecracker": "Firecracker",
}
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
}
_DMI = "/sys/class/dmi/id"
_CLOUD_INIT = "/run/cloud-init/instance-data.json"  # everybody may read it, secrets are left out


# --- container or WSL ------------------------------------------------------------------------------


def wsl_version(kernel_release: str) -> int:
    """1 or 2 by the name of a kernel of WSL, 0 for any other kernel."""
    if "microsoft" not in kernel_release.lower():
        return 0
    return 1 if re.match(r"4\.4\.\d+-\d+-microsoft$", kernel_release.strip(), re.IGNORECASE) else 2


def find_layer(host: Host) -> tuple[str, str]:
    """The innermost layer, and the sign it was known by. A container inside WSL is a container."""
    container = _find_container(host)
    if container is not None:
        return container
    release = host.read("/proc/sys/kernel/osrelease") or ""
    if version := wsl_version(release):
        return f"wsl{version}", "/proc/sys/kernel/osrelease"
    return "none", ""


def _find_container(host: Host) -> tuple[str, str] | None:
    environment = host.environment
    for name in ("APPTAINER_NAME", "SINGULARITY_NAME"):
        if environment.get(name):
            return "apptainer", f"${name}"
    if environment.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes", "$KUBERNETES_SERVICE_HOST"
    if host.exists("/run/.containerenv"):
        return "podman", "/run/.containerenv"
    if host.exists("/.dockerenv") and not left_over_from_image(host):
        return "docker", "/.dockerenv"
    for path in ("/run/systemd/container", "/run/host/container-manager"):
        manager = first_line(host.read(path))
        if manager and manager != "wsl":
            return _layer_of_manager(manager), path
    for word in re.split(r"[\0\n]", host.read("/proc/1/environ") or ""):
        if word.startswith("container=") and word != "container=wsl":
            return _layer_of_manager(word.partition("=")[2]), "/proc/1/environ"
    groups = host.read("/proc/1/cgroup") or ""
    for mark, layer in (("/kubepods", "kubernetes"), ("/docker", "docker"), ("/libpod", "podman"), ("/lxc", "lxc")):
        if mark in groups:
            return layer, "/proc/1/cgroup"
    return None


def _layer_of_manager(name: str) -> str:
    """Name of a container manager, as systemd's container interface has it, as one of our layers."""
    name = {"lxc-libvirt": "lxc", "incus": "lxc", "singularity": "apptainer"}.get(name, name)
    return name if name in LAYER_NAMES else "container"


def left_over_from_image(host: Host) -> bool:
    """Whether a container's marker file is only a rest of the image a machine was made from.

    A real container has its root folder on a layered file system, or files of /etc mounted one by one.
    A virtual machine or a distribution of WSL made from an image has neither.
    """
    mounts = read_mounts(host)
    root = mount_of(mounts, "/")
    if root is None:
        return False
    mounted_files = {"/etc/hostname", "/etc/hosts", "/etc/resolv.conf"} & {mount.point for mount in mounts}
    return root.source.startswith("/dev/") and root.root == "/" and not mounted_files


def read_layer(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    layer, sign = find_layer(host)
    text = LAYER_NAMES.get(layer, _("none") if layer == "none" else _("a container"))
    meaning = {
        "none": _("Nothing stands between mpiwizard and this system."),
        "wsl1": _("WSL1 translates system calls and has no Linux kernel of its own; use WSL2 for MPI."),
        "wsl2": _("A light virtual machine: memory and processors are those .wslconfig gives it."),
    }.get(layer, _("Limits of the container count here, not those of the box around it."))
    if layer == "none" and host.exists("/.dockerenv"):
        meaning = _("A marker file of Docker is left from the image this system was made from; it runs by itself.")
    yield make_fact(
        "platform.layer",
        layer,
        text,
        "attention" if layer == "wsl1" else "info",
        read_from=sign or "/proc/sys/kernel/osrelease, /proc/self/mountinfo",
        see_yourself="systemd-detect-virt --container; uname -r",
        meaning=meaning,
        action=_("Run wsl --set-version with this distribution's name and 2, in Windows.") if layer == "wsl1" else "",
        claims=(1, 2, 4) if layer.startswith("wsl") else (),
    )


# --- virtual machine -------------------------------------------------------------------------------


def read_dmi(host: Host) -> dict[str, str]:
    """What the firmware says of the machine; empty when the kernel does not show it."""
    names = (
        "sys_vendor", "product_name", "bios_vendor", "bios_version", "chassis_asset_tag", "board_asset_tag",
        "product_uuid", "product_serial",
    )  # fmt: skip
    return {name: text for name in names if (text := first_line(host.read(f"{_DMI}/{name}")))}


def find_virtualisation(host: Host) -> tuple[str | None, str]:
    """The kind of virtual machine and the sign it was known by; None when there is no telling."""
    version = wsl_version(host.read("/proc/sys/kernel/osrelease") or "")
    if version:
        return ("hyper-v" if version == 2 else "none"), "/proc/sys/kernel/osrelease"
    if first_line(host.read("/sys/hypervisor/type")) == "xen":
        privileged = "control_d" in (host.read("/proc/xen/capabilities") or "")
        return ("none" if privileged else "xen"), "/sys/hypervisor/type"
    flag = _hypervisor_flag(host)
    if flag is False:
        return "none", "/proc/cpuinfo"
    if kind := _kind_by_dmi(read_dmi(host)):
        return kind, _DMI
    if "FIRECK" in (host.read("/sys/firmware/acpi/tables/FACP") or ""):
        return "firecracker", "/sys/firmware/acpi/tables/FACP"
    if kind := _kind_by_command(host):
        return kind, "systemd-detect-virt --vm"
    return ("other", "/proc/cpuinfo") if flag else (None, "/proc/cpuinfo")


def _hypervisor_flag(host: Host) -> bool | None:
    """Whether the processor says it is virtual; None where processors do not tell (not x86)."""
    flags = re.search(r"^flags\s*:(.*)$", host.read("/proc/cpuinfo") or "", re.MULTILINE)
    return "hypervisor" in flags[1].split() if flags else None


def _kind_by_dmi(dmi: dict[str, str]) -> str:
    vendor, product = dmi.get("sys_vendor", ""), dmi.get("product_name", "")
    if vendor == "Amazon EC2":
        return "none" if "metal" in product else "kvm"
    if vendor == "Microsoft Corporation" and product == "Virtual Machine":
        return "hyper-v"
    signs = {
        "VMware": "vmware", "VirtualBox": "virtualbox", "innotek": "virtualbox", "HVM domU": "xen", "Xen": "xen",
        "Google Compute Engine": "kvm", "Alibaba Cloud": "kvm", "OpenStack": "kvm", "KVM": "kvm", "QEMU": "kvm",
    }  # fmt: skip
    return next((kind for sign, kind in signs.items() if sign in f"{vendor} {product}"), "")


def _kind_by_command(host: Host) -> str:
    if host.which("systemd-detect-virt"):
        word = first_line(ask(host, "systemd-detect-virt", "--vm").output)
    else:
        found = re.search(r"^Hypervisor vendor:\s*(.+)$", ask(host, "lscpu").output, re.MULTILINE)
        word = found[1].strip().lower() if found else ""
    renamed = {"amazon": "kvm", "microsoft": "hyper-v", "oracle": "virtualbox", "google": "kvm"}
    word = renamed.get(word, word)
    return word if word in VIRTUALISATION_NAMES or word == "none" else ""


def read_virtualisation(survey: Survey) -> Iterator[Fact]:
    kind, sign = find_virtualisation(survey.host)
    see = "systemd-detect-virt --vm; lscpu | grep -i hypervisor"
    if kind is None:
        why = _("this processor does not say, and no other sign was found")
        yield unknown_fact("platform.virtualisation", why, read_from=sign, see_yourself=see)
        return
    none = _("none, this is the hardware itself")
    yield make_fact(
        "platform.virtualisation",
        kind,
        none if kind == "none" else VIRTUALISATION_NAMES.get(kind, _("yes, of a kind not known here")),
        read_from=sign,
        see_yourself=see,
        meaning=_("Measured times can waver with the load of the host.") if kind != "none" else "",
        claims=(4, 5, 6),
    )


# --- cloud -----------------------------------------------------------------------------------------


def find_provider(host: Host) -> tuple[str | None, str]:
    """The cloud and the sign it was known by; "none" for no cloud, None when there is no telling."""
    xen = first_line(host.read("/sys/hypervisor/uuid"))
    if xen.lower().startswith("ec2"):
        return "aws", "/sys/hypervisor/uuid"
    dmi = read_dmi(host)
    if provider := _provider_by_dmi(dmi):
        return provider, _DMI
    cloud = first_line(host.read("/run/cloud-init/cloud-id"))
    known = {"gce": "google", "aliyun": "alibaba", "ec2": "aws", "tencentcloud": "tencent"}
    if known.get(cloud, cloud) in PROVIDER_NAMES:
        return known.get(cloud, cloud), "/run/cloud-init/cloud-id"
    if dmi:
        return "none", _DMI
    return None, ""


def _provider_by_dmi(dmi: dict[str, str]) -> str:
    vendor, product = dmi.get("sys_vendor", ""), dmi.get("product_name", "")
    signs = {
        "aws": "Amazon EC2" in (vendor, dmi.get("bios_vendor"))
        or "amazon" in dmi.get("bios_version", "").lower()
        or dmi.get("product_uuid", "").lower().startswith("ec2"),
        "azure": dmi.get("chassis_asset_tag") == AZURE_CHASSIS,
        "google": product == "Google Compute Engine" or dmi.get("product_serial", "").startswith("GoogleCloud-"),
        "alibaba": product == "Alibaba Cloud ECS" or "Alibaba Cloud" in vendor,
        "tencent": vendor == "Tencent Cloud",
        "huawei": vendor == "Huawei Cloud" or dmi.get("chassis_asset_tag") == "HUAWEICLOUD",
        "oracle": dmi.get("chassis_asset_tag") == "OracleCloud.com",
        "digitalocean": vendor == "DigitalOcean",
        "hetzner": vendor == "Hetzner",
        "openstack": product.startswith("OpenStack"),
    }
    return next((provider for provider, seen in signs.items() if seen), "")


def read_provider(survey: Survey) -> Iterator[Fact]:
    provider, sign = find_provider(survey.host)
    see = f"head {_DMI}/{{sys_vendor,product_name,chassis_asset_tag}}"
    # A WSL or a box that is no virtual machine and shows no mark is in no cloud we know.
    if provider is None and (
        survey.found.value("platform.layer") in ("wsl1", "wsl2")
        or survey.found.value("platform.virtualisation") == "none"
    ):
        provider, sign = "none", "/proc/sys/kernel/osrelease, /proc/cpuinfo"
    if provider is None:
        why = _("this kernel shows nothing of the firmware")
        yield unknown_fact("platform.provider", why, read_from=_DMI, see_yourself=see)
        return
    yield make_fact(
        "platform.provider",
        provider,
        PROVIDER_NAMES.get(provider, _("none that is known here")),
        read_from=sign,
        see_yourself=see,
        meaning=_("The cloud decides which fabric there can be, and who ships a ready MPI for it.")
        if provider != "none"
        else "",
        claims=(4, 5) if provider != "none" else (),
    )
    if provider != "none":
        yield _instance_fact(survey.host, provider)


def find_instance(host: Host, provider: str) -> tuple[str | None, str]:
    """The type or size of a rented machine, and where it stands; None where nothing on the box tells it.

    The metadata service of the cloud is not asked: cloud-init has done so at the start, and keeps the answer.
    """
    if provider == "azure":
        try:
            kept = json.loads(host.read(_CLOUD_INIT) or "")
            return str(kept["ds"]["meta_data"]["imds"]["compute"]["vmSize"]), _CLOUD_INIT
        except (ValueError, KeyError, TypeError, RecursionError):
            return None, _CLOUD_INIT
    product = read_dmi(host).get("product_name", "")
    tells = provider == "aws" and re.fullmatch(r"[\w-]+\.[\w-]+", product)
    return (product if tells else None), f"{_DMI}/product_name"


def _instance_fact(host: Host, provider: str) -> Fact:
    instance, place = find_instance(host, provider)
    see = f"cat {_DMI}/product_name" if place.startswith(_DMI) else f"grep vmSize {place}"
    if instance is None:
        return unknown_fact("platform.instance", _("nothing on this box tells it"), read_from=place, see_yourself=see)
    return make_fact("platform.instance", instance, instance, read_from=place, see_yourself=see)


PROBES = (
    Probe(("platform.layer",), read_layer),
    Probe(("platform.virtualisation",), read_virtualisation),
    Probe(("platform.provider", "platform.instance"), read_provider, ("platform.layer", "platform.virtualisation")),
)
