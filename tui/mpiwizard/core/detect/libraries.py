"""libfabric and UCX: what Open MPI can be built with, and what is here to run."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator

from msgspec import Struct

from mpiwizard.core.detect.facts import Probe, Survey, ask, ask_all, first_line, lines_with, make_fact, unknown_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.detect.patterns import expand
from mpiwizard.core.host import Host, Result
from mpiwizard.core.i18n import _


class Library(Struct, frozen=True):
    """One of the two, and where the vendors put it; a star stands for any name, the newest first."""

    header: str  # below include/: without it configure stops
    package: str  # for pkg-config
    places: tuple[str, ...]
    variables: tuple[str, ...]  # set by a vendor's module to the prefix
    versions: tuple[str, ...]  # names in headers that make up the version


LIBFABRIC = Library(
    "rdma/fabric.h",
    "libfabric",
    ("/opt/amazon/efa", "/opt/cray/libfabric/*", "/usr/local", "/usr"),
    (),
    ("FI_MAJOR_VERSION", "FI_MINOR_VERSION", "FI_REVISION_VERSION"),
)
UCX = Library(
    "ucp/api/ucp.h",
    "ucx",
    (
        "/opt/hpcx*/ucx",
        "/opt/mellanox/hpcx*/ucx",
        "/opt/nvidia/hpc_sdk/*/*/comm_libs/hpcx/*/ucx",
        "/opt/nvidia/hpc_sdk/*/*/comm_libs/*/hpcx/*/ucx",
        "/usr/local",
        "/usr",
    ),
    ("HPCX_UCX_DIR",),
    (),
)
_RUNTIME = {"libfabric": "libfabric.so.1", "ucx": "libucp.so.0"}


def prefixes(host: Host, library: Library) -> list[str]:
    """Where the library may be: what the environment names, then the vendors' places, then the system's."""
    named = [host.environment.get(variable, "") for variable in library.variables]
    found = [prefix.rstrip("/") for prefix in named if prefix.startswith("/")]
    places = (folder for place in library.places for folder in expand(host, place, _newest_first))
    return list(dict.fromkeys((*found, *places)))


def _newest_first(names: Iterable[str]) -> list[str]:
    return sorted(names, key=_numbers, reverse=True)


def _numbers(name: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"[0-9]{1,9}", name)]


def library_folders(host: Host, prefix: str) -> list[str]:
    """The folders below a prefix where libraries lie, those of Debian among them."""
    triplets = [name for name in host.list(f"{prefix}/lib") if name.endswith("-linux-gnu")]
    return [f"{prefix}/lib64", f"{prefix}/lib", *(f"{prefix}/lib/{name}" for name in triplets)]


def version_of(host: Host, library: Library, prefix: str) -> tuple[str, str]:
    """The version below a prefix, and the text it was read from: of the file for pkg-config, else of the header."""
    for folder in library_folders(host, prefix):
        text = host.read(f"{folder}/pkgconfig/{library.package}.pc") or ""
        found = re.search(r"^Version:\s*(\S+)", text, re.MULTILINE)
        if found:
            return found[1], lines_with(r"^(Name|Version):", text)
    text = host.read(f"{prefix}/include/{library.header}") or ""
    numbers = [re.search(rf"^#define\s+{name}\s+(\d+)", text, re.MULTILINE) for name in library.versions]
    version = ".".join(number[1] for number in numbers if number)
    return version, lines_with(rf"^#define\s+({'|'.join(library.versions)})\s", text) if version else ""


def read_builds(survey: Survey) -> Iterator[Fact]:
    """Prefixes for --with-ofi and --with-ucx: a wrong one stops configure, so the header must be there."""
    host = survey.host
    for fact_id, library, claims in (("network.libfabric", LIBFABRIC, (21, 26)), ("network.ucx", UCX, (24,))):
        places = prefixes(host, library)
        prefix = next((place for place in places if host.exists(f"{place}/include/{library.header}")), None)
        version, raw = version_of(host, library, prefix) if prefix else ("", "")
        header = f"{prefix or '/usr'}/include/{library.header}"
        yield make_fact(
            fact_id,
            prefix,
            " ".join(filter(None, (prefix, version))) or _("none"),
            read_from=header if prefix else ", ".join(f"{place}/include/{library.header}" for place in places),
            raw=raw or (header if prefix else ""),
            see_yourself=f"ls {shlex.quote(header)}",
            meaning=_build_meaning(library, prefix, version),
            claims=claims,
        )


def _build_meaning(library: Library, prefix: str | None, version: str) -> str:
    if prefix is None:
        return _("Only a fast fabric needs it.")
    if library is LIBFABRIC and version.startswith("2."):
        return _("Open MPI builds with libfabric 2 from 4.1.7 and 5.0.6 on.")
    return _("Its header is there, without which configure stops.")


def find_program(host: Host, library: Library, name: str) -> str | None:
    """A program of the library: in a vendor's place, else on PATH."""
    own = [f"{place}/bin/{name}" for place in prefixes(host, library) if place.startswith("/opt/")]
    return next((path for path in own if host.exists(path)), None) or host.which(name)


def find_runtime(host: Host, library: Library) -> str | None:
    """The library itself, where no program of its own can be asked."""
    name = _RUNTIME[library.package]
    places = [folder for prefix in prefixes(host, library) for folder in library_folders(host, prefix)]
    return next((f"{folder}/{name}" for folder in places if host.exists(f"{folder}/{name}")), None)


