"""The hypervisor below the kernel: which one, none, or no telling.

Signs are those of systemd-detect-virt (src/basic/virt.c), of virt-what and of util-linux' lscpu, as far as everybody
may read them. Files come first; a program is started only where they leave it open.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mpiwizard.core.detect.facts import ask, ask_all, first_line, lines_with
from mpiwizard.core.detect.marks import (
    RELEASE,
    Finding,
    Mark,
    find_mark,
    hypervisor_flag,
    read_dmi,
    wsl_version,
)
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

VIRTUALISATION_NAMES = {
    "kvm": "KVM",
    "hyper-v": "Hyper-V",
    "xen": "Xen",
    "vmware": "VMware",
    "virtualbox": "VirtualBox",
    "qemu": "QEMU",
    "firecracker": "Firecracker",
    "parallels": "Parallels",
    "bhyve": "bhyve",
    "vmm": "vmm (OpenBSD)",
    "acrn": "ACRN",
    "apple": "Apple Virtualization",
    "powervm": "PowerVM",
    "lx86": "PowerVM Lx86",
    "zvm": "z/VM",
    "lpar": "LPAR (PR/SM)",
    "uml": "User-mode Linux",
}
_CPUINFO = "/proc/cpuinfo"
_TREE = "/proc/device-tree"
_CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
_XEN_FEATURES = "/sys/hypervisor/properties/features"
_ACPI = "/sys/firmware/acpi/tables/FACP"  # root may read it

# Firmware that names its hypervisor. It comes before the processor's word: VirtualBox and Parallels play KVM there.
_FIRMWARE: tuple[Mark, ...] = (
    ("hyper-v", {"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine"}),
    ("vmware", {"sys_vendor": "VMware.*"}),
    ("virtualbox", {"product_name": "VirtualBox"}),
    ("virtualbox", {"sys_vendor": "innotek.*"}),
    ("xen", {"product_name": "HVM domU"}),
    ("xen", {"sys_vendor": "Xen"}),
    ("parallels", {"sys_vendor": "Parallels.*"}),
    ("bhyve", {"bios_vendor": "BHYVE"}),
    ("apple", {"product_name": "Apple Virtualization.*"}),
)
# Firmware of what is built upon KVM, with the name to be said; clouds rent bare metal under some of these names.
_UPON_KVM: tuple[Mark, ...] = (
    ("", {"sys_vendor": "Amazon EC2", "product_name": r"(?!.*\bmetal).*"}),
    ("Nutanix AHV", {"sys_vendor": "Nutanix", "product_name": "AHV"}),
    ("RHEV", {"product_name": "RHEV Hypervisor"}),
    ("oVirt", {"sys_vendor": "oVirt"}),
    ("KubeVirt", {"product_name": "KubeVirt.*"}),
    ("", {"product_name": "Google Compute Engine"}),
    ("", {"product_name": "Alibaba Cloud ECS"}),
    ("", {"product_name": "OpenStack.*"}),
    ("", {"product_name": "KVM.*"}),
    ("", {"sys_vendor": "KVM"}),
)
_UPON_QEMU: tuple[Mark, ...] = (  # whether KVM helps it the firmware of a PC does not say
    ("qemu", {"sys_vendor": "QEMU"}),
    ("qemu", {"sys_vendor": "Bochs"}),
    ("qemu", {"product_name": "Bochs"}),
)
_SIGNATURES = {  # what hypervisors write into the processor's identification
    "KVMKVMKVM": "kvm", "Linux KVM Hv": "kvm", "LKVMLKVMLKVM": "kvm", "TCGTCGTCGTCG": "qemu", "XenVMMXenVMM": "xen",
    "VMwareVMware": "vmware", "VBoxVBoxVBox": "virtualbox", "bhyve bhyve": "bhyve", "OpenBSDVMM58": "vmm",
    "ACRNACRNACRN": "acrn", "Apple VZ": "apple", "Microsoft Hv": "hyper-v",
}  # fmt: skip
_WORDS = {  # what systemd-detect-virt and lscpu call them; where both say the same as we, it is not repeated here
    "amazon": "kvm", "google": "kvm", "microsoft": "hyper-v", "oracle": "virtualbox", "innotek": "virtualbox",
    "bochs": "qemu", "none": "none",
}  # fmt: skip


def find_virtualisation(host: Host) -> Finding:
    looks = (_by_release, _by_cpuinfo, _by_xen, _by_firmware, _by_device_tree, _by_clock, _by_asking, _by_its_absence)
    cpuinfo = host.read(_CPUINFO) or ""
    finding = next(found for look in looks if (found := look(host, cpuinfo)))
    flag = hypervisor_flag(cpuinfo)
    if flag and finding.value == "none" and finding.read_from != RELEASE and "xen" not in finding.read_from:
        return _with_doubt(finding, _("The flags of the processor speak of a hypervisor."))
    if flag is False and finding.value not in ("none", None, "xen", "uml", "lx86"):
        return _with_doubt(finding, _("The flags of the processor do not speak of a hypervisor."))
    return finding


def _with_doubt(finding: Finding, doubt: str) -> Finding:
    return Finding(finding.value, finding.read_from, finding.raw, finding.note, (*finding.contradictions, doubt))


def _by_release(host: Host, _cpuinfo: str) -> Finding | None:
    release = host.read(RELEASE) or ""
    kinds = {0: None, 1: "none", 2: "hyper-v"}
    kind = kinds[wsl_version(release)]
    return Finding(kind, RELEASE, release) if kind else None


def _by_cpuinfo(host: Host, cpuinfo: str) -> Finding | None:
    """Where the kernel's description of the processor names the hypervisor, or its place to name it."""
    vendor = re.search(r"^vendor_id\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    name = vendor[1] if vendor else ""
    for beginning, kind in (("User Mode Linux", "uml"), ("PowerVM Lx86", "lx86")):
        if name.startswith(beginning):
            return Finding(kind, _CPUINFO, f"vendor_id: {name}")
    if name.startswith("IBM/S390"):
        return _on_ibm_z(host.read("/proc/sysinfo") or "")
    platform = re.search(r"^platform\s*:\s*(pSeries|PowerNV)", cpuinfo, re.MULTILINE)
    if platform is None:
        return None
    raw = lines_with(r"^(platform|model|machine)\s*:", cpuinfo)
    if platform[1] == "PowerNV":
        return Finding("none", _CPUINFO, raw)
    if "emulated by qemu" not in raw:
        return Finding("powervm", _CPUINFO, raw)
    # QEMU puts the node `hypervisor` into the tree when KVM helps it.
    alone = host.exists(_TREE) and not host.exists(f"{_TREE}/hypervisor")
    return Finding("qemu" if alone else "kvm", _CPUINFO, raw)


def _on_ibm_z(sysinfo: str) -> Finding | None:
    program = re.search(r"^VM\d+ Control Program:\s*(\S+)", sysinfo, re.MULTILINE)
    if program:
        kind = {"z/VM": "zvm", "KVM/Linux": "kvm"}.get(program[1], "other")
        return Finding(kind, "/proc/sysinfo", lines_with(r"^VM\d+ (Name|Control Program):", sysinfo))
    partition = lines_with(r"^LPAR (Number|Name|Characteristics):", sysinfo)
    return Finding("lpar", "/proc/sysinfo", partition) if partition else None


def _by_xen(host: Host, _cpuinfo: str) -> Finding | None:
    raw = ""
    if first_line(host.read("/sys/hypervisor/type")) == "xen":
        path, raw = "/sys/hypervisor/type", "xen"
    elif host.exists("/proc/xen"):
        path, raw = "/proc/xen", _("{path} is there").format(path="/proc/xen")
    elif "xen" in (compatible := host.read(f"{_TREE}/hypervisor/compatible") or ""):
        path, raw = f"{_TREE}/hypervisor/compatible", compatible.replace("\0", " ")
    else:  # these drivers for disks and networks are registered in a domain of Xen only
        drivers = ("/sys/bus/xen/drivers/vbd", "/sys/bus/xen/drivers/vif")
        path = next((driver for driver in drivers if host.exists(driver)), "")
        raw = _("{path} is there").format(path=path)
    if not path:
        return None
    for privilege, holds in (("/proc/xen/capabilities", _is_control_domain), (_XEN_FEATURES, has_dom0_feature)):
        text = host.read(privilege) or ""
        if holds(text):
            return Finding("none", f"{path}, {privilege}", f"{raw}\n{text}", _("dom0 of Xen"))
    return Finding("xen", path, raw)


def _is_control_domain(capabilities: str) -> bool:
    return "control_d" in capabilities


def has_dom0_feature(features: str) -> bool:
    """Whether Xen's bits, a number of base 16, have XENFEAT_dom0 (Xen's public/features.h)."""
    digits = re.fullmatch(r"\s*([0-9a-fA-F]{1,16})\s*", features)
    return digits is not None and bool(int(digits[1], 16) >> 11 & 1)


def _by_firmware(host: Host, cpuinfo: str) -> Finding | None:
    dmi = read_dmi(host)
    if found := find_mark(dmi, _FIRMWARE):
        return found
    flag = hypervisor_flag(cpuinfo)
    if flag is False:
        return Finding("none", _CPUINFO, _flags(cpuinfo))
    if "FIRECK" in (tables := host.read(_ACPI) or ""):
        return Finding("firecracker", _ACPI, " ".join(re.findall(r"[A-Z][A-Z0-9]{3,}", tables)))
    if found := find_mark(dmi, _UPON_KVM):
        return Finding("kvm", found.read_from, found.raw, found.value or "")
    if metal := find_mark(dmi, (("none", {"sys_vendor": "Amazon EC2"}),)):
        product = f"product_name: {dmi.get('product_name', '')}"
        return Finding("none", metal.read_from, f"{metal.raw}\n{product}")
    return None


def _flags(cpuinfo: str) -> str:
    """The end of the first line of flags, where the hypervisor's stands if there is one."""
    flags = first_line(lines_with(r"^flags\s*:", cpuinfo)).partition(":")[2].split()
    near = flags.index("hypervisor") if "hypervisor" in flags else 0
    return "flags: … " + " ".join(flags[max(near - 3, 0) : near + 20])


def _by_device_tree(host: Host, _cpuinfo: str) -> Finding | None:
    """What a machine without firmware of a PC is told of itself by its maker, or its hypervisor."""
    path = f"{_TREE}/hypervisor/compatible"
    hypervisor = (host.read(path) or "").replace("\0", " ").strip()
    if hypervisor:
        kind = next((kind for kind in ("kvm", "vmware") if kind in hypervisor), "other")
        return Finding(kind, path, hypervisor)
    nodes = host.list(_TREE)
    if node := next((node for node in nodes if node.startswith("fw-cfg")), ""):
        return Finding("qemu", _TREE, node, _("KVM may help it, the box does not tell"))
    path = f"{_TREE}/compatible"
    board = (host.read(path) or "").replace("\0", " ").strip()
    if "linux,dummy-virt" in board:  # the board that kvmtool, Firecracker and QEMU make up for a guest
        return Finding("kvm", path, board)
    return Finding("none", path, board) if board else None


def _by_clock(host: Host, _cpuinfo: str) -> Finding | None:
    clocks = first_line(host.read(_CLOCKS))
    return Finding("kvm", _CLOCKS, clocks) if "kvm-clock" in clocks.split() else None


def cpuid_command(host: Host) -> tuple[str, ...]:
    """The program that asks the processor (cpuid.py); a recorded box has it under the plain name python3."""
    if not host.is_real:
        return ("python3", "-m", "mpiwizard.core.detect.cpuid")
    return (sys.executable, "-I", "-S", str(Path(__file__).with_name("cpuid.py")))


def kind_by_signatures(output: str) -> str:
    """The hypervisor by the names the processor gave; one that plays Hyper-V besides is meant by its own name."""
    kinds = [_SIGNATURES[line.strip()] for line in output.splitlines() if line.strip() in _SIGNATURES]
    return next((kind for kind in kinds if kind != "hyper-v"), kinds[0] if kinds else "")


def kind_by_word(word: str) -> str:
    """One of our names for the word another tool has; empty where it has none, or one we do not know."""
    word = word.strip().lower()
    return _WORDS.get(word, word if word in VIRTUALISATION_NAMES else "")


def _by_asking(host: Host, cpuinfo: str) -> Finding | None:
    """What programs say where files leave it open: the processor itself, then the tools."""
    flag = hypervisor_flag(cpuinfo)
    if flag:
        answer = ask(host, *cpuid_command(host)).output
        if kind := kind_by_signatures(answer):
            note = "kvmtool" if "LKVM" in answer else ""
            return Finding(kind, "cpuid", answer, note)
    virtual, lscpu = ask_all(host, (("systemd-detect-virt", "--vm"), ("lscpu",)))
    kind = kind_by_word(first_line(virtual.output))
    if kind and not (kind == "none" and flag):
        return Finding(kind, "systemd-detect-virt --vm", first_line(virtual.output))
    if kind := kind_by_word(hypervisor_of_lscpu(lscpu.output)):
        return Finding(kind, "lscpu", lines_with(r"^Hypervisor vendor:", lscpu.output))
    return None


def hypervisor_of_lscpu(output: str) -> str:
    found = re.search(r"^Hypervisor vendor:\s*(.+)$", output, re.MULTILINE)
    return found[1] if found else ""


def _by_its_absence(host: Host, cpuinfo: str) -> Finding:
    dmi = read_dmi(host)
    if found := find_mark(dmi, _UPON_QEMU):
        return found
    if "QEMU" in cpuinfo:
        return Finding("qemu", _CPUINFO, lines_with("QEMU", cpuinfo))
    if hypervisor_flag(cpuinfo):
        return Finding("other", _CPUINFO, _flags(cpuinfo))
    return Finding(None, _CPUINFO)


