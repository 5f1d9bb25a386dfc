"""Interfaces with their addresses, the network TCP should use between boxes, and RDMA devices."""

from __future__ import annotations

import ipaddress
import json
import posixpath
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from mpiwizard.core.detect.facts import Probe, Survey, ask, first_line, make_fact, unknown_fact, whole_number
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

_NET = "/sys/class/net"
_RDMA = "/sys/class/infiniband"
_LOOPBACK, _INFINIBAND, _NO_HARDWARE = 772, 32, 65534  # linux/if_arp.h
_UP = 0x1  # both RTF_UP and IFF_UP
_INNER_NAMES = ("docker", "virbr", "cni", "flannel", "veth", "br-", "podman", "lxdbr", "lxcbr")
_DRIVER_NAMES = {"efa": "EFA", "erdma": "eRDMA", "hfi1": "Omni-Path", "irdma": "irdma"}


class Route(Struct, frozen=True):
    """One line of /proc/net/route."""

    interface: str
    network: ipaddress.IPv4Network
    metric: int


def parse_routes(text: str) -> tuple[Route, ...]:
    """The routes that are up; lines of another shape are left out."""
    routes = []
    for line in text.splitlines()[1:]:
        words = line.split()
        try:
            address, mask = (_address(words[position]) for position in (1, 7))
            network = ipaddress.IPv4Network(f"{address}/{mask}", strict=False)
            if int(words[3], 16) & _UP:
                routes.append(Route(words[0], network, int(words[6])))
        except (IndexError, ValueError):
            continue
    return tuple(routes)


def _address(word: str) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(bytes.fromhex(word)[::-1])  # the kernel writes it in the box's own byte order


def default_interface(routes: tuple[Route, ...]) -> str | None:
    """The interface of the default route with the lowest metric."""
    defaults = [route for route in routes if route.network.prefixlen == 0]
    return min(defaults, key=lambda route: route.metric).interface if defaults else None


def parse_local_addresses(text: str) -> tuple[ipaddress.IPv4Address, ...]:
    """The box's own addresses in /proc/net/fib_trie, in its order."""
    found = re.findall(r"\|-- ([0-9.]+)\n\s+/32 host LOCAL", text)
    addresses = []
    for address in dict.fromkeys(found):
        try:
            addresses.append(ipaddress.IPv4Address(address))
        except ValueError:
            continue
    return tuple(addresses)