def parse_fi_version(text: str) -> str:
    """The library's version in `fi_info --version`; empty when it is not told."""
    found = re.search(r"^libfabric:\s*(\S+)", text, re.MULTILINE)
    return found[1] if found else ""


def parse_providers(text: str) -> list[str]:
    """The providers in `fi_info -l`, without those that only watch others."""
    names = re.findall(r"^([a-z][\w;-]*):\s*$", text, re.MULTILINE)
    return [name for name in dict.fromkeys(names) if not name.startswith("ofi_hook")]


def read_providers(survey: Survey) -> Iterator[Fact]:
    """libfabric as a program would load it. `fi_info -l` lists what is built in; it sends nothing."""
    host = survey.host
    program = find_program(host, LIBFABRIC, "fi_info")
    if program is None:
        yield _without_program(host, "network.providers", LIBFABRIC, "fi_info", "providers", (21, 26))
        return
    about, listed = ask_all(host, [(program, "--version"), (program, "-l")])
    version, providers = parse_fi_version(about.output), parse_providers(listed.output)
    see = f"{shlex.quote(program)} --version; {shlex.quote(program)} -l"
    if not version and not providers:
        yield unknown_fact("network.providers", _silent("fi_info", about), read_from=program, see_yourself=see)
        return
    has_efa = any(device.endswith(": EFA") for device in survey.found.value("network.fabric", []))
    missing = has_efa and bool(providers) and "efa" not in providers
    yield make_fact(
        "network.providers",
        {"path": program, "version": version or None, "providers": providers},
        f"{version or program}: {', '.join(providers) or _silent('fi_info -l', listed)}",
        "attention" if missing else "info",
        read_from=f"{program} --version, {program} -l",
        raw=f"{about.output}\n{lines_with(':$', listed.output)}",
        see_yourself=see,
        meaning=_("This libfabric cannot use the EFA devices: ranks on several boxes would talk over TCP.")
        if missing
        else _("Open MPI uses these when it was built with --with-ofi; on one box it does not need them."),
        action=_("Put the libfabric of the EFA installer first: PATH=/opt/amazon/efa/bin:$PATH") if missing else "",
        claims=(21, 26),
    )


def _silent(program: str, result: Result) -> str:
    """Why a program told nothing."""
    if result.timed_out:
        return _("{program} did not end").format(program=program)
    reason = first_line(result.errors) or _("it printed nothing we know")
    return _("{program} gave no answer ({reason})").format(program=program, reason=reason)


def _without_program(
    host: Host, fact_id: str, library: Library, program: str, parts: str, claims: tuple[int, ...]
) -> Fact:
    path = find_runtime(host, library)
    see = f"/sbin/ldconfig -p | grep {_RUNTIME[library.package]}"
    if path is None:
        meaning = _("Only a fast fabric needs it.")
        return make_fact(
            fact_id, None, _("none"), read_from=program, see_yourself=see, meaning=meaning, claims=claims
        )
    return make_fact(
        fact_id,
        {"path": path, "version": None, parts: []},
        _("{path}, version not known").format(path=path),
        read_from=path,
        raw=path,
        see_yourself=see,
        meaning=_("Without {program} here nobody can ask it what it is able to do.").format(program=program),
        claims=claims,
    )


def parse_ucx_version(text: str) -> str:
    """The version in `ucx_info -v`, whose words changed with 1.14; empty when it is not told."""
    found = re.search(r"^# (?:Library version: |Version |UCT version=)([0-9][\w.+-]*)", text, re.MULTILINE)
    return found[1] if found else ""


def find_transports(host: Host, program: str) -> list[str]:
    """The transports that UCX loads from files, such as ib, rdmacm or cuda; tcp and shared memory are built in."""
    prefix = posixpath.dirname(posixpath.dirname(host.resolve(program)))
    names = [name for folder in library_folders(host, prefix) for name in host.list(f"{folder}/ucx")]
    found = (re.fullmatch(r"libuct_(\w+)\.so(\.0)?", name) for name in names)
    return sorted({match[1] for match in found if match})


def read_transports(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    program = find_program(host, UCX, "ucx_info")
    if program is None:
        yield _without_program(host, "network.transports", UCX, "ucx_info", "transports", (24,))
        return
    answer = ask(host, program, "-v")
    version = parse_ucx_version(answer.output)
    see = f"{shlex.quote(program)} -v; {shlex.quote(program)} -d"
    if not version:
        yield unknown_fact("network.transports", _silent("ucx_info", answer), read_from=program, see_yourself=see)
        return
    transports = find_transports(host, program)
    has_infiniband = any(device.endswith(": InfiniBand") for device in survey.found.value("network.fabric", []))
    missing = has_infiniband and bool(transports) and "ib" not in transports
    yield make_fact(
        "network.transports",
        {"path": program, "version": version, "transports": transports},
        f"{version}: {', '.join(transports)}" if transports else version,
        "attention" if missing else "info",
        read_from=f"{program} -v",
        raw=answer.output,
        see_yourself=see,
        meaning=_("This UCX cannot use InfiniBand: the file libuct_ib.so is missing beside its others.")
        if missing
        else _("Open MPI uses it when it was built with --with-ucx; on one box it does not need it."),
        claims=(24,),
    )


PROBES = (
    Probe(("network.libfabric", "network.ucx"), read_builds),
    Probe(("network.providers",), read_providers, ("network.fabric",)),
    Probe(("network.transports",), read_transports, ("network.fabric",)),
)
