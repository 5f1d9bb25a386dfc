"""The layer between us and a system of its own: WSL, a container, a chroot, or none.

Signs are those of systemd-detect-virt (src/basic/virt.c), of virt-what, and of the managers' own documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpiwizard.core.detect.facts import first_line, lines_with
from mpiwizard.core.detect.marks import RELEASE, Finding, wsl_version
from mpiwizard.core.detect.mounts import mount_of, parse_mountinfo
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

LAYER_NAMES = {
    "wsl1": "WSL1",
    "wsl2": "WSL2",
    "docker": "Docker",
    "podman": "Podman",
    "lxc": "LXC",
    "kubernetes": "Kubernetes",
    "apptainer": "Apptainer",
    "systemd-nspawn": "systemd-nspawn",
    "openvz": "OpenVZ",
    "linux-vserver": "Linux-VServer",
    "chroot": "chroot",
}
_MOUNTS = "/proc/self/mountinfo"
_LOOSE_MARKS = (  # (layer, kind of mark, name); they can be left over where there is no container any more
    ("apptainer", "$", "APPTAINER_NAME"),
    ("apptainer", "$", "SINGULARITY_NAME"),
    ("apptainer", "/", "/.singularity.d"),
    ("kubernetes", "$", "KUBERNETES_SERVICE_HOST"),
    ("kubernetes", "/", "/run/secrets/kubernetes.io/serviceaccount"),
    ("kubernetes", "/", "/var/run/secrets/kubernetes.io/serviceaccount"),
)
_LEFT_IN_IMAGES = (("podman", "/", "/run/.containerenv"), ("docker", "/", "/.dockerenv"))
# Names of groups as the container managers make them, with cgroupfs and with systemd; cri-containerd and crio are
# those of Kubernetes. /lxc.monitor is the group of a manager, outside of its container.
_GROUPS = (
    ("kubernetes", r"/kubepods|cri-containerd[-:]|/crio-"),
    ("podman", r"/libpod[-_]"),
    ("docker", r"/docker/.|/docker-[0-9a-f]{12}"),
    ("lxc", r"/lxc/|/lxc\.payload"),
)


def find_layer(host: Host) -> Finding:
    """The innermost layer. A container inside WSL is a container."""
    doubts: list[str] = []
    for layer, read_from, raw in _signs(host, doubts):
        return Finding(layer, read_from, raw, _maker(host, layer), tuple(doubts))
    version = wsl_version(host.read(RELEASE) or "")
    if version:
        return Finding(f"wsl{version}", RELEASE, host.read(RELEASE) or "", "", tuple(doubts))
    if host.environment.get("WSL_DISTRO_NAME"):
        doubts.append(_("WSL_DISTRO_NAME is set, but the name of the kernel is not one of WSL's."))
    mounts = parse_mountinfo(host.read(_MOUNTS) or "")
    if mounts and mount_of(mounts, "/") is None:  # the root folder lies within a mount that is not seen from here
        return Finding("chroot", _MOUNTS, _mount_points(host), "", tuple(doubts))
    mounted = any(host.exists(f"/proc/{name}") for name in ("self/status", "cpuinfo", "sys/kernel/osrelease"))
    place = f"{RELEASE}, {_MOUNTS}"
    return Finding("none" if mounted else None, place, host.read(RELEASE) or "", "", tuple(doubts))


def _signs(host: Host, doubts: list[str]) -> Iterator[tuple[str, str, str]]:
    """The container's signs that hold, as (layer, where, raw text), the innermost and surest first."""
    yield from _loose_signs(host, _LOOSE_MARKS, doubts)
    for name, where, raw in _managers(host):
        if name not in ("wsl", "oci"):  # some images say oci of themselves, which is no manager
            yield _layer_of_manager(name), where, raw
    yield from _loose_signs(host, _LEFT_IN_IMAGES, doubts)
    # /proc/vz is there outside of the container too, /proc/bc only outside.
    if host.exists("/proc/vz") and not host.exists("/proc/bc"):
        yield "openvz", "/proc/vz", _("/proc/vz is there, and /proc/bc is not")
    context = re.search(r"^VxID:\s*[1-9].*$", host.read("/proc/self/status") or "", re.MULTILINE)
    if context:
        yield "linux-vserver", "/proc/self/status", context[0]
    for path in ("/proc/1/cgroup", "/proc/self/cgroup"):
        groups = host.read(path) or ""
        for layer, pattern in _GROUPS:
            if found := lines_with(pattern, groups):
                yield layer, path, found
    for name, where, raw in _managers(host):
        if name == "oci":
            yield "container", where, raw


def _loose_signs(
    host: Host, marks: tuple[tuple[str, str, str], ...], doubts: list[str]
) -> Iterator[tuple[str, str, str]]:
    for layer, kind, name in marks:
        there = bool(host.environment.get(name)) if kind == "$" else host.exists(name)
        if not there:
            continue
        sign = f"${name}" if kind == "$" else name
        if left_over_from_image(host):
            message = _("{sign} speaks of {layer}, but the root folder is a whole disk of this system's own.")
            doubts.append(message.format(sign=sign, layer=LAYER_NAMES[layer]))
            continue
        if host.read(_MOUNTS) is None:
            message = _("Nothing confirms {sign}: there is no {path} to see whose the root folder is.")
            doubts.append(message.format(sign=sign, path=_MOUNTS))
        raw = f"{name}={host.environment.get(name)}" if kind == "$" else _("{path} is there").format(path=name)
        yield layer, sign, "\n".join(filter(None, (raw, lines_with(r"^\S+ \S+ \S+ \S+ / ", host.read(_MOUNTS)))))


def left_over_from_image(host: Host) -> bool:
    """Whether a container's marker is only a rest of the image a machine was made from.

    A real container has its root folder on a layered file system, or files of /etc mounted one by one.
    A virtual machine or a distribution of WSL made from an image has neither.
    """
    mounts = parse_mountinfo(host.read(_MOUNTS) or "")
    root = mount_of(mounts, "/")
    if root is None:
        return False
    mounted_files = {"/etc/hostname", "/etc/hosts", "/etc/resolv.conf"} & {mount.point for mount in mounts}
    return root.source.startswith("/dev/") and root.root == "/" and not mounted_files


def _managers(host: Host) -> Iterator[tuple[str, str, str]]:
    """The names that managers gave by systemd's container interface, as (name, where, raw text)."""
    for path in ("/run/host/container-manager", "/run/systemd/container"):
        if name := first_line(host.read(path)):
            yield name, path, name
    for word in re.split(r"[\0\n]", host.read("/proc/1/environ") or ""):
        if word.startswith("container=") and word != "container=":
            yield word.partition("=")[2], "/proc/1/environ", word


def _layer_of_manager(name: str) -> str:
    name = {"lxc-libvirt": "lxc", "lxd": "lxc", "incus": "lxc", "singularity": "apptainer"}.get(name, name)
    return name if name in LAYER_NAMES else "container"


def _maker(host: Host, layer: str) -> str:
    """Whose LXC it is: LXD and Incus put a socket for their guests in place."""
    sockets = {"/dev/incus/sock": "Incus", "/dev/lxd/sock": "LXD"}
    return next((name for path, name in sockets.items() if layer == "lxc" and host.exists(path)), "")


def _mount_points(host: Host) -> str:
    return "\n".join((host.read(_MOUNTS) or "").splitlines()[:4])
