"""The network that TCP should use between boxes, and the network mode of WSL."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from msgspec import Struct

from mpiwizard.core.detect.facts import Probe, Survey, ask, first_line, make_fact, unknown_fact
from mpiwizard.core.detect.interfaces import NET, Interface, interfaces_of, speed_text
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.i18n import _, ngettext

_WEAK = ("veth", "virtual", "wireless")  # taken when there is nothing better
_MODES = ("none", "nat", "bridged", "mirrored", "virtioproxy", "consomme")  # what wslinfo prints under WSL2
_MOST_NAMED = 3  # interfaces left out that are named with their reason


class Candidate(Struct, frozen=True):
    """An interface with its first IPv4 address: what ranks on other boxes could connect to."""

    interface: Interface
    address: ipaddress.IPv4Interface

    @property
    def name(self) -> str:
        return self.interface.name

    @property
    def speed(self) -> int:
        return self.interface.speed or 0

    @property
    def order(self) -> tuple[bool, bool, int]:
        """The smaller the better: cards before weaker kinds, private addresses before public ones, then speed."""
        return (self.interface.kind in _WEAK, not self.address.is_private, -self.speed)


def find_candidates(interfaces: list[Interface], default: str | None) -> list[Candidate]:
    """The interfaces MPI may use between boxes, the best first; the default route decides where nothing else does.

    Where there is none, the default route's own interface is taken as it is.
    """
    candidates = [Candidate(each, each.networks[0]) for each in interfaces if not each.note and each.networks]
    if not candidates:
        kept = [each for each in interfaces if each.name == default and each.networks]
        candidates = [Candidate(each, each.networks[0]) for each in kept]
    return sorted(candidates, key=lambda candidate: (candidate.order, candidate.name != default))


def read_include(survey: Survey) -> Iterator[Fact]:
    """The network in CIDR form for btl_tcp_if_include: names of interfaces differ from box to box."""
    found = survey.found
    see, rests_on = "ip -brief -4 addr; ip route", ("network.interfaces", "network.route")
    if found.fact("network.interfaces").state == "unknown":
        yield unknown_fact("network.include", _("the interfaces are not known"), see_yourself=see)
        return
    interfaces = interfaces_of(found.value("network.interfaces"))
    default = found.value("network.route", {}).get("interface")
    candidates = find_candidates(interfaces, default)
    if not candidates:
        yield make_fact(
            "network.include",
            None,
            _("none"),
            see_yourself=see,
            meaning=" ".join(filter(None, (_nothing_leads_out(interfaces), _left_out(interfaces, None)))),
            rests_on=rests_on,
            claims=(35, 38),
        )
        return
    chosen = candidates[0]
    network = chosen.address.network
    alone = network.prefixlen == 32
    intruders = [] if alone else [each for each in interfaces if _intrudes(each, chosen)]
    by_name = alone or bool(intruders)
    names = [each.name for each in candidates if each.address in network and not _intrudes(each.interface, chosen)]
    text = _("by its name, {name}") if by_name else _("{network}, on {name}")
    yield make_fact(
        "network.include",
        None if by_name else str(network),
        text.format(network=network, name=_(" and ").join(names)),
        "attention" if any(each.note for each in intruders) else "info",  # a docked laptop is nothing unusual
        see_yourself=see,
        meaning=" ".join(
            filter(
                None,
                (
                    _("The address has no network around it here, as usual on this kind of cloud.") if alone else "",
                    _reason(chosen, [each for each in candidates if each.name not in names], default),
                    _reach(chosen.interface, found.value("platform.layer")),
                    _left_out(interfaces, chosen),
                ),
            )
        ),
        action=_("For a job on several boxes: --mca btl_tcp_if_include {what}").format(
            what=",".join(names) if by_name else network
        ),
        rests_on=rests_on,
        contradictions=tuple(_contradictions(chosen, candidates, intruders, default)),
        claims=(35, 38),
    )


def _intrudes(interface: Interface, chosen: Candidate) -> bool:
    """Whether the chosen network's CIDR form would choose an interface that is better left out."""
    weaker = interface.kind in _WEAK and chosen.interface.kind not in _WEAK  # ranks would send half of their data there
    if not (interface.note or weaker) or not interface.up or interface.name == chosen.name:
        return False
    return any(address.ip in chosen.address.network for address in interface.networks)


def _nothing_leads_out(interfaces: list[Interface]) -> str:
    if any(each.up and each.kind != "loopback" and ":" in "".join(each.addresses) for each in interfaces):
        return _("There are IPv6 addresses only, which Open MPI uses when it was built with --enable-ipv6.")
    return _("No interface leads to other boxes. One box needs none.")


