"""What a box shows of itself to everybody: firmware's strings, the kernel's name, the processor's flags."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from mpiwizard.core.detect.facts import first_line
from mpiwizard.core.host import Host

DMI = "/sys/class/dmi/id"
RELEASE = "/proc/sys/kernel/osrelease"
_FIELDS = (
    "sys_vendor", "product_name", "bios_vendor", "bios_version", "chassis_vendor", "chassis_asset_tag",
    "product_uuid", "product_serial",  # these two are shown to root only
)  # fmt: skip

Mark = tuple[str, Mapping[str, str]]  # what it is a mark of, and the regular expression for each field of the firmware


class Finding(Struct, frozen=True):
    """What the signs of a box say on one axis, None when there is no telling, and the evidence for it."""

    value: str | None
    read_from: str = ""
    raw: str = ""
    note: str = ""  # said in brackets behind the value's name
    contradictions: tuple[str, ...] = ()


def read_dmi(host: Host) -> dict[str, str]:
    """What the firmware says of the machine; empty when the kernel does not show it."""
    return {name: text for name in _FIELDS if (text := first_line(host.read(f"{DMI}/{name}")))}


def find_mark(dmi: Mapping[str, str], marks: Sequence[Mark]) -> Finding | None:
    """The first of the marks that the firmware bears whole."""
    for value, fields in marks:
        if all(re.fullmatch(pattern, dmi.get(name, "")) for name, pattern in fields.items()):
            files = ", ".join(f"{DMI}/{name}" for name in fields)
            return Finding(value, files, "\n".join(f"{name}: {dmi.get(name, '')}" for name in fields))
    return None


def wsl_version(kernel_release: str) -> int:
    """1 or 2 by the name of a kernel of WSL, 0 for any other kernel."""
    if "microsoft" not in kernel_release.lower():
        return 0
    return 1 if re.match(r"4\.4\.\d+-\d+-microsoft$", kernel_release.strip(), re.IGNORECASE) else 2


def hypervisor_flag(cpuinfo: str) -> bool | None:
    """Whether the processor says that it is virtual; None where processors do not tell (not x86).

    Kernels before 2.6.28 did not show the flag, so that its absence alone proves little on a very old system.
    """
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    return "hypervisor" in flags[1].split() if flags else None
