"""What a recording leaves out of a file, since detection does not look at it and it may name somebody."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection

from msgspec import Struct

from mpiwizard.core.detect.mounts import NETWORK_TYPES, WINDOWS_TYPES, is_below, unescape

_KEPT_OF_CLOUD_INIT = frozenset(
    {"cloud_name", "cloud-name", "cloud_id", "cloud-id", "platform", "subplatform", "vmSize", "instance_type",
     "instance-type", "machineType", "machine-type", "machine_type", "shape", "flavor", "vendor",
     "instanceType", "commercial_type"}
)  # fmt: skip
_KEPT_OF_MODULES = re.compile(  # the statements by which module_files.py comes to paths
    r"#%Module|\s*(?:set\s|(?:pre|ap)pend-path\s|(?:pre|ap)pend_path\s*[({]|(?:local\s+)?\w+\s*=)"
)
_OF_THE_SYSTEM = re.compile(r"/(?:etc|dev|proc|sys|usr|var/lib|run/(?!media|user))(?:/|$)")
_KEPT_OPTIONS = ("size=", "mode=", "aname=", "path=")  # of mounts; others name servers, accounts and folders


class Interest(Struct, frozen=True):
    """What detection wanted to know of a box: names of it, of who asked, and the paths that were asked for."""

    hosts: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()


def prune(text: str, source: str, interest: Interest) -> str:
    """The text of a file (`source`: its path) without what is of no interest."""
    if source.endswith("/instance-data.json"):
        return _json(text, _of_cloud_init)
    if source.endswith("/plan.json"):
        return _json(text, lambda plan: {"prefix": plan.get("prefix")} if isinstance(plan, dict) else {})
    if source.endswith("/environ"):
        return "\0".join(word for word in re.split(r"[\0\n]", text) if word.startswith("container="))
    if source.endswith(".lua") or text.startswith("#%Module"):
        return _lines(text, lambda line: _KEPT_OF_MODULES.match(line) is not None)
    if source.endswith((".conf", "/hosts")):
        text = re.sub(r"(?m)(^|[ \t])#.*$", "", text)
    if source.startswith("ip "):
        return re.sub(r'("ifalias": ?)"[^"]*"', r'\1""', text)
    if source == "/etc/passwd":
        text = re.sub(r"(?m)^([^:\n]*:[^:\n]*:[^:\n]*:[^:\n]*):[^:\n]*:", r"\1::", text)
        return _lines(text, lambda line: line.partition(":")[0] in interest.users | {"root"})
    if source == "/etc/hosts":
        return _lines(text, lambda line: _is_ours(line.split()[1:], interest.hosts))
    if source in ("/proc/self/mountinfo", "/proc/mounts"):
        return _lines(text, lambda line: _matters(line, interest.paths), _without_options)
    return text


def _lines(text: str, keep: Callable[[str], bool], change: Callable[[str], str] = str) -> str:
    return "".join(change(line) for line in text.splitlines(keepends=True) if keep(line))


def _is_ours(names: list[str], hosts: Collection[str]) -> bool:
    return any(name in hosts or name.startswith(("localhost", "ip6-")) for name in names)


def _matters(line: str, paths: Collection[str]) -> bool:
    """Whether a mount has a bearing on an answer: disks and servers only where something asked for lies on them."""
    before, separator, after = line.partition(" - ")
    words = before.split(" ")
    kind, source = (after.split(" ")[:2] if separator else [*words[2:3], words[0]]) or ("", "")
    place = words[4] if separator and len(words) > 4 else words[1] if len(words) > 1 else ""
    foreign = kind in NETWORK_TYPES or kind.startswith(("fuse.", "zfs", "autofs")) or source.startswith("/dev/")
    if kind in WINDOWS_TYPES or not foreign or _OF_THE_SYSTEM.match(place):
        return True
    return any(is_below(path, unescape(place)) for path in paths)


def _without_options(line: str) -> str:
    """A mount without options that say more than what it is."""

    def keep(options: re.Match[str]) -> str:
        words = options[0].split(",")
        return ",".join(word for word in words if "=" not in word or word.startswith(_KEPT_OPTIONS)) or "rw"

    return re.sub(r"(?<= )(?:ro|rw)(?:,[^ \n]*)?(?= |$)", keep, line)


def _json(text: str, kept: Callable[[object], object]) -> str:
    try:
        return json.dumps(kept(json.loads(text)), indent=1)
    except (ValueError, RecursionError):
        return ""


def _of_cloud_init(value: object) -> object:
    """Only what tells the cloud and the type."""
    if isinstance(value, dict):
        branches = {name: _of_cloud_init(part) if isinstance(part, dict) else part for name, part in value.items()}
        return {
            name: part
            for name, part in branches.items()
            if (isinstance(part, dict) and part) or (name in _KEPT_OF_CLOUD_INIT and isinstance(part, str))
        }
    return value
