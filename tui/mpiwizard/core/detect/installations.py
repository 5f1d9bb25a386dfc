"""MPI installations that are already on the box, and what they were built with."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from mpiwizard.core.detect.facts import Probe, Survey, at_once, first_line, lines_with, make_fact, unknown_fact
from mpiwizard.core.detect.launchers import find_cray, find_launchers
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host, Result
from mpiwizard.core.i18n import _
from mpiwizard.core.installation import cleared_environment

MOST = 12  # installations that are asked; a cluster can have hundreds below /opt
FRAMEWORKS = ("btl", "pml", "mtl", "smsc")  # parts of Open MPI that carry messages
_COMPONENT = re.compile(r'^mca:(\w+):([\w-]+):version:"component:', re.MULTILINE)
_MECHANISM = re.compile(
    r"^mca:btl:vader:param:btl_vader_single_copy_mechanism:enumerator:value:\d+:(\w+)", re.MULTILINE
)


def classify_launcher(output: str) -> tuple[str, str] | None:
    """Kind and release by what `mpirun --version` prints; None when it printed nothing."""
    if not output.strip():
        return None
    patterns = {
        "Open MPI": r"\((?:Open MPI|OpenRTE)\)\s+v?(\S+)",
        "Intel MPI": r"Intel\(R\) MPI Library.*?Version\s+(\S+)",
        "MPICH": r"HYDRA build details:\s+Version:\s+(\S+)",
    }
    for kind, pattern in patterns.items():
        if found := re.search(pattern, output, re.DOTALL):
            return kind, found[1]
    return "other", ""


def _ask(host: Host, prefix: str, *argv: str) -> Result:
    """Ask a program of an installation: without its own libraries first, it could answer for another one."""
    environment = {**cleared_environment(host, prefix), "LC_ALL": "C"}
    return host.run(argv, timeout=1.8, environment=environment)


def read_installations(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    launchers = find_launchers(survey)
    asked = [(posixpath.dirname(posixpath.dirname(launcher)), launcher) for launcher in launchers[:MOST]]
    results = at_once([partial(_ask, host, prefix, launcher, "--version") for prefix, launcher in asked])
    installations, raw = [], []
    for (prefix, launcher), result in zip(asked, results, strict=True):
        kind, release = classify_launcher(result.output) or ("other", "")
        if kind == "MPICH" and host.exists(f"{prefix}/bin/mpiname"):  # a tool that only MVAPICH has
            kind, release = "MVAPICH", ""  # MVAPICH is a MPICH, and so says the release of that
        installations.append({"prefix": prefix, "kind": kind, "release": release})
        raw.append(f"{launcher}: {_telling_line(result)}")
    for prefix, release in find_cray(host)[:MOST]:
        installations.append({"prefix": prefix, "kind": "Cray MPICH", "release": release})
        raw.append(f"{prefix}/include/mpi.h")
    first = host.which("mpirun")
    meaning = ""
    if first:
        meaning = _("The one on PATH is {path}. Programs must be started by the MPI they were compiled with.").format(
            path=first
        )
    yield make_fact(
        "mpi.installations",
        installations,
        _shown(installations, len(launchers) - len(asked)),
        read_from=_("PATH, modules, conda, Python, usual places and the prefixes of earlier runs"),
        raw="\n".join(raw),
        see_yourself="type -a mpirun; mpirun --version; ls -d /opt/*mpi* /usr/lib*/*mpi*",
        meaning=meaning,
        claims=(7, 8, 41, 52),
    )


def _shown(installations: list[dict[str, str]], unasked: int) -> str:
    shown = [_("{kind} {release} in {prefix}").format(**one).replace("  ", " ") for one in installations[:3]]
    more = len(installations) - len(shown) + unasked
    return (", ".join(shown) + (" " + _("and {count} more").format(count=more) if more else "")) or _("none")


def _telling_line(result: Result) -> str:
    """The line that tells kind and release; the first one when none does."""
    if result.timed_out:
        return _("no answer in time")
    lines = lines_with(r"\(Open MPI\)|\(OpenRTE\)|Intel\(R\) MPI|Version:|HYDRA", result.output)
    return " ".join(lines.split("\n")[:2]) or first_line(result.output) or first_line(result.errors)


# --- what Open MPI was built with ---------------------------------------------------------------------


def parse_components(text: str) -> dict[str, list[str]]:
    """The components in each framework that carries messages, as `ompi_info --parsable` names them."""
    found: dict[str, list[str]] = {}
    for framework, name in _COMPONENT.findall(text):
        if framework in FRAMEWORKS:
            found.setdefault(framework, []).append(name)
    return {framework: sorted(set(found[framework])) for framework in FRAMEWORKS if framework in found}


def parse_mechanisms(text: str) -> list[str]:
    """How 4.x can copy between processes, as `ompi_info --param btl vader` lists it; 5.x has components for it."""
    return sorted(set(_MECHANISM.findall(text)) - {"none"})


def parse_configured(text: str) -> str:
    """The arguments of configure; empty when ompi_info does not tell them."""
    found = re.search(r"^config:cli:[ \t]*(\S.*)", text, re.MULTILINE)
    return found[1].strip() if found else ""


def read_components(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    installations = [one for one in survey.found.value("mpi.installations", []) if one["kind"] == "Open MPI"]
    see = "ompi_info --parsable | grep -E '^mca:(btl|pml|mtl|smsc):.*component|^config:cli'"
    if not installations:
        yield make_fact("mpi.components", [], _("no Open MPI here"), see_yourself=see)
        return
    asked = [one for one in installations if host.exists(f"{one['prefix']}/bin/ompi_info")]
    questions = [_questions(host, one) for one in asked]
    answers = iter(at_once([question for pair in questions for question in pair]))
    known, raw = [], []
    for one, pair in zip(asked, questions, strict=True):
        results = [next(answers) for _question in pair]
        if components := parse_components(results[0].output):
            mechanisms = components.get("smsc", []) or parse_mechanisms(results[-1].output)
            known.append(
                {
                    "prefix": one["prefix"],
                    "components": {**components, "single_copy": mechanisms},
                    "configured": parse_configured(results[0].output),
                }
            )
            raw.append(_component_lines(results))
    if not known:
        names = ", ".join(f"{one['prefix']}/bin/ompi_info" for one in installations[:2])
        yield unknown_fact("mpi.components", _("no answer from {names}").format(names=names), see_yourself=see)
        return
    releases = {one["prefix"]: one["release"] for one in installations}
    yield make_fact(
        "mpi.components",
        known,
        "; ".join(f"{releases[one['prefix']]}: {transports(one['components'])}" for one in known[:3]),
        read_from=f"{known[0]['prefix']}/bin/ompi_info --parsable",
        raw="\n".join(raw),
        see_yourself=see,
        meaning=_without_tcp(known),
    )


def _questions(host: Host, installation: dict[str, str]) -> list[partial[Result]]:
    """What ompi_info of an installation is asked: 4.x tells its ways of single copy only when asked for them."""
    program = f"{installation['prefix']}/bin/ompi_info"
    question = partial(_ask, host, installation["prefix"], program, "--parsable")
    if not re.match(r"[1-4]\.", installation["release"]):
        return [question]
    return [question, partial(question, "--level", "9", "--param", "btl", "vader")]


def _component_lines(results: list[Result]) -> str:
    components = lines_with(r'^mca:(btl|pml|mtl|smsc):[\w-]+:version:"component', results[0].output)
    mechanisms = [lines_with(_MECHANISM.pattern, result.output) for result in results[1:]]
    return "\n".join([components, *mechanisms, lines_with("^config:cli", results[0].output)])


def transports(components: dict[str, Any]) -> str:
    """What an Open MPI can send its messages through, in words."""
    byte_layers, layers = components.get("btl", []), components.get("pml", [])
    copies = ", ".join(components.get("single_copy", []))
    shown = []
    if "vader" in byte_layers or "sm" in byte_layers:
        shown.append(_("shared memory ({copies})").format(copies=copies) if copies else _("shared memory"))
    if "tcp" in byte_layers:
        shown.append("TCP")
    if "ucx" in layers:
        shown.append("UCX")
    if "ofi" in components.get("mtl", []):
        shown.append("OFI")
    return ", ".join(shown) or _("nothing known")


def _without_tcp(known: list[dict[str, Any]]) -> str:
    prefixes = [one["prefix"] for one in known if "tcp" not in one["components"].get("btl", [])]
    if not prefixes:
        return ""
    return _("The one in {prefixes} has no TCP: without a fast fabric its ranks stay on one host.").format(
        prefixes=", ".join(prefixes)
    )


PROBES = (
    Probe(("mpi.installations",), read_installations, ("mpi.modules",)),
    Probe(("mpi.components",), read_components, ("mpi.installations",)),
)
