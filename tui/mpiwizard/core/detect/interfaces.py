"""Network interfaces: what each is, and whether MPI between boxes can use it."""

from __future__ import annotations

import ipaddress
import json
import posixpath
import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from mpiwizard.core.detect.facts import Probe, Survey, ask, first_line, make_fact, unknown_fact, whole_number
from mpiwizard.core.detect.marks import wsl_version
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.detect.routes import parse_routes
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _, ngettext

NET = "/sys/class/net"
_UP = 0x1  # IFF_UP
_LONGEST_IP = 1.0  # seconds for `ip`; without its answer there is still /proc
_LOOPBACK, _INFINIBAND, _NO_HARDWARE = 772, 32, 65534  # of linux/if_arp.h
_TUNNELS = (768, 769, 776, 778, 823)  # likewise: ipip, ip6tnl, sit, gre, ip6gre
_TUNNEL_TYPES = ("vxlan", "geneve", "gre", "gretap", "ip6gretap", "bareudp", "tun")
_VIRTUAL_CARDS = (  # drivers of the clouds and hypervisors, as sysfs names them; `vif` is xen-netfront
    "ena", "gve", "gvnic", "hv_netvsc", "mana", "virtio_net", "vmxnet3", "vif", "xen-netfront",
)  # fmt: skip
_FUNCTIONS = ("iavf", "igbvf", "ixgbevf", "i40evf")  # drivers of virtual functions, seen from inside a machine
_LEAD_OUT = ("physical", "virtual-card", "virtual-function", "infiniband", "bond", "vlan", "wireless")
_NO_SPEED = ("veth", "tunnel", "vpn", "virtual", "dummy")  # the kernel names a fixed number for some of them
_DOCKER = re.compile(r"docker\d|docker_gwbridge|br-[0-9a-f]{12}$")
# Who made them left no other sign; the last two are the networks of VirtualBox and VMware for guests on this box.
_BRIDGES = ("virbr", "cni", "br-", "podman", "lxdbr", "lxcbr", "vboxnet", "vmnet")
_VPN = re.compile(r"(wg|tailscale|zt|nordlynx|proton|tun|ppp|ipsec|utun)\w*$")
_EDGES = ("veth", "cali", "lxc")  # names that container engines give to the end of a pair


class Interface(Struct, frozen=True):
    """One interface. `note` says why MPI between boxes should not use it, and is empty when it may."""

    name: str
    kind: str  # see `kind_of`
    up: bool
    addresses: list[str]  # with prefix length, IPv4 and IPv6, without IPv6 addresses of the link
    carrier: bool | None = None  # a cable, or a peer
    driver: str = ""
    speed: int | None = None  # Mbit/s
    mtu: int | None = None  # bytes
    master: str = ""  # the bridge, the bond or the card that this is a part of
    note: str = ""

    @property
    def networks(self) -> list[ipaddress.IPv4Interface]:
        """The IPv4 addresses that lead further than one cable."""
        found = []
        for text in self.addresses:
            try:
                address = ipaddress.IPv4Interface(text)
            except ValueError:
                continue
            if not address.is_link_local and not address.is_loopback:
                found.append(address)
        return found


def interfaces_of(value: object) -> list[Interface]:
    """The interfaces in the value of the fact network.interfaces."""
    return msgspec.convert(value or [], list[Interface])


