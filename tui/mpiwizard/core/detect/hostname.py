"""The box's name, and what it leads to by the files alone: no name server is asked."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from mpiwizard.core.detect.facts import Probe, Survey, first_line, lines_with, make_fact, unknown_fact
from mpiwizard.core.detect.interfaces import parse_local_addresses
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.i18n import _

_NAME, _HOSTS, _ORDER = "/proc/sys/kernel/hostname", "/etc/hosts", "/etc/nsswitch.conf"
_WITHOUT_SERVER = ("files", "myhostname")  # sources of names that ask nobody outside the box


def parse_hosts(text: str, name: str) -> list[str]:
    """The addresses that /etc/hosts gives a name, in its order; lines of another shape are left out."""
    found = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if name.lower() in (word.lower() for word in words[1:]):
            try:
                found.append(str(ipaddress.ip_address(words[0])))
            except ValueError:
                continue
    return list(dict.fromkeys(found))


def parse_order(text: str) -> list[str]:
    """The sources of hosts' names in nsswitch.conf, in their order, without what is said about failures."""
    found = re.findall(r"^[ \t]*hosts:([^\n#]*)", text, re.MULTILINE)
    return re.sub(r"\[[^\]]*\]", " ", found[-1]).split() if found else []


def read_hostname(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    source = next((path for path in (_NAME, "/etc/hostname") if first_line(host.read(path))), _NAME)
    name = first_line(host.read(source))
    see = 'hostname; grep -w "$(hostname)" /etc/hosts; grep ^hosts: /etc/nsswitch.conf'
    if not name:
        yield unknown_fact("network.hostname", _("no file tells it"), read_from=_NAME, see_yourself=see)
        return
    hosts = host.read(_HOSTS) or ""
    order = parse_order(host.read(_ORDER) or "")
    addresses = parse_hosts(hosts, name) if not order or "files" in order else []
    told = (name, lines_with(rf"(?i)\s{re.escape(name)}(\s|$)", hosts), lines_with(r"^\s*hosts:", host.read(_ORDER)))
    own = {str(address) for address in parse_local_addresses(host.read("/proc/net/fib_trie") or "")}
    text, meaning, lost = _judge(addresses, order, own)
    yield make_fact(
        "network.hostname",
        {"name": name, "addresses": addresses, "order": order},
        f"{name}, {text}",
        "attention" if lost else "info",
        read_from=", ".join(path for path in (source, _HOSTS, _ORDER) if host.exists(path)),
        raw="\n".join(filter(None, told)),
        see_yourself=see,
        meaning=meaning,
        action=_("For jobs on several boxes, give it an address in /etc/hosts.") if lost else "",
    )


def _judge(addresses: list[str], order: list[str], own: set[str]) -> tuple[str, str, bool]:
    """What the name leads to, what that means, and whether jobs on several boxes would fail by it."""
    listed = ", ".join(addresses)
    if not addresses:
        if "myhostname" in order:
            return _("by its own addresses"), _("The system answers for its own name."), False
        if order and not set(order) - set(_WITHOUT_SERVER):
            return (
                _("which leads to nothing"),
                _("Ranks of one box do not need it. On several boxes mpirun could not find this one by its name."),
                True,
            )
        return (
            _("not in /etc/hosts"),
            _("Only a name server could know it, which is not asked here. Ranks of one box do not need it."),
            False,
        )
    found = [ipaddress.ip_address(address) for address in addresses]
    if all(address.is_loopback for address in found):
        return listed, _("A loopback address: right for one box, and of no use to other boxes."), False
    reachable = [each for each in found if each.version == 4 and not each.is_loopback]
    strange = [str(each) for each in reachable if own and str(each) not in own]
    if strange:
        return (
            listed,
            _("This box does not have the address {address}: other boxes would look for it in vain.").format(
                address=strange[0]
            ),
            True,
        )
    return listed, _("Other boxes that know it by the same address can start ranks here."), False


PROBES = (Probe(("network.hostname",), read_hostname),)