def _reason(chosen: Candidate, others: list[Candidate], default: str | None) -> str:
    """Why this network, and not that of the next best."""
    if not others:
        if chosen.interface.note:
            return _("It is {reason}, but nothing else leads out.").format(reason=chosen.interface.note)
        return _("It is the only network here that can lead to other boxes.")
    weak, public, slowness = (mine != theirs for mine, theirs in zip(chosen.order, others[0].order, strict=True))
    names = ", ".join(each.name for each in others[:_MOST_NAMED])
    if weak:
        return _("Chosen before {names}: it is a card of its own.").format(names=names)
    if public:
        return _("Chosen before {names}: its address is private.").format(names=names)
    if slowness:
        speed = speed_text(chosen.interface.speed)
        return _("Chosen before {names}: it is the fastest known, {speed}.").format(names=names, speed=speed)
    if chosen.name == default:
        return _("Chosen before {names}: the default route leads through it.").format(names=names)
    return _("Chosen before {names}, though nothing known here tells them apart.").format(names=names)


def _reach(interface: Interface, layer: object) -> str:
    """Where the kind of network tells that other boxes may not reach it."""
    if interface.kind == "wsl-nat":
        return _("Other boxes reach it only in the mode mirrored or bridged of WSL.")
    if layer in ("docker", "podman") and interface.kind in ("veth", "tunnel"):  # else it is one of the host
        return _("It is the container's own: other boxes reach it only with --network=host.")
    return ""


def _left_out(interfaces: list[Interface], chosen: Candidate | None) -> str:
    """The interfaces that Open MPI would try too, and why it should not."""
    tried = [
        each
        for each in interfaces
        if each.note and each.up and each.networks and (chosen is None or each.name != chosen.name)
    ]
    if not tried:
        return ""
    named = ", ".join(f"{each.name} ({each.note})" for each in tried[:_MOST_NAMED])
    more = len(tried) - _MOST_NAMED
    if more > 0:
        named += " " + ngettext("and {count} more", "and {count} more", more).format(count=more)
    return _("Left out: {interfaces}.").format(interfaces=named)


def _contradictions(
    chosen: Candidate, candidates: list[Candidate], intruders: list[Interface], default: str | None
) -> Iterator[str]:
    if default is not None and default != chosen.name:
        yield _("The default route goes through {name}.").format(name=default)
    for each in candidates:
        if each.speed > chosen.speed > 0 and each.interface.kind not in _WEAK:
            yield _("{name} is faster, {speed}, but its address is public.").format(
                name=each.name, speed=speed_text(each.interface.speed)
            )
    for interface in intruders:
        yield _("{name} ({reason}) has an address of the same network, so that {network} would choose it too.").format(
            name=interface.name, reason=interface.note or interface.kind, network=chosen.address.network
        )


def read_mode(survey: Survey) -> Iterator[Fact]:
    """How WSL2 joins the network of Windows; nothing is told anywhere else."""
    host = survey.host
    if survey.found.value("platform.layer") != "wsl2":
        return
    see = "wslinfo --networking-mode"
    mirrors = host.exists(f"{NET}/loopback0")
    hint = " " + _("(loopback0 is there, which only the mode mirrored has)") if mirrors else ""
    if not host.which("wslinfo"):
        yield unknown_fact("network.mode", _("there is no wslinfo here") + hint, see_yourself=see)
        return
    answer = ask(host, "wslinfo", "--networking-mode")
    mode = first_line(answer.output).lower()
    if answer.timed_out or mode not in _MODES:
        reason = _("wslinfo did not end") if answer.timed_out else _("wslinfo named no mode")
        yield unknown_fact("network.mode", reason + hint, read_from=see, raw=answer.output, see_yourself=see)
        return
    meanings = {
        "mirrored": _("The loopback of this mode has had faults. If mpirun hangs at its start, try the mode nat."),
        "none": _("There is no network; ranks of this box talk through shared memory all the same."),
    }
    otherwise = _("Ranks of this box talk through shared memory, which no network mode slows down.")
    yield make_fact(
        "network.mode",
        mode,
        mode,
        "attention" if mode == "mirrored" else "info",
        read_from=see,
        raw=answer.output,
        see_yourself=see,
        meaning=meanings.get(mode, otherwise),
        contradictions=(_("loopback0 is there, which only the mode mirrored has"),)
        if mirrors and mode != "mirrored"
        else (),
        claims=(11, 47),
    )


PROBES = (
    Probe(("network.include",), read_include, ("network.interfaces", "network.route", "platform.layer")),
    Probe(("network.mode",), read_mode, ("platform.layer",)),
)
