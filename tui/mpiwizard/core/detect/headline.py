"""The machine in one sentence: what it is, how many cores, how ranks on it will talk."""

from __future__ import annotations

from mpiwizard.core.detect.clouds import PROVIDER_NAMES
from mpiwizard.core.detect.fabric import OVER_ETHERNET
from mpiwizard.core.detect.layer import LAYER_NAMES
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.detect.virtualisation import VIRTUALISATION_NAMES
from mpiwizard.core.i18n import _, ngettext

_COPY_NAMES = {"cma": "CMA", "xpmem": "XPMEM", "knem": "KNEM"}  # by the values of kernel.single_copy


def headline(machine: Machine) -> str:
    """Such as `WSL2 on Ubuntu 22.04 · 8 usable cores · shared memory with CMA · no fast fabric`."""
    return " · ".join(part for part in (_box(machine), _cores(machine), _copies(machine), _fabric(machine)) if part)


def _box(machine: Machine) -> str:
    layer = machine.value("platform.layer", "none")
    provider = machine.value("platform.provider", "none")
    if layer in ("wsl1", "wsl2"):
        box = LAYER_NAMES[layer]
    elif layer == "none":
        box = _outer_box(machine)
    else:
        box = LAYER_NAMES.get(layer, _("Container"))
        if provider != "none":
            box = _("{container} in {box}").format(container=box, box=_outer_box(machine))
        elif "microsoft" in machine.value("kernel.release", "").lower():  # the kernel is that of the box around
            box = _("{container} in {box}").format(container=box, box=LAYER_NAMES["wsl2"])
    distribution = machine.value("platform.distribution")
    if not distribution:
        return box
    name = f"{distribution['name']} {distribution['version']}".strip()
    return _("{box} on {distribution}").format(box=box, distribution=name)


def _outer_box(machine: Machine) -> str:
    provider = machine.value("platform.provider", "none")
    if provider != "none":
        return " ".join(filter(None, (PROVIDER_NAMES.get(provider, provider), machine.value("platform.instance"))))
    virtualisation = machine.value("platform.virtualisation")
    if virtualisation is None:
        return _("A machine of unknown kind")
    if virtualisation == "none":
        return _("Bare metal")
    if virtualisation == "other":
        return _("Virtual machine")
    return _("Virtual machine ({kind})").format(kind=VIRTUALISATION_NAMES.get(virtualisation, virtualisation))


def _cores(machine: Machine) -> str:
    usable = machine.value("cpu.usable")
    if usable is None:
        return _("number of CPUs not known")
    cores = min(machine.value("cpu.cores", usable), usable)
    text = ngettext("{count} usable core", "{count} usable cores", cores).format(count=cores)
    if cores < usable:
        text += " " + _("({count} threads)").format(count=usable)
    return text


def _copies(machine: Machine) -> str:
    ways = machine.value("kernel.single_copy")
    if ways is None:
        return _copies_by_cma(machine.value("kernel.cma"))
    four, five = (_COPY_NAMES.get(ways.get(series, "none"), "") for series in ("4", "5"))
    if four == five:
        return _("shared memory with {way}").format(way=four) if four else _("shared memory without single copy")
    if four and five:
        return _("shared memory with {four} (4.x) or {five} (5.x)").format(four=four, five=five)
    if four:
        return _("shared memory with {way} (4.x only)").format(way=four)
    return _("shared memory with {way} (5.x only)").format(way=five)


def _copies_by_cma(cma: str | None) -> str:
    if cma is None:
        return _("shared memory, CMA not tried")
    return _("shared memory without CMA") if cma == "refused" else _("shared memory with CMA")


def _fabric(machine: Machine) -> str:
    devices = machine.value("network.fabric")
    if devices is None:
        return ""
    kinds = dict.fromkeys(device.partition(": ")[2] for device in devices if ": Soft-" not in device)
    fast = [kind for kind in kinds if kind not in OVER_ETHERNET]
    if kinds and not fast:
        return _("RDMA over Ethernet, speed not known")
    return " + ".join(fast) or _("no fast fabric")