def addresses_by_ip(text: str) -> dict[str, list[str]]:
    """Interface -> addresses with prefix length, from `ip -json addr`; empty when it is none."""
    try:
        return {
            str(interface["ifname"]): [
                f"{ipaddress.ip_interface(str(entry['local']) + '/' + str(entry['prefixlen']))}"
                for entry in interface.get("addr_info", ())
                if "local" in entry and not (entry.get("scope") == "link" and ":" in str(entry["local"]))
            ]
            for interface in json.loads(text)
            if "ifname" in interface
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


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


def parse_addresses6(text: str) -> dict[str, list[str]]:
    """Interface -> IPv6 addresses with prefix length, from /proc/net/if_inet6; global ones, and the loopback's."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 6 and words[3] in ("00", "10"):
            try:
                address = ipaddress.IPv6Interface((bytes.fromhex(words[0]), int(words[2], 16)))
            except ValueError:
                continue
            found.setdefault(words[5], []).append(str(address))
    return found


def addresses_by_files(host: Host) -> dict[str, list[str]]:
    """Interface -> addresses from /proc, for boxes without `ip`, such as small containers."""
    found: dict[str, list[str]] = {}
    routes = parse_routes(host.read("/proc/net/route") or "")
    for address in parse_local_addresses(host.read("/proc/net/fib_trie") or ""):
        if address.is_loopback:
            found.setdefault("lo", []).append(f"{address}/8")
        near = [route for route in routes if route.network.prefixlen and address in route.network]
        if near:
            route = max(near, key=lambda route: route.network.prefixlen)
            found.setdefault(route.interface, []).append(f"{address}/{route.network.prefixlen}")
    for name, addresses in parse_addresses6(host.read("/proc/net/if_inet6") or "").items():
        found.setdefault(name, []).extend(addresses)
    return found


class _Folder:
    """The folder of one interface in /sys/class/net."""

    def __init__(self, host: Host, name: str) -> None:
        self._host, self._path, self.name = host, f"{NET}/{name}", name

    def text(self, file: str) -> str:
        return first_line(self._host.read(f"{self._path}/{file}"))

    def number(self, file: str) -> int | None:
        return whole_number(self.text(file))

    def has(self, *files: str) -> bool:
        return any(self._host.exists(f"{self._path}/{file}") for file in files)

    def target(self, link: str) -> str:
        """The name of what a link leads to; empty without the link."""
        return posixpath.basename(self._host.resolve(f"{self._path}/{link}")) if self.has(link) else ""

    def ports(self) -> tuple[str, ...]:
        return self._host.list(f"{self._path}/brif")

    @property
    def device_type(self) -> str:
        """The kernel's word for it: bridge, vlan, wlan, bond, vxlan, wireguard and so on; often empty."""
        found = re.search(r"^DEVTYPE=(\S+)", self._host.read(f"{self._path}/uevent") or "", re.MULTILINE)
        return found[1] if found else ""


def kind_of(host: Host, name: str) -> str:
    """What an interface is, in one word.

    `loopback`, `infiniband` (IP over it), `wireless`, `docker` (a bridge of Docker), `bridge`, `bond`, `vlan`,
    `vpn`, `tunnel`, `wsl-mirrored`, `wsl-nat`, `virtual-function`, `virtual-card` (of a cloud or a hypervisor),
    `physical`, `veth` (one end of a pair between namespaces), `dummy` or `virtual`.
    """
    folder = _Folder(host, name)
    number, device_type = folder.number("type"), folder.device_type
    if number == _LOOPBACK or name == "lo":
        return "loopback"
    if number == _INFINIBAND:
        return "infiniband"
    if device_type == "wlan" or folder.has("wireless", "phy80211"):
        return "wireless"
    if _DOCKER.match(name) and not folder.has("device"):
        return "docker"
    if device_type == "bridge" or folder.has("bridge") or name.startswith(_BRIDGES):
        return "bridge"
    if device_type == "bond" or folder.has("bonding"):
        return "bond"
    if device_type == "vlan":
        return "vlan"
    if folder.has("device"):
        return _kind_of_card(host, folder)
    return _kind_of_software(folder)


def _kind_of_card(host: Host, folder: _Folder) -> str:
    driver = folder.target("device/driver")
    if wsl_version(host.read("/proc/sys/kernel/osrelease") or "") == 2:
        # Only the mode `mirrored` has this interface (microsoft/WSL issues 10650 and 10884).
        return "wsl-mirrored" if host.exists(f"{NET}/loopback0") else "wsl-nat"
    # Azure's accelerated network is a card that passes on what a card of Hyper-V, its master, sends.
    above = _Folder(host, folder.target("master")).target("device/driver")
    if folder.has("device/physfn") or driver in _FUNCTIONS or above == "hv_netvsc":
        return "virtual-function"
    return "virtual-card" if driver in _VIRTUAL_CARDS else "physical"


def _kind_of_software(folder: _Folder) -> str:
    number, device_type = folder.number("type"), folder.device_type
    if number in _TUNNELS or device_type in _TUNNEL_TYPES:
        return "tunnel"
    if device_type in ("wireguard", "ppp") or _VPN.match(folder.name):
        return "vpn"
    if number == _NO_HARDWARE or folder.has("tun_flags"):
        return "tunnel"
    if folder.name.startswith(("dummy", "ifb")):
        return "dummy"
    own, other = folder.number("ifindex"), folder.number("iflink")
    if folder.name.startswith(_EDGES) or (None not in (own, other) and own != other and not device_type):
        return "veth"
    return "virtual"


def read_interface(host: Host, name: str, addresses: Sequence[str]) -> Interface:
    """All that /sys/class/net tells of one interface, with the addresses that were found for it."""
    folder = _Folder(host, name)
    kind, speed = kind_of(host, name), folder.number("speed")
    if kind in _NO_SPEED or not speed or not 0 < speed < 1 << 31:  # unknown is -1; old kernels print no sign
        speed = None
    try:
        up = bool(int(folder.text("flags"), 16) & _UP)
    except ValueError:
        up = bool(addresses)
    interface = Interface(
        name,
        kind,
        up,
        list(addresses),
        {"down": False, "lowerlayerdown": False, "notpresent": False, "up": True}.get(folder.text("operstate")),
        folder.target("device/driver"),
        speed,
        folder.number("mtu"),
        folder.target("master"),
    )
    inner = interface.kind == "bridge" and not any(kind_of(host, port) in _LEAD_OUT for port in folder.ports())
    return msgspec.structs.replace(interface, note=reason_against(interface, inner))


def reason_against(interface: Interface, inner_bridge: bool = False) -> str:
    """Why MPI between boxes should not use an interface; empty when it may."""
    reasons = {
        "loopback": _("leads to this box only"),
        "docker": _("a bridge of Docker inside this box"),
        "vpn": _("a VPN"),
        "tunnel": _("a tunnel"),
        "dummy": _("leads nowhere"),
    }
    if interface.kind in reasons or (interface.kind == "wsl-mirrored" and interface.name == "loopback0"):
        return reasons.get(interface.kind, reasons["loopback"])
    if inner_bridge:
        return _("a bridge inside this box")
    if interface.master and interface.kind == "virtual-function":
        return _("a virtual function of {name}, which has the address").format(name=interface.master)
    if interface.master and not interface.networks:
        return _("a part of {name}").format(name=interface.master)
    if not interface.up:
        return _("down")
    if interface.carrier is False:
        return _("no cable or no peer")
    if interface.networks:
        return ""
    if any(":" in address for address in interface.addresses):
        return _("has an IPv6 address only")
    return _("its address counts on one cable only") if interface.addresses else _("no address")


def find_interfaces(host: Host) -> tuple[list[Interface], str]:
    """All interfaces, those that MPI may use first, and where the addresses were read."""
    answer = ask(host, "ip", "-json", "addr", timeout=_LONGEST_IP)
    addresses, read_from = addresses_by_ip(answer.output), "ip -json addr"
    if not addresses:
        addresses, read_from = addresses_by_files(host), "/proc/net/fib_trie, /proc/net/if_inet6"
    names = dict.fromkeys([*(name for name in host.list(NET) if host.exists(f"{NET}/{name}/type")), *addresses])
    interfaces = [read_interface(host, name, addresses.get(name, ())) for name in names]
    return sorted(interfaces, key=lambda interface: bool(interface.note)), read_from


def speed_text(speed: int | None) -> str:
    """Mbit/s for a person; empty when it is not known."""
    if speed is None:
        return ""
    if speed < 1000:
        return _("{number} Mbit/s").format(number=speed)
    return _("{number:g} Gbit/s").format(number=speed / 1000)


def _short(interface: Interface) -> str:
    """Such as `ens5 172.31.20.5/20 (ena, 25 Gbit/s)`."""
    details = ", ".join(filter(None, (interface.driver, speed_text(interface.speed))))
    text = " ".join((interface.name, *map(str, interface.networks)))
    return f"{text} ({details})" if details else text


def _as_read(interface: Interface) -> str:
    """One line of what was read, for the evidence."""
    words = [f"{interface.name}:", *interface.addresses, "up" if interface.up else "down"]
    words += [f"{what} {value}" for what in ("driver", "mtu", "speed", "master") if (value := getattr(interface, what))]
    return " ".join(words)


def read_interfaces(survey: Survey) -> Iterator[Fact]:
    interfaces, read_from = find_interfaces(survey.host)
    see = "ip -brief addr"
    if not interfaces:
        yield unknown_fact("network.interfaces", _("neither ip nor /proc shows any"), see_yourself=see)
        return
    usable = [interface for interface in interfaces if not interface.note]
    others = [interface for interface in interfaces if interface.note]
    dead = any(interface.kind == "loopback" and not interface.up for interface in interfaces)
    text = ", ".join(map(_short, usable)) or _("none that leads to other boxes")
    if len(others) > 1:  # the loopback is always one
        text += " " + ngettext("+ {count} other", "+ {count} others", len(others)).format(count=len(others))
    yield make_fact(
        "network.interfaces",
        [msgspec.structs.asdict(interface) for interface in interfaces],
        text,
        "attention" if dead else "info",
        read_from=f"{NET}, {read_from}" if survey.host.exists(NET) else read_from,
        raw="\n".join(map(_as_read, interfaces)),
        see_yourself=see,
        meaning=_("The loopback is down: mpirun finds no interface to listen on, and may not start.")
        if dead
        else _("Ranks of one box do not use them; between boxes, Open MPI tries all that are up."),
        action="sudo ip link set lo up" if dead else "",
        claims=(11, 34),
    )


PROBES = (Probe(("network.interfaces",), read_interfaces),)
