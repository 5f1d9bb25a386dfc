"""What names a person, a company or a box is replaced before a recording leaves it, the same by the same.

Addresses keep their kind (private, link-local, public) and lie in a common network exactly when they did
before, so that all conclusions about networks stay the same.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterable
from functools import partial

from mpiwizard.core.detect.pruning import Interest, prune

HOST_FILES = ("/proc/sys/kernel/hostname", "/etc/hostname")
_TELL_NOTHING = frozenset(  # many have such names, also with a number; to replace words of systems would do damage
    """
    localhost localdomain ubuntu debian fedora archlinux alpine linux raspberrypi penguin host docker-desktop toolbox
    server node nodes head login compute worker master buildkitsandbox gateway router proxy example invalid
    com org net edu gov mil int arpa local lan home internal intranet corp domain cluster svc cloud novalocal ec2 test
    root admin ec2-user azureuser opc centos rocky vagrant user users nobody runner codespace vscode public default
    all mpi linuxbrew shared guest
    bin boot dev etc include kernel lib lib32 lib64 libexec log media mnt opt proc run sbin share shm snap software
    spool src srv sys system tmp usr var apps data scratch work project projects tools modules modulefiles
    spack conda miniconda3 anaconda3 envs python python3 perl bash make gcc clang cmake build
    openmpi mpich mpirun mpiexec mpicc pmix prte hwloc libfabric ucx slurm pbs lsf flux
    aws amazon azure microsoft google gcp alibaba tencent huawei oracle ibm openstack intel amd nvidia mellanox arm
    docker podman lxc apptainer singularity kubernetes kubepods containerd kvm qemu xen vmware wsl wslg windows
    eth ib ens eno enp wlan tun tap bond br veth sda nvme mlx tty
    cpu cpus memory net network link scope family address inet inet6 ether loopback flags type state speed device
    driver online self status limits version release rdma infiniband class block virtual devices machine slice
    session service config prefix option path true false none yes max total available true size mode free
    """.split()  # noqa: SIM905
) | {"all users"}
_SIGNS = ("ec2", "googlecloud-", "vmware-")  # beginnings of serial numbers by which a cloud is known
_PUBLIC_TAGS = ("7783-7084-3265-9085-8269-3286-77", "OracleCloud.com", "HUAWEICLOUD", "No Asset Tag", "Amazon EC2")
_SERIAL = re.compile(r"/(?:product_serial|product_uuid|board_serial|chassis_serial|machine-id|uuid)$")
_TAG = re.compile(r"/(?:chassis|board)_asset_tag$")
_ADDRESS_FILES = re.compile(
    r"^/proc/net/|^/etc/hosts$|^/etc/resolv\.conf$|^/proc/self/mountinfo$|^/etc/exports$|(?:^| )ip (?:-\S+ )*"
)
_UUID = re.compile(
    r"(?:(?<=pod)|(?<![0-9a-zA-Z]))[0-9a-fA-F]{8}(?:[-_][0-9a-fA-F]{4}){3}[-_][0-9a-fA-F]{12}(?![0-9a-zA-Z])"
)
_NAMED_MAC = re.compile(r"(?<=\b(?:enx|wlx|wwx))[0-9a-f]{12}\b")  # systemd names devices on USB so
_LONG_HEX = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{32})\b")
_MAC = re.compile(r"(?<![0-9a-fA-F:])(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}(?![0-9a-fA-F:])")
_LONG_MAC = re.compile(r"(?<![0-9a-fA-F:])(?:[0-9a-fA-F]{2}:){7,19}[0-9a-fA-F]{2}(?![0-9a-fA-F:])")  # InfiniBand
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d)")
_IPV6 = re.compile(r"(?<![\w:.])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])")
_NAMED_ADDRESS = re.compile(r"(?<=\bip-)\d{1,3}(?:-\d{1,3}){3}\b")  # AWS names hosts so
_NUMBERS = (
    (_NAMED_MAC, "addresses"), (_NAMED_ADDRESS, "addresses"),
    (_UUID, "serial numbers"), (_LONG_HEX, "serial numbers"), (_LONG_MAC, "addresses"), (_MAC, "addresses"),
)  # fmt: skip
_SECRETS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\S+) [A-Za-z0-9+/=]{20,}(?: \S+)?"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
    re.compile(r"[\w.+-]+@(?:[A-Za-z][\w-]*\.)+[A-Za-z]{2,}\b|\b\d{4,5}@[A-Za-z][\w.-]*"),  # mail, servers of licences
    re.compile(r"(?i)(?P<before>(?:passw(?:or)?d|token|secret)\s*[=:]\s*)[^\s,\"]+"),
)


_SOURCES = {  # where a file or the output of a program names what is mounted
    "/proc/self/mountinfo": re.compile(r"(?m)(?<= - )(\S+ )(\S+)"),
    "/proc/mounts": re.compile(r"(?m)^()(\S+)(?= /)"),
    "df": re.compile(r"(?m)^()(\S.*?)(?= +\d+ +\d+ +\d+ )"),
}
_NAMED_DEVICES = ("/dev/mapper/", "/dev/disk/", "/dev/zvol/")
NO_INTEREST = Interest()


class Masks:
    """Replaces by rule, and remembers how often for each kind of thing.

    `key` makes the replacement of addresses different in each recording.
    """

    def __init__(
        self, hosts: Iterable[str], users: Iterable[str], key: bytes, interest: Interest = NO_INTEREST
    ) -> None:
        self._key, self._interest = key, interest
        self.counts: dict[str, set[str]] = {}
        self._names: list[tuple[str, re.Pattern[str], str]] = []
        self._own_addresses: set[str] = set()
        self._sources: dict[str, str] = {}
        for kind, names in (("host", _distinct(hosts)), ("user", _distinct(users))):
            for number, name in enumerate(names, 1):
                pattern = re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", re.IGNORECASE)
                self._names.append((name.lower(), pattern, f"{kind}-{number}"))

    def know_addresses(self, text: str) -> None:
        """Addresses that are surely addresses, whatever else looks like one."""
        self._own_addresses.update(_IPV4.findall(text))

    def text(self, text: str, source: str) -> str:
        """The text of a file or the output of a command (`source`: its path or words) with all replaced."""
        text = prune(text, source, self._interest)
        if _SERIAL.search(source):
            return self._note("serial numbers", text, _blank_serial(text))
        if _TAG.search(source) and text.strip() and text.strip() not in _PUBLIC_TAGS:
            return self._note("serial numbers", text, re.sub(r"\w", "x", text))
        if source == "/proc/cpuinfo":
            text = re.sub(r"(?m)^(Serial\s*:\s*)\w+", r"\g<1>0", text)
        if source == "/proc/net/route":
            text = re.sub(r"\b[0-9A-F]{8}\b", lambda found: self._hex_address(found[0]), text)
        if source in ("/proc/net/if_inet6", "/proc/net/ipv6_route"):
            addressed = re.sub(r"\b[0-9a-f]{32}\b", lambda found: self._hex_address6(found[0]), text)
            return _NAMED_MAC.sub(partial(self._numbered, "addresses"), addressed)
        if pattern := _SOURCES.get(source.partition(" ")[0]):
            text = pattern.sub(lambda found: found[1] + self._source(found[2]), text)
        text = re.sub(r"(?m)^((?:config|build):(user|host):).*$", r"\1\2-1", text)  # of ompi_info
        text = re.sub(r"(?m)^( *(?:Configured by|Configure host|Built by|Built host): ).*$", r"\1REPLACED", text)
        return self.plain(text, everywhere=_ADDRESS_FILES.search(source) is not None)

    def plain(self, text: str, everywhere: bool = False) -> str:
        """A path, a variable or any other text; `everywhere` takes all that looks like an IPv4 address for one."""
        for secret in _SECRETS:
            text = secret.sub(self._secret, text)
        small = text.lower()
        for plain, pattern, name in self._names:
            if plain not in small:
                continue
            kind = f"{name.partition('-')[0]} names"
            text = pattern.sub(partial(self._named, kind, name), text)
        for pattern, kind in _NUMBERS:
            text = pattern.sub(partial(self._numbered, kind), text)
        text = _IPV6.sub(lambda found: self._address6(found[0]), text)
        return _IPV4.sub(lambda found: self._address(found[0], everywhere), text)

    def _named(self, kind: str, name: str, found: re.Match[str]) -> str:
        return self._note(kind, found[0], name)

    def _secret(self, found: re.Match[str]) -> str:
        return self._note("keys and passwords", found[0], found.groupdict().get("before", "") + "REPLACED")

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

    def _source(self, source: str) -> str:
        """What is mounted, by a number where it names a server, a folder on it, or a volume somebody gave a name."""
        if source.startswith("//"):
            shape = "//server-{}/share"
        elif source.startswith(_NAMED_DEVICES):
            shape = "/dev/volume-{}"
        elif re.search(r"[:@]", source) and source[1:2] != ":":  # but not a drive of Windows
            shape = "server-{}:/share"
        elif "/" in source and not source.startswith("/"):
            shape = "pool-{}/volume"
        else:
            return source
        name = self._sources.setdefault(source, shape.format(len(self._sources) + 1))
        return self._note("mounted things", source, name)


def _distinct(names: Iterable[str]) -> list[str]:
    """Names that tell whose they are, the longest first, since one may hold another."""
    kept = {name for name in names if len(name) > 2 and not _tells_nothing(name.lower())}
    return sorted(kept, key=lambda name: (-len(name), name))


def _tells_nothing(name: str) -> bool:
    word = name.rstrip("0123456789-_")
    return not re.search(r"[^\W\d_]{2}", word) or word in _TELL_NOTHING or name in _TELL_NOTHING


def _blank_serial(text: str) -> str:
    kept = next((len(sign) for sign in _SIGNS if text.lower().startswith(sign)), 0)
    return text[:kept] + re.sub(r"[0-9A-Za-z]", "0", text[kept:])
