"""The microarchitecture of the processor, by the names that Spack, EasyBuild and many a cluster use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpiwizard.core.detect.facts import Probe, Survey, lines_with, make_fact, unknown_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.i18n import _

if TYPE_CHECKING:
    from archspec.cpu import Microarchitecture


def parse_first_processor(cpuinfo: str) -> dict[str, str]:
    """The entries of the first processor in /proc/cpuinfo."""
    entries: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, colon, value = line.partition(":")
        if not colon and entries:
            break
        if colon:
            entries[name.strip()] = value.strip()
    return entries


def microarchitecture(architecture: str, cpuinfo: str) -> Microarchitecture | None:
    """The most specific one this processor can run; None where archspec has none for it.

    `architecture` as uname says it. archspec's own `host()` reads the box it runs on, so we ask its
    list of targets: those of our maker first, as long as they are above the best that no maker owns.
    """
    from archspec.cpu import TARGETS, Microarchitecture

    entries = parse_first_processor(cpuinfo)
    features = set((entries.get("flags") or entries.get("Features") or "").split())
    power = re.search(r"POWER([0-9]{1,2})", entries.get("cpu", ""))
    part = entries.get("CPU part", "")
    here = Microarchitecture("", [], _maker(entries), features, {}, int(power[1]) if power else 0, part)
    targets = [
        target
        for target in TARGETS.values()
        if str(target.family) == architecture
        and target.vendor in ("generic", here.vendor or target.vendor)
        and target.features <= here.features  # with the other names that some features have
        and target.generation <= here.generation
        and _can_be_told(target, entries)
    ]
    if not targets:
        return None
    base = max((target for target in targets if target.vendor == "generic"), key=_rank, default=None)
    same_part = [target for target in targets if part and target.cpu_part == part]
    own = [target for target in same_part or targets if base is None or target > base]
    return max(own, key=_rank, default=base)


def _can_be_told(target: Microarchitecture, entries: dict[str, str]) -> bool:
    """Whether features tell this target: not so the levels of Arm (armv8.4a), and RISC-V only has names."""
    family = str(target.family)
    if family == "riscv64" and target.vendor != "generic":
        name = entries.get("uarch") or entries.get("model name") or ""  # such as sifive,u74-mc or Spacemit(R) X60
        return str(target) == re.split("[, ]", name)[-1].replace("-", "").lower()
    return family != "aarch64" or target.vendor != "generic" or str(target) == family


def _maker(entries: dict[str, str]) -> str:
    """The maker as archspec names it; empty where cpuinfo never names one, as of Power and RISC-V."""
    from archspec.cpu.schema import TARGETS_JSON

    if "CPU implementer" in entries:
        makers: dict[str, str] = TARGETS_JSON["conversions"]["arm_vendors"]
        return makers.get(entries["CPU implementer"], "unknown")
    return entries.get("vendor_id", "unknown" if "flags" in entries else "")


def _rank(target: Microarchitecture) -> tuple[int, int]:
    return len(target.ancestors), len(target.features)


def read_microarchitecture(survey: Survey) -> Iterator[Fact]:
    path = "/proc/cpuinfo"
    see = "lscpu"
    architecture = survey.found.value("cpu.architecture")
    cpuinfo = survey.host.read(path)
    if not cpuinfo or architecture is None:
        why = _("{path} cannot be read").format(path=path) if architecture else _("the architecture is not known")
        yield unknown_fact("cpu.microarchitecture", why, read_from=path, see_yourself=see)
        return
    raw = lines_with(r"^(vendor_id|cpu family|model|flags|Features|CPU implementer|CPU part|cpu|uarch)\s*:", cpuinfo)
    found = microarchitecture(architecture, cpuinfo)
    if found is None:
        why = _("archspec knows no processors of {architecture}").format(architecture=architecture)
        yield unknown_fact("cpu.microarchitecture", why, read_from=path, raw=raw, see_yourself=see)
        return
    level = found.generic
    same = str(level) == found.name
    yield make_fact(
        "cpu.microarchitecture",
        found.name,
        found.name if same else _("{name}, runs {level}").format(name=found.name, level=level),
        read_from=path,
        raw=raw,
        see_yourself=see,
        meaning=_(
            "Named by what the processor can do. A program built with -march=native here needs one that can as much."
        ),
        rests_on=("cpu.architecture",),
    )


PROBES = (Probe(("cpu.microarchitecture",), read_microarchitecture, ("cpu.architecture",)),)
