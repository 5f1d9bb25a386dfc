"""Libraries Open MPI needs and brings with it: whether their development files are on the box as well."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from msgspec import Struct

from mpiwizard.core.detect.facts import Probe, Survey, lines_with, make_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

_TRIPLET = re.compile(r"[\w.]+-linux-\w+")  # Debian's folder of an architecture, such as x86_64-linux-gnu


class Library(Struct, frozen=True):
    """A library: the header that shows that it is here, and the header whose macros tell the version.

    `macros` finds the version in one group, or its numbers in several. HWLOC_API_VERSION is of no use:
    it stays behind the release, 2.8 in hwloc 2.9.0.
    """

    id: str
    header: str
    version_header: str
    macros: str
    package: str  # the name of its .pc file

    @property
    def name(self) -> str:
        return self.id.partition(".")[2]


LIBRARIES = (
    Library("tool.hwloc", "hwloc.h", "hwloc/autogen/config.h", r'#\s*define HWLOC_VERSION "([^"]+)"', "hwloc"),
    Library(
        "tool.libevent",
        "event2/event.h",
        "event2/event-config.h",
        r'#\s*define _?EVENT_+VERSION "([^"]+)"',
        "libevent",
    ),
    Library(
        "tool.pmix",
        "pmix.h",
        "pmix_version.h",
        r"#\s*define PMIX_VERSION_MAJOR\s+(\d+).*?#\s*define PMIX_VERSION_MINOR\s+(\d+)"
        r".*?#\s*define PMIX_VERSION_RELEASE\s+(\d+)",
        "pmix",
    ),
)


class Found(Struct, frozen=True):
    """Development files in a prefix, and where the version was read."""

    prefix: str
    version: str
    path: str
    raw: str


def parse_pc(text: str) -> dict[str, str]:
    """Variables and fields of a pkg-config file by name, with ${} filled in as far as it is known."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        if found := re.match(r"\s*([\w.]+)\s*[=:]\s*(.*)", line[:4096].partition("#")[0]):
            values[found[1]] = re.sub(
                r"\$\{([\w.]+)\}", lambda name: values.get(name[1], name[0])[:4096], found[2].strip()
            )[:4096]
    return values


def parse_macros(library: Library, text: str) -> str:
    """The version a header's macros tell, such as 2.9.0; empty when they tell none."""
    found = re.search(library.macros, text, re.DOTALL)
    return ".".join(found.groups()) if found else ""


def prefixes(survey: Survey) -> list[str]:
    """Where a compiler and pkg-config look, and the active conda environment."""
    conda = survey.host.environment.get("CONDA_PREFIX", "")
    return ["/usr/local", "/usr", *([conda.rstrip("/")] if conda.startswith("/") else [])]


def find_library(host: Host, library: Library, prefix: str) -> Found | None:
    """The library's development files below a prefix; None when its header is not there."""
    triplets = [name for name in host.list(f"{prefix}/lib") if _TRIPLET.fullmatch(name)]
    folders = [f"{prefix}/include", *(f"{prefix}/include/{triplet}" for triplet in triplets)]
    libraries = [f"{prefix}/lib64", f"{prefix}/lib", *(f"{prefix}/lib/{triplet}" for triplet in triplets)]
    packages = {f"{folder}/pkgconfig/{library.package}.pc" for folder in (*libraries, f"{prefix}/share")}
    path, package = next(((path, text) for path in sorted(packages) if (text := host.read(path))), ("", ""))
    values = parse_pc(package)
    if values.get("includedir", "").startswith("/"):  # Debian hides PMIx in a folder of its own
        folders.append(values["includedir"])
    if not any(host.exists(f"{folder}/{library.header}") for folder in folders):
        return None
    for folder in folders:
        text = host.read(f"{folder}/{library.version_header}") or ""
        if version := parse_macros(library, text):
            raw = lines_with(r"define \w+VERSION\w* ", text)
            return Found(values.get("prefix", prefix), version, f"{folder}/{library.version_header}", raw)
    header = next(f"{folder}/{library.header}" for folder in folders if host.exists(f"{folder}/{library.header}"))
    version = values.get("Version", "")
    return Found(values.get("prefix", prefix), version, path if version else header, lines_with("^Version", package))


def read_library(library: Library, survey: Survey) -> Iterator[Fact]:
    found = next((one for prefix in prefixes(survey) if (one := find_library(survey.host, library, prefix))), None)
    see = f"pkg-config --modversion {library.package}; ls /usr/include/{library.header}"
    if found is None:
        meaning = _("Not needed: Open MPI brings its own, and mpiwizard builds that one.")
        yield make_fact(library.id, None, _("none"), read_from="/usr/include", see_yourself=see, meaning=meaning)
        return
    yield make_fact(
        library.id,
        {"prefix": found.prefix, "version": found.version},
        _("{version} in {prefix}").format(version=found.version or "?", prefix=found.prefix),
        read_from=found.path,
        raw=found.raw or found.path,
        see_yourself=see,
        meaning=_trouble(library.name, found.version),
        action=_("mpiwizard builds the one that comes with Open MPI: {option}").format(
            option=f"--with-{library.name}=internal"
        ),
    )


def _trouble(name: str, version: str) -> str:
    """What a build that takes the box's own library would meet.

    The first was seen with 5.0.7 and Debian 12's 4.2.2; the second is in the documentation of 5.0.8,
    "Required support libraries".
    """
    numbers = [int(number) for number in re.findall(r"[0-9]{1,9}", version)[:3]]
    if name == "pmix" and [4, 0, 0] <= numbers < [4, 2, 4]:
        return _("Too old for the launcher of Open MPI 5.0: without an option configure takes it, and stops.")
    if name == "hwloc" and numbers >= [3]:
        return _("Open MPI 5.0 does not support hwloc 3: without an option configure finds it, and stops.")
    return _("Without an option configure of Open MPI 5.0 would take it.")


PROBES = tuple(Probe((library.id,), partial(read_library, library)) for library in LIBRARIES)
