"""RDMA devices: which kind each is, whether a port is up, and whether programs can reach it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from msgspec import Struct

from mpiwizard.core.detect.facts import Probe, Survey, first_line, make_fact, unknown_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

RDMA = "/sys/class/infiniband"
SOFT_ROCE, SOFT_IWARP = "Soft-RoCE", "Soft-iWARP"
OVER_ETHERNET = frozenset({"RoCE", "iWARP"})  # it may be fast, or not
_OF_DRIVER = {  # drivers of the PCI device; that of irdma is the Ethernet card's
    "efa": "EFA", "erdma": "eRDMA", "hfi1": "Omni-Path", "irdma": "irdma", "ice": "irdma", "i40e": "irdma",
    "idpf": "irdma",
}  # fmt: skip
_OF_LAYER = {"InfiniBand": "InfiniBand", "Ethernet": "RoCE"}  # any other word of the kernel tells nothing
_IWARP = "4:"  # how node_type begins


class Device(Struct, frozen=True):
    """One RDMA device. States are the kernel's words, such as ACTIVE or DOWN, one for each port that tells."""

    name: str
    kind: str
    driver: str
    states: tuple[str, ...]
    rate: str  # of the first port that is up, such as `100 Gb/sec (4X EDR)`
    interfaces: tuple[str, ...]  # the network interfaces of the same card
    raw: str

    @property
    def is_down(self) -> bool:
        """Whether every port says that it is not active."""
        return bool(self.states) and "ACTIVE" not in self.states

    @property
    def is_software(self) -> bool:
        return self.kind in (SOFT_ROCE, SOFT_IWARP)

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}"


def find_devices(host: Host) -> list[Device]:
    return [_read_device(host, name) for name in host.list(RDMA)]


def _read_device(host: Host, name: str) -> Device:
    path = f"{RDMA}/{name}"
    driver = posixpath.basename(host.resolve(f"{path}/device/driver")) if host.exists(f"{path}/device/driver") else ""
    ports = [
        {what: first_line(host.read(f"{path}/ports/{port}/{what}")) for what in ("link_layer", "state", "rate")}
        for port in host.list(f"{path}/ports")
    ]
    active = [port for port in ports if port["state"].endswith("ACTIVE")]
    return Device(
        name,
        _kind(host, name, driver, [port["link_layer"] for port in (*active, *ports)]),
        driver,
        tuple(port["state"].rpartition(" ")[2] for port in ports if port["state"]),
        next((port["rate"] for port in active), ""),
        host.list(f"{path}/device/net"),
        f"{name}: " + ", ".join(filter(None, (driver, *(text for port in ports for text in port.values())))),
    )


def _kind(host: Host, name: str, driver: str, layers: list[str]) -> str:
    path = f"{RDMA}/{name}"
    # A software device lies below the network card or below no hardware; only rxe has a file `parent`
    # (drivers/infiniband/sw of the kernel).
    if name.startswith("rxe") or host.exists(f"{path}/parent"):
        return SOFT_ROCE
    if name.startswith("siw"):
        return SOFT_IWARP
    if host.resolve(path).startswith("/sys/devices/virtual/"):
        return SOFT_IWARP if first_line(host.read(f"{path}/node_type")).startswith(_IWARP) else SOFT_ROCE
    if name.startswith("efa"):
        return "EFA"
    kind = _OF_DRIVER.get(driver) or next((_OF_LAYER[layer] for layer in layers if layer in _OF_LAYER), "RDMA")
    iwarp = kind == "RoCE" and first_line(host.read(f"{path}/node_type")).startswith(_IWARP)
    return "iWARP" if iwarp else kind


def read_fabric(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    devices = find_devices(host)
    if not devices:
        yield _nothing(host)
        return
    hidden = not any(name.startswith("uverbs") for name in host.list("/dev/infiniband"))
    down = [device for device in devices if device.is_down]
    meaning, action = _meaning(devices, survey.found.value("kernel.yama")), ""
    if hidden:
        meaning = _("The device files are missing, so no program can use the fabric.")
        action = _("Give the container --device=/dev/infiniband, or load the kernel module ib_uverbs.")
    elif len(down) == len(devices):
        meaning = _("No port is active, so ranks cannot use the fabric and talk over TCP.")
        action = _("Look at the cable, and for InfiniBand at the subnet manager: ibstat")
    yield make_fact(
        "network.fabric",
        [str(device) for device in devices],
        ", ".join(map(_spoken, devices)),
        "attention" if action else "ok",
        read_from=f"{RDMA}/*/device/driver, {RDMA}/*/ports/*",
        raw="\n".join(device.raw for device in devices),
        see_yourself=f"head {RDMA}/*/ports/*/{{link_layer,state,rate}}",
        meaning=meaning,
        action=action,
        claims=(21, 24, 37, 48),
    )


def _nothing(host: Host) -> Fact:
    see = f"ls {RDMA}"
    if not host.list("/sys/class"):
        return unknown_fact("network.fabric", _("there is no /sys/class"), read_from=RDMA, see_yourself=see)
    meaning = _("Ranks on several boxes would talk over TCP. On one box it plays no part.")
    return make_fact(
        "network.fabric", [], _("none"), read_from=RDMA, see_yourself=see, meaning=meaning, claims=(37, 48)
    )


def _spoken(device: Device) -> str:
    """Such as `mlx5_0: InfiniBand (200 Gb/sec)` or `mlx5_1: RoCE (down, eth1)`."""
    state = _("down") if device.is_down else device.rate.partition(" (")[0]
    details = ", ".join(filter(None, (state, *device.interfaces)))
    return f"{device} ({details})" if details else str(device)


def _meaning(devices: list[Device], yama: int | str | None) -> str:
    """What the best of the devices is good for. `yama` is what kernel.yama says."""
    kinds = {device.kind for device in devices if not device.is_software}
    if not kinds:
        return _("These devices are made by software on an ordinary card, and are no faster than TCP.")
    if "EFA" in kinds:
        conditions = _(
            "Ranks on several boxes can go around the kernel, when the security group lets all traffic within "
            "itself pass, the boxes are in one zone, and memory may be locked without limit."
        )
        # fi_efa(7); 15 µs between two ranks of one host were seen by it: aws/aws-parallelcluster issue 1143.
        protected = _(
            "Yama is {scope}, and while it is not 0 libfabric leaves out shared memory: in a job through EFA ranks of "
            "one box talk through the card too, which is slower. It protects all users: mpiwizard leaves it as it is."
        )
        return f"{conditions} {protected.format(scope=yama)}" if isinstance(yama, int) and yama else conditions
    if "eRDMA" in kinds:
        return _("Ranks on several boxes may go around the kernel; with Open MPI nobody published a trial of it.")
    if "irdma" in kinds:
        return _("RDMA over Ethernet, by a card of Intel: libfabric uses it with the providers verbs and ofi_rxm.")
    if kinds <= OVER_ETHERNET:
        return _(
            "These devices run over Ethernet. That alone is no InfiniBand and no fast fabric: many clouds give "
            "such a card to ordinary machines. Measure it."
        )
    return _("Ranks on several boxes can go around the kernel.")


PROBES = (Probe(("network.fabric",), read_fabric, ("kernel.yama",)),)
