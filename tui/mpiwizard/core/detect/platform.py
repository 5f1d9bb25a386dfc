"""What the box is, on axes of their own: the layer around us, the kind of virtual machine, the cloud.

An EC2 machine may run Docker, WSL2 is a guest of Hyper-V, and a cloud rents bare metal too: so none of these follows
from another. The person may overrule each of them; whatever needs the fact then follows by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from mpiwizard.core.detect.clouds import CLOUD_INIT, PROVIDER_NAMES, find_instance, find_provider
from mpiwizard.core.detect.facts import Probe, Survey, ask_all, first_line, lines_with, make_fact, unknown_fact
from mpiwizard.core.detect.layer import LAYER_NAMES, find_layer
from mpiwizard.core.detect.marks import DMI, Finding
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.detect.virtualisation import (
    VIRTUALISATION_NAMES,
    find_virtualisation,
    hypervisor_of_lscpu,
    kind_by_word,
)
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.i18n import _

# --- what the person says -----------------------------------------------------------------------------


def axes() -> dict[str, dict[str, str]]:
    """For each axis the values that may be said of it, with their names; none for an axis that takes any text."""
    return {
        "layer": {"none": _("none"), **LAYER_NAMES, "container": _("a container")},
        "virtualisation": {
            "none": _("none, this is the hardware itself"),
            **VIRTUALISATION_NAMES,
            "other": _("yes, of a kind not known here"),
        },
        "provider": {"none": _("none that is known here"), **PROVIDER_NAMES},
        "instance": {},
    }


def check_assumption(axis: str, value: str) -> None:
    """Raise WizardError (USAGE), with what is possible, for what cannot be said of a platform."""
    names = axes()
    if axis not in names:
        message = _("Nothing is known of {axis}; what can be said of a platform is: {axes}.")
        raise WizardError(message.format(axis=axis, axes=", ".join(names)), ExitCode.USAGE)
    if names[axis] and value not in names[axis]:
        message = _("{value} is no {axis} that is known here; it can be: {values}.")
        values = ", ".join(names[axis])
        raise WizardError(message.format(value=value or "''", axis=axis, values=values), ExitCode.USAGE)
    if not value.strip() or not value.isprintable():
        message = _("The {axis} is a name such as c6i.large; give one.")
        raise WizardError(message.format(axis=axis), ExitCode.USAGE)


def _said(survey: Survey, axis: str) -> str:
    """What the person says of an axis, empty for nothing. Raises WizardError for what cannot be said."""
    value = dict(survey.wishes.assume).get(axis, "")
    if value:
        check_assumption(axis, value)
    return value


def _as_said(survey: Survey, axis: str, make: Callable[[Finding], Fact], finding: Finding) -> Fact:
    """The fact that `make` makes of what was found, or of what the person says, with the other as a contradiction."""
    found, value = make(finding), _said(survey, axis)
    if not value:
        return found
    said = make(Finding(value))
    differs = () if found.value in (None, said.value) else (_("Found here: {text}.").format(text=found.text),)
    return replace(
        said,
        text=_("{name}, as you said").format(name=said.text),
        state="info",
        read_from=_("you"),
        raw=f"{axis}={said.value}",
        contradictions=differs + found.contradictions,
    )


# --- container or WSL ---------------------------------------------------------------------------------


def read_layer(survey: Survey) -> Iterator[Fact]:
    yield _as_said(survey, "layer", _layer_fact, find_layer(survey.host))


def _layer_fact(finding: Finding) -> Fact:
    layer = finding.value
    see = "systemd-detect-virt --container; uname -r"
    if layer is None:
        why = _("there is no /proc here")
        return unknown_fact("platform.layer", why, read_from=finding.read_from, see_yourself=see)
    meaning = {
        "none": _("Nothing stands between mpiwizard and this system."),
        "wsl1": _("WSL1 translates system calls and has no Linux kernel of its own; use WSL2 for MPI."),
        "wsl2": _("A light virtual machine: memory and processors are those .wslconfig gives it."),
        "chroot": _("Another root folder, but the kernel, the limits and the network are those of the box around it."),
    }.get(layer, _("Limits of the container count here, not those of the box around it."))
    if layer == "none" and any("/.dockerenv" in doubt for doubt in finding.contradictions):
        meaning = _("A marker file of Docker is left from the image this system was made from; it runs by itself.")
    return make_fact(
        "platform.layer",
        layer,
        _named(axes()["layer"][layer], finding.note),
        "attention" if layer == "wsl1" else "info",
        read_from=finding.read_from,
        raw=finding.raw,
        see_yourself=see,
        meaning=meaning,
        action=_("Run wsl --set-version with this distribution's name and 2, in Windows.") if layer == "wsl1" else "",
        contradictions=finding.contradictions,
        claims=(1, 2, 4) if layer.startswith("wsl") else (),
    )


def _named(name: str, note: str) -> str:
    return _("{name} ({note})").format(name=name, note=note) if note else name


# --- virtual machine ----------------------------------------------------------------------------------


def read_virtualisation(survey: Survey) -> Iterator[Fact]:
    yield _as_said(survey, "virtualisation", _virtualisation_fact, find_virtualisation(survey.host))


def _virtualisation_fact(finding: Finding) -> Fact:
    kind = finding.value
    see = "systemd-detect-virt --vm; lscpu | grep -i hypervisor"
    if kind is None:
        why = _("this processor does not say, and no other sign was found")
        return unknown_fact("platform.virtualisation", why, read_from=finding.read_from, see_yourself=see)
    return make_fact(
        "platform.virtualisation",
        kind,
        _named(axes()["virtualisation"][kind], finding.note),
        read_from=finding.read_from,
        raw=finding.raw,
        see_yourself=see,
        meaning=_("Measured times can waver with the load of the host.") if kind != "none" else "",
        contradictions=finding.contradictions,
        claims=(4, 5, 6),
    )


# --- cloud --------------------------------------------------------------------------------------------


def read_provider(survey: Survey) -> Iterator[Fact]:
    fact = _as_said(survey, "provider", _provider_fact, _find_provider(survey))
    yield fact
    if _said(survey, "provider") != "none":
        yield from _read_instance(survey, fact.value or "none")


def _find_provider(survey: Survey) -> Finding:
    finding = find_provider(survey.host)
    layer, kind = survey.found.value("platform.layer"), survey.found.value("platform.virtualisation")
    # A WSL or a box that is no virtual machine and shows no mark is in no cloud we know.
    if finding.value is None and (layer in ("wsl1", "wsl2") or kind == "none"):
        return replace(finding, value="none", read_from="/proc/cpuinfo")
    if finding.value == "azure" and kind == "none":
        doubt = _("The chassis is Azure's, but no hypervisor shows, and Azure rents virtual machines.")
        return replace(finding, contradictions=(*finding.contradictions, doubt))
    return finding


def _provider_fact(finding: Finding) -> Fact:
    provider = finding.value
    see = f"head {DMI}/{{sys_vendor,product_name,chassis_asset_tag}}"
    if provider is None:
        why = _("this kernel shows nothing of the firmware")
        return unknown_fact("platform.provider", why, read_from=DMI, see_yourself=see)
    cloud = provider != "none"
    return make_fact(
        "platform.provider",
        provider,
        axes()["provider"][provider],
        read_from=finding.read_from,
        raw=finding.raw,
        see_yourself=see,
        meaning=_("The cloud decides which fabric there can be, and who ships a ready MPI for it.") if cloud else "",
        contradictions=finding.contradictions,
        claims=(4, 5) if cloud else (),
    )


def _read_instance(survey: Survey, provider: str) -> Iterator[Fact]:
    """The type of a rented machine; nothing where none is rented and the person speaks of none."""
    if provider != "none" or _said(survey, "instance"):
        yield _as_said(survey, "instance", _instance_fact, find_instance(survey.host, provider))


def _instance_fact(finding: Finding) -> Fact:
    place, key = finding.read_from, finding.raw.partition(":")[0].strip('"').replace("_", ".")
    see = f"grep -E '{key or 'type'}' {place}" if place == CLOUD_INIT else f"cat {place or f'{DMI}/product_name'}"
    if finding.value is None:
        why = _("nothing on this box tells it")
        return unknown_fact("platform.instance", why, read_from=place, see_yourself=see)
    text = finding.value
    return make_fact("platform.instance", text, text, read_from=place, raw=finding.raw, see_yourself=see)


# --- what other tools say -----------------------------------------------------------------------------


def read_opinion(survey: Survey) -> Iterator[Fact]:
    """The words of systemd-detect-virt and lscpu beside ours; nothing where neither is there."""
    commands = (("systemd-detect-virt", "--container"), ("systemd-detect-virt", "--vm"), ("lscpu",))
    answers = ask_all(survey.host, commands)
    container, machine = (first_line(answer.output) for answer in answers[:2])
    vendor = hypervisor_of_lscpu(answers[2].output)
    words = {"container": container, "vm": machine, "lscpu": vendor}
    if not any(words.values()):
        return
    texts = [("systemd-detect-virt", ", ".join(filter(None, (container, machine)))), ("lscpu", vendor)]
    yield make_fact(
        "platform.opinion",
        words,
        "; ".join(f"{tool}: {word}" for tool, word in texts if word),
        read_from="; ".join(" ".join(command) for command in commands),
        raw="\n".join(filter(None, (container, machine, lines_with("^Hypervisor vendor:", answers[2].output)))),
        see_yourself="systemd-detect-virt --container; systemd-detect-virt --vm; lscpu | grep -i hypervisor",
        contradictions=tuple(_disagreements(survey, container, machine, vendor)),
    )


def _disagreements(survey: Survey, container: str, machine: str, vendor: str) -> Iterator[str]:
    layer, kind = survey.found.value("platform.layer"), survey.found.value("platform.virtualisation")
    if container not in ("", "none") and layer == "none":
        message = _("systemd-detect-virt says {word}, but no sign of a container holds.")
        yield message.format(word=container)
    if layer == "wsl1" or kind is None:  # what the tools see there is the Windows below
        return
    upon_kvm = {"kvm", "qemu", "firecracker"}  # tools name them differently, from version to version
    for tool, word in (("systemd-detect-virt", machine), ("lscpu", vendor)):
        theirs = kind_by_word(word)
        if theirs and theirs != kind and not {theirs, kind} <= upon_kvm:
            message = _("{tool} says {word}, but the signs here say: {kind}.")
            yield message.format(tool=tool, word=word, kind=survey.found.fact("platform.virtualisation").text)


PROBES = (
    Probe(("platform.layer",), read_layer),
    Probe(("platform.virtualisation",), read_virtualisation),
    Probe(("platform.provider", "platform.instance"), read_provider, ("platform.layer", "platform.virtualisation")),
    Probe(("platform.opinion",), read_opinion, ("platform.layer", "platform.virtualisation")),
)
