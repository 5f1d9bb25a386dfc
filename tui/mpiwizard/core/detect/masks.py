"""What names a person, a company or a box is replaced before a recording leaves it, the same by the same.

Addresses keep their kind (private, link-local, public) and lie in a common network exactly when they did
before, so that all conclusions about networks stay the same.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
from collections.abc import Iterable
from functools import partial

HOST_FILES = ("/proc/sys/kernel/hostname", "/etc/hostname")
GENERIC_HOSTS = frozenset(
    {"localhost", "ubuntu", "debian", "fedora", "archlinux", "alpine", "linux", "raspberrypi", "penguin", "vm", "host",
     "docker-desktop", "toolbox", "server", "node", "buildkitsandbox"}
)  # fmt: skip
GENERIC_USERS = frozenset(
    {"root", "ubuntu", "debian", "admin", "ec2-user", "azureuser", "opc", "centos", "rocky", "fedora", "alpine", "pi",
     "vagrant", "user", "users", "nobody", "runner", "codespace", "vscode", "public", "default", "all users", "mpi"}
)  # fmt: skip
_SIGNS = ("ec2", "googlecloud-", "vmware-")  # beginnings of serial numbers by which a cloud is known
_PUBLIC_TAGS = ("7783-7084-3265-9085-8269-3286-77", "OracleCloud.com", "HUAWEICLOUD", "No Asset Tag", "Amazon EC2")
_SERIAL = re.compile(r"/(?:product_serial|product_uuid|board_serial|chassis_serial|machine-id|uuid)$")
_TAG = re.compile(r"/(?:chassis|board)_asset_tag$")
_ADDRESS_FILES = re.compile(
    r"^/proc/net/|^/etc/hosts$|^/etc/resolv\.conf$|^/proc/self/mountinfo$|^/etc/exports$|(?:^| )ip (?:-\S+ )*"
)
_KEPT_OF_CLOUD_INIT = frozenset(
    {"cloud_name", "cloud-name", "cloud_id", "cloud-id", "platform", "subplatform", "vmSize", "instance_type",
     "instance-type", "machineType", "machine-type", "machine_type", "shape", "flavor", "vendor",
     "instanceType", "commercial_type"}
)  # fmt: skip
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_LONG_HEX = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{32})\b")
_MAC = re.compile(r"(?<![0-9a-fA-F:])(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}(?![0-9a-fA-F:])")
_LONG_MAC = re.compile(r"(?<![0-9a-fA-F:])(?:[0-9a-fA-F]{2}:){7,19}[0-9a-fA-F]{2}(?![0-9a-fA-F:])")  # InfiniBand
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d)")
_IPV6 = re.compile(r"(?<![\w:.])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])")
_NUMBERS = (
    (_UUID, "serial numbers"), (_LONG_HEX, "serial numbers"), (_LONG_MAC, "addresses"), (_MAC, "addresses"),
)  # fmt: skip
_SECRETS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\S+) [A-Za-z0-9+/=]{20,}(?: \S+)?"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
    re.compile(r"(?i)(?<=password=)[^\s,]+|(?<=passwd=)[^\s,]+|(?<=token=)[^\s,]+|(?<=secret=)[^\s,]+"),
)


class Masks:
    """Replaces by rule, and remembers how often for each kind of thing.

    `key` makes the replacement of addresses different in each recording.
    """

    def __init__(self, hosts: Iterable[str], users: Iterable[str], key: bytes) -> None:
        self._key = key
        self.counts: dict[str, set[str]] = {}
        self._names: list[tuple[re.Pattern[str], str]] = []
        self._own_addresses: set[str] = set()
        self._servers: dict[str, str] = {}
        for kind, names in (("host", _distinct(hosts, GENERIC_HOSTS)), ("user", _distinct(users, GENERIC_USERS))):
            for number, name in enumerate(names, 1):
                pattern = re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", re.IGNORECASE)
                self._names.append((pattern, f"{kind}-{number}"))

    def know_addresses(self, text: str) -> None:
        """Addresses that are surely addresses, whatever else looks like one."""
        self._own_addresses.update(_IPV4.findall(text))

    def text(self, text: str, source: str) -> str:
        """The text of a file or the output of a command (`source`: its path or words) with all replaced."""
        if source.endswith("/instance-data.json"):
            text = _pruned(text)
        if source.endswith("/environ"):
            text = "\0".join(word for word in re.split(r"[\0\n]", text) if word.startswith("container="))
        if source == "/etc/passwd":
            text = re.sub(r"(?m)^([^:\n]*:[^:\n]*:[^:\n]*:[^:\n]*):[^:\n]*:", r"\1::", text)
        if _SERIAL.search(source):
            return self._note("serial numbers", text, _blank_serial(text))
        if _TAG.search(source) and text.strip() and text.strip() not in _PUBLIC_TAGS:
            return self._note("serial numbers", text, re.sub(r"\w", "x", text))
        if source in HOST_FILES and text.strip().lower() not in GENERIC_HOSTS:
            return self._note("host names", text, "host-1\n")
        if source == "/proc/cpuinfo":
            text = re.sub(r"(?m)^(Serial\s*:\s*)\w+", r"\g<1>0", text)
        if source == "/proc/net/route":
            return re.sub(r"\b[0-9A-F]{8}\b", lambda found: self._hex_address(found[0]), text)
        if source == "/proc/net/if_inet6":
            return re.sub(r"(?m)^[0-9a-f]{32}", lambda found: self._hex_address6(found[0]), text)
        if source == "/proc/self/mountinfo":
            text = self._without_servers(text)
        text = re.sub(r"(?m)^((?:config|build):(user|host):).*$", r"\1\2-1", text)  # of ompi_info
        return self.plain(text, everywhere=_ADDRESS_FILES.search(source) is not None)

    def plain(self, text: str, everywhere: bool = False) -> str:
        """A path, a variable or any other text; `everywhere` takes all that looks like an IPv4 address for one."""
        for secret in _SECRETS:
            text = secret.sub(lambda found: self._note("keys and passwords", found[0], "REPLACED"), text)
        for pattern, name in self._names:
            kind = f"{name.partition('-')[0]} names"
            text = pattern.sub(partial(self._named, kind, name), text)
        for pattern, kind in _NUMBERS:
            text = pattern.sub(partial(self._numbered, kind), text)
        text = _IPV6.sub(lambda found: self._address6(found[0]), text)
        return _IPV4.sub(lambda found: self._address(found[0], everywhere), text)

    def _named(self, kind: str, name: str, found: re.Match[str]) -> str:
        return self._note(kind, found[0], name)

    def _numbered(self, kind: str, found: re.Match[str]) -> str:
        return self._note(kind, found[0], self._scrambled(found[0]))

    def _note(self, kind: str, before: str, after: str) -> str:
        if before != after:
            self.counts.setdefault(kind, set()).add(before)
        return after

    # --- addresses ---------------------------------------------------------------------------------

    def _flip(self, value: int, bits: int, kept: int) -> int:
        """Bits behind the first `kept` flipped by what is before them: common beginnings stay common.

        Those of a network's own address too, which then looks like one of its hosts: whoever reads it has its length.
        """
        flipped = value
        for place in range(kept, bits):
            before = f"{bits}.{place}.{value >> (bits - place)}"
            digest = hashlib.blake2b(before.encode(), key=self._key, digest_size=1).digest()
            flipped ^= (digest[0] & 1) << (bits - place - 1)
        return flipped

    def _address(self, text: str, everywhere: bool) -> str:
        try:
            address = ipaddress.IPv4Address(text)
        except ValueError:
            return text
        if not (everywhere or text in self._own_addresses or address.is_private):
            return text  # a version, for all we know
        return self._note("addresses", text, str(self._masked4(address)))

    def _masked4(self, address: ipaddress.IPv4Address) -> ipaddress.IPv4Address:
        value = int(address)
        for network in ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3"):  # also netmasks, which begin with 255
            if address in ipaddress.IPv4Network(network):
                return address
        for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10"):
            if address in (within := ipaddress.IPv4Network(network)):
                return ipaddress.IPv4Address(self._flip(value, 32, within.prefixlen))
        low = self._flip(value, 32, 0) & 0xFFFF  # public ones go to the range for benchmarks, 198.18.0.0/15
        return ipaddress.IPv4Address(int(ipaddress.IPv4Address("198.18.0.0")) | low)

    def _address6(self, text: str) -> str:
        try:
            address = ipaddress.IPv6Address(text)
        except ValueError:
            return text
        return self._note("addresses", text, str(self._masked6(address)))

    def _masked6(self, address: ipaddress.IPv6Address) -> ipaddress.IPv6Address:
        value = int(address)
        if value <= 1 or address.is_multicast:
            return address
        for network in ("fe80::/64", "fc00::/8", "fd00::/8"):
            if address in (within := ipaddress.IPv6Network(network)):
                return ipaddress.IPv6Address(self._flip(value, 128, within.prefixlen))
        low = self._flip(value, 128, 0) & ((1 << 96) - 1)  # others go to the range for documentation
        return ipaddress.IPv6Address(int(ipaddress.IPv6Address("2001:db8::")) | low)

    def _hex_address(self, text: str) -> str:
        """One of /proc/net/route, which writes in the byte order of the box."""
        address = ipaddress.IPv4Address(bytes.fromhex(text)[::-1])
        return self._note("addresses", text, self._masked4(address).packed[::-1].hex().upper())

    def _hex_address6(self, text: str) -> str:
        address = ipaddress.IPv6Address(bytes.fromhex(text))
        return self._note("addresses", text, self._masked6(address).packed.hex())

    def _scrambled(self, text: str) -> str:
        """Other hexadecimal digits in the same places; what is all zeros or ones says nothing and stays."""
        if len(set(text) - set(":-")) == 1:
            return text
        digest = iter(hashlib.blake2b(text.lower().encode(), key=self._key, digest_size=64).hexdigest() * 2)
        return "".join(next(digest) if character.isalnum() else character for character in text)

    def _without_servers(self, text: str) -> str:
        """File servers are named by numbers."""

        def rename(found: re.Match[str]) -> str:
            name = self._servers.setdefault(found["name"], f"server-{len(self._servers) + 1}")
            return found["before"] + self._note("host names", found["name"], name) + found["after"]

        text = re.sub(r"(?m)(?P<before> - \S+ )(?P<name>[A-Za-z][\w.-]+)(?P<after>:/)", rename, text)
        return re.sub(r"(?m)(?P<before> - \S+ //)(?P<name>[A-Za-z][\w.-]+)(?P<after>/)", rename, text)


def _distinct(names: Iterable[str], generic: frozenset[str]) -> list[str]:
    """Names that tell whose they are, the longest first, since one may hold another."""
    kept = {name for name in names if len(name) > 1 and name.lower() not in generic}
    return sorted(kept, key=lambda name: (-len(name), name))


def _blank_serial(text: str) -> str:
    kept = next((len(sign) for sign in _SIGNS if text.lower().startswith(sign)), 0)
    return text[:kept] + re.sub(r"[0-9A-Za-z]", "0", text[kept:])


def _pruned(text: str) -> str:
    """cloud-init's data without all that names somebody: only what tells the cloud and the type."""
    try:
        kept = _prune(json.loads(text))
    except (ValueError, RecursionError):
        return ""
    return json.dumps(kept, indent=1)


def _prune(value: object) -> object:
    if isinstance(value, dict):
        branches = {name: _prune(part) if isinstance(part, dict) else part for name, part in value.items()}
        return {
            name: part
            for name, part in branches.items()
            if (isinstance(part, dict) and part) or (name in _KEPT_OF_CLOUD_INIT and isinstance(part, str))
        }
    return value

