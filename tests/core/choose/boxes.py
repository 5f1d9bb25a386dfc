"""Machines for the tests of choose and configure, made of the few facts these stages look at."""

from __future__ import annotations

from typing import Any

from mpiwizard.core.detect.model import Fact, Machine

RELEASE = {"release": "5.0.11", "file": "openmpi-5.0.11.tar.bz2", "sha256": ""}
DISTRO = {"release": "4.1.4", "file": "openmpi_4.1.4.orig.tar.xz", "sha256": "d" * 64}
TOOLS = {f"tool.{name}": {"path": f"/usr/bin/{name}", "version": "1"} for name in ("cc", "make", "perl", "bash")}
GIB = 1 << 30


def box(**changed: Any) -> Machine:
    """A two-core Debian with all tools, no Fortran, and two sources; `cpu_usable=8` changes a fact's value."""
    values: dict[str, Any] = {
        "platform.layer": "none",
        "platform.virtualisation": "kvm",
        "platform.provider": "none",
        "platform.distribution": {"id": "debian", "version": "12", "name": "Debian 12", "family": "apt"},
        "cpu.usable": 2,
        "memory.available": 8 * GIB,
        "network.fabric": [],
        "mpi.installations": [],
        "source.release": RELEASE,
        "source.distro": DISTRO,
        **TOOLS,
        **{name.replace("_", ".", 1): value for name, value in changed.items()},
    }
    return Machine(tuple(make_fact(name, value) for name, value in values.items()))


def make_fact(name: str, value: Any, **more: Any) -> Fact:
    group = {"tool": "tools", "source": "sources"}.get(name.partition(".")[0], name.partition(".")[0])
    return Fact(name, group, name, value, str(value), **{"state": "info", "meaning": f"{name} is not here", **more})


def with_fact(machine: Machine, fact: Fact) -> Machine:
    """The machine with this fact instead of the one of the same id."""
    others = tuple(one for one in machine.facts if one.id != fact.id)
    return Machine((*others, fact), machine.headline)
