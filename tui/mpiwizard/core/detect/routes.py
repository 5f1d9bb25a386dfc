"""Routes, as the kernel lists them: where packets leave the box."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from msgspec import Struct

from mpiwizard.core.detect.facts import Probe, Survey, lines_with, make_fact, unknown_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.i18n import _

ROUTES, ROUTES6 = "/proc/net/route", "/proc/net/ipv6_route"
_UP, _REJECT = 0x1, 0x200  # RTF_UP and RTF_REJECT of linux/route.h


class Route(Struct, frozen=True):
    """One line of /proc/net/route or /proc/net/ipv6_route. `gateway` is empty on the network itself."""

    interface: str
    network: ipaddress.IPv4Network | ipaddress.IPv6Network
    metric: int
    gateway: str = ""


def parse_routes(text: str) -> tuple[Route, ...]:
    """The IPv4 routes that are up; lines of another shape are left out."""
    routes = []
    for line in text.splitlines()[1:]:
        words = line.split()
        try:
            address, gateway, mask = (_address(words[position]) for position in (1, 2, 7))
            network = ipaddress.IPv4Network(f"{address}/{mask}", strict=False)
            if int(words[3], 16) & (_UP | _REJECT) == _UP:
                routes.append(Route(words[0], network, int(words[6]), str(gateway) if int(gateway) else ""))
        except (IndexError, ValueError):
            continue
    return tuple(routes)


def _address(word: str) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(bytes.fromhex(word)[::-1])  # the kernel writes it in the box's own byte order


def parse_routes6(text: str) -> tuple[Route, ...]:
    """The IPv6 routes that are up; lines of another shape are left out."""
    routes = []
    for line in text.splitlines():
        words = line.split()
        try:
            network = ipaddress.IPv6Network((bytes.fromhex(words[0]), int(words[1], 16)), strict=False)
            gateway = ipaddress.IPv6Address(bytes.fromhex(words[4]))
            if int(words[8], 16) & (_UP | _REJECT) == _UP:
                routes.append(Route(words[9], network, int(words[5], 16), str(gateway) if int(gateway) else ""))
        except (IndexError, ValueError):
            continue
    return tuple(routes)


def default_route(routes: tuple[Route, ...]) -> Route | None:
    """The default route with the lowest metric."""
    defaults = [route for route in routes if route.network.prefixlen == 0]
    return min(defaults, key=lambda route: route.metric) if defaults else None


def read_route(survey: Survey) -> Iterator[Fact]:
    """The way out of the box, for IPv4 and for IPv6."""
    text, text6 = survey.host.read(ROUTES), survey.host.read(ROUTES6)
    see = "ip route; ip -6 route"
    if text is None and text6 is None:
        yield unknown_fact("network.route", _("/proc/net does not show routes"), read_from=ROUTES, see_yourself=see)
        return
    routes, routes6 = parse_routes(text or ""), parse_routes6(text6 or "")
    usable = any(not each["note"] for each in survey.found.value("network.interfaces", []))
    if usable and not routes:  # with an address comes a route to its network, but WSL1 shows none
        why = _("an interface has an address, yet no route is shown, not even to its network")
        yield unknown_fact("network.route", why, read_from=ROUTES, raw=text or "", see_yourself=see)
        return
    route, route6 = default_route(routes), default_route(routes6)
    found = [each for each in (route, route6) if each is not None]
    yield make_fact(
        "network.route",
        {
            "interface": route and route.interface,
            "gateway": route and (route.gateway or None),
            "interface6": route6 and route6.interface,
            "gateway6": route6 and (route6.gateway or None),
        }
        if found
        else None,
        ", ".join(map(_spoken, found)) or _("none"),
        read_from=", ".join(path for path, read in ((ROUTES, text), (ROUTES6, text6)) if read is not None),
        raw="\n".join(filter(None, (lines_with(r"^\S+\s+0{8}\s", text), lines_with(r"^0{32} 00 (?!.* lo$)", text6)))),
        see_yourself=see,
        meaning=_("Packets for boxes that no other route knows leave here; ranks of one box need none.")
        if found
        else _("Downloads need a server or a proxy in a network of this box; ranks of one box do not miss it."),
    )


def _spoken(route: Route) -> str:
    if route.gateway:
        return _("{interface} by way of {gateway}").format(interface=route.interface, gateway=route.gateway)
    return route.interface


PROBES = (Probe(("network.route",), read_route, ("network.interfaces",)),)