def addresses_by_ip(text: str) -> dict[str, list[str]]:
    """Interface -> addresses with prefix length, from `ip -json addr`; empty when it is none."""
    try:
        interfaces = json.loads(text)
        return {
            str(interface["ifname"]): [
                f"{entry['local']}/{entry['prefixlen']}"
                for entry in interface.get("addr_info", ())
                if entry.get("scope") != "link" and "local" in entry
            ]
            for interface in interfaces
            if "ifname" in interface
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


def addresses_by_files(host: Host) -> dict[str, list[str]]:
    """The same from /proc, for boxes without `ip`, such as small containers."""
    found: dict[str, list[str]] = {}
    routes = parse_routes(host.read("/proc/net/route") or "")
    for address in parse_local_addresses(host.read("/proc/net/fib_trie") or ""):
        if address.is_loopback:
            found.setdefault("lo", []).append(f"{address}/8")
        near = [route for route in routes if route.network.prefixlen and address in route.network]
        if near:
            route = max(near, key=lambda route: route.network.prefixlen)
            found.setdefault(route.interface, []).append(f"{address}/{route.network.prefixlen}")
    for line in (host.read("/proc/net/if_inet6") or "").splitlines():
        words = line.split()
        if len(words) == 6 and words[3] in ("00", "10"):  # global, and loopback
            try:
                address6 = ipaddress.IPv6Address(bytes.fromhex(words[0]))
                found.setdefault(words[5], []).append(f"{address6}/{int(words[2], 16)}")
            except ValueError:
                continue
    return found


def kind_of(host: Host, name: str) -> str:
    """loopback, ethernet, wireless, infiniband, bridge, tunnel or virtual."""
    folder = f"{_NET}/{name}"
    kind = whole_number(host.read(f"{folder}/type"))
    if kind == _LOOPBACK or name == "lo":
        return "loopback"
    if kind == _INFINIBAND:
        return "infiniband"
    if host.exists(f"{folder}/wireless") or host.exists(f"{folder}/phy80211"):
        return "wireless"
    if host.exists(f"{folder}/bridge") or name.startswith(_INNER_NAMES):
        return "bridge"
    if kind == _NO_HARDWARE or host.exists(f"{folder}/tun_flags"):
        return "tunnel"
    return "ethernet" if host.exists(f"{folder}/device") else "virtual"


def find_interfaces(host: Host) -> tuple[list[dict[str, Any]], str]:
    """All interfaces, as the value of the fact, and where the addresses were read."""
    addresses, read_from = addresses_by_ip(ask(host, "ip", "-json", "addr").output), "ip -json addr"
    if not addresses:
        addresses, read_from = addresses_by_files(host), "/proc/net/fib_trie, /proc/net/if_inet6"
    names = dict.fromkeys([*(name for name in host.list(_NET) if host.exists(f"{_NET}/{name}/type")), *addresses])
    return [
        {
            "name": name,
            "addresses": addresses.get(name, []),
            "kind": kind_of(host, name),
            "up": _is_up(host, name, bool(addresses.get(name))),
        }
        for name in names
    ], read_from


def _is_up(host: Host, name: str, has_address: bool) -> bool:
    flags = first_line(host.read(f"{_NET}/{name}/flags"))
    try:
        return bool(int(flags, 16) & _UP)
    except ValueError:
        return has_address


def read_interfaces(survey: Survey) -> Iterator[Fact]:
    interfaces, read_from = find_interfaces(survey.host)
    see = "ip -brief addr"
    if not interfaces:
        yield unknown_fact("network.interfaces", _("neither ip nor /proc shows any"), see_yourself=see)
        return
    shown = [
        f"{interface['name']} {' '.join(interface['addresses'])}".strip()
        for interface in interfaces
        if interface["up"] and interface["kind"] != "loopback"
    ]
    yield make_fact(
        "network.interfaces",
        interfaces,
        ", ".join(shown) or _("only the loopback"),
        read_from=read_from,
        see_yourself=see,
        meaning=_("Ranks of one box do not use them; between boxes, Open MPI tries all of them."),
        claims=(11, 34),
    )


def read_include(survey: Survey) -> Iterator[Fact]:
    """The network in CIDR form for btl_tcp_if_include: names of interfaces differ from box to box."""
    interfaces = survey.found.value("network.interfaces", [])
    routes = parse_routes(survey.host.read("/proc/net/route") or "")
    chosen = _interface_between_boxes(interfaces, default_interface(routes))
    see = "ip route"
    if chosen is None:
        yield make_fact(
            "network.include",
            None,
            _("none"),
            read_from="/proc/net/route",
            see_yourself=see,
            meaning=_("No interface leads to other boxes. One box needs none."),
            rests_on=("network.interfaces",),
            claims=(35, 38),
        )
        return
    name, address = chosen
    network = str(address.network)
    alone = address.network.prefixlen == 32
    yield make_fact(
        "network.include",
        None if alone else network,
        _("by its name, {name}").format(name=name)
        if alone
        else _("{network}, on {name}").format(network=network, name=name),
        read_from="/proc/net/route",
        see_yourself=see,
        meaning=_("The address has no network around it here, as usual on this kind of cloud.")
        if alone
        else _("For jobs on several boxes: the same text fits all of them, names of interfaces may not."),
        rests_on=("network.interfaces",),
        claims=(35, 38),
    )


def _interface_between_boxes(
    interfaces: list[dict[str, Any]], default: str | None
) -> tuple[str, ipaddress.IPv4Interface] | None:
    """The interface of the default route, else the first real one, with its first IPv4 address."""

    def rank(interface: dict[str, Any]) -> tuple[bool, bool]:
        return (interface["name"] != default, interface["kind"] not in ("ethernet", "infiniband"))

    for interface in sorted(interfaces, key=rank):
        if not interface["up"] or (interface["kind"] in ("loopback", "bridge") and interface["name"] != default):
            continue
        for text in interface["addresses"]:
            address = ipaddress.ip_interface(text)
            if isinstance(address, ipaddress.IPv4Interface):
                return interface["name"], address
    return None


def read_mode(survey: Survey) -> Iterator[Fact]:
    """Only under WSL2, and only where it can be asked."""
    if survey.found.value("platform.layer") != "wsl2" or not survey.host.which("wslinfo"):
        return
    see = "wslinfo --networking-mode"
    mode = first_line(ask(survey.host, "wslinfo", "--networking-mode").output)
    if not mode:
        yield unknown_fact("network.mode", _("wslinfo gave no answer"), see_yourself=see)
        return
    mirrored = mode == "mirrored"
    yield make_fact(
        "network.mode",
        mode,
        mode,
        "attention" if mirrored else "info",
        read_from=see,
        see_yourself=see,
        meaning=_("The loopback of this mode has had faults. If mpirun hangs at its start, try the mode nat.")
        if mirrored
        else _("Ranks of this box talk through shared memory, which no network mode slows down."),
        claims=(11, 47),
    )


def find_fabric(host: Host) -> list[str]:
    """RDMA devices as `name: kind`. The kind is the link layer, or the driver where that tells more."""
    devices = []
    for name in host.list(_RDMA):
        driver = posixpath.basename(host.resolve(f"{_RDMA}/{name}/device/driver"))
        layers = [
            first_line(host.read(f"{_RDMA}/{name}/ports/{port}/link_layer"))
            for port in host.list(f"{_RDMA}/{name}/ports")
        ]
        layer = next((layer for layer in layers if layer), "")
        if name.startswith("efa"):
            driver = "efa"
        kind = _DRIVER_NAMES.get(driver) or {"Ethernet": "RoCE", "": "RDMA", "Unspecified": "RDMA"}.get(layer, layer)
        devices.append(f"{name}: {kind}")
    return devices


def read_fabric(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    see = f"head {_RDMA}/*/ports/*/link_layer"
    devices = find_fabric(host)
    if not devices:
        if not host.list("/sys/class"):
            yield unknown_fact("network.fabric", _("there is no /sys/class"), read_from=_RDMA, see_yourself=see)
            return
        yield make_fact(
            "network.fabric",
            [],
            _("none"),
            read_from=_RDMA,
            see_yourself=f"ls {_RDMA}",
            meaning=_("Ranks on several boxes would talk over TCP. On one box it plays no part."),
            claims=(37, 48),
        )
        return
    hidden = not any(name.startswith("uverbs") for name in host.list("/dev/infiniband"))
    ethernet_only = all(device.endswith(": RoCE") for device in devices)
    meaning = _("Ranks on several boxes can go around the kernel.")
    if hidden:
        meaning = _("The device files are missing, so no program can use the fabric.")
    elif ethernet_only:
        meaning = _("These devices run over Ethernet. That alone does not make a fast fabric; measure it.")
    yield make_fact(
        "network.fabric",
        devices,
        ", ".join(devices),
        "attention" if hidden else "ok",
        read_from=_RDMA,
        see_yourself=see,
        meaning=meaning,
        action=_("Give the container --device=/dev/infiniband, or load the kernel module ib_uverbs.") if hidden else "",
        claims=(21, 24, 37, 48),
    )


def find_library(host: Host, header: str, places: tuple[str, ...]) -> str | None:
    """The first of the places that holds a header, which configure must find there."""
    return next((place for place in places if host.exists(f"{place}/include/{header}")), None)


def read_libraries(survey: Survey) -> Iterator[Fact]:
    """Prefixes for --with-ofi and --with-ucx: a wrong one stops configure, so the header must be there."""
    host = survey.host
    hpcx = tuple(f"/opt/{name}/ucx" for name in host.list("/opt") if name.startswith("hpcx"))
    wanted = {
        "network.libfabric": ("rdma/fabric.h", ("/opt/amazon/efa", "/usr/local", "/usr"), (21, 26)),
        "network.ucx": ("ucp/api/ucp.h", (*hpcx, "/usr/local", "/usr"), (24,)),
    }
    for fact_id, (header, places, claims) in wanted.items():
        place = find_library(host, header, places)
        yield make_fact(
            fact_id,
            place,
            place or _("none"),
            read_from=", ".join(f"{folder}/include/{header}" for folder in places),
            see_yourself=f"ls {place or '/usr'}/include/{header}",
            meaning=_("Only a fast fabric needs it.") if place is None else "",
            claims=claims,
        )


PROBES = (
    Probe(("network.interfaces",), read_interfaces),
    Probe(("network.include",), read_include, ("network.interfaces",)),
    Probe(("network.mode",), read_mode, ("platform.layer",)),
    Probe(("network.fabric",), read_fabric),
    Probe(("network.libfabric", "network.ucx"), read_libraries),
)
