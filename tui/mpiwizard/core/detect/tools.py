"""Programs a build needs, with one exact command that installs all that are missing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from mpiwizard.core.detect.facts import Probe, Survey, ask, first_line, make_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _


class Tool(Struct, frozen=True):
    """A program of a build: the names it may have, in configure's order, and the variable that overrules them."""

    id: str
    names: tuple[str, ...]
    variable: str = ""
    needed: bool = False


TOOLS = (
    Tool("tool.cc", ("gcc", "cc", "clang"), "CC", needed=True),
    Tool("tool.cxx", ("g++", "c++", "clang++"), "CXX"),
    Tool("tool.fortran", ("gfortran", "flang", "flang-new"), "FC"),
    Tool("tool.make", ("make",), needed=True),
    Tool("tool.perl", ("perl",), needed=True),
    Tool("tool.bash", ("bash",), needed=True),
)
PACKAGES = {  # family -> what provides a tool, where its name is not the usual one
    "": {"tool.cc": "gcc", "headers": "libc6-dev", "tool.make": "make", "tool.perl": "perl", "tool.bash": "bash"},
    "apk": {"tool.cc": "gcc musl-dev", "headers": "musl-dev"},
    "dnf": {"headers": "glibc-devel"},
    "zypper": {"headers": "glibc-devel"},
    "pacman": {"headers": "glibc"},
}
INSTALL = {  # family -> the programs that install, the first one that is there is taken
    "apt": (("apt-get", "install"),),
    "dnf": (("dnf", "install"), ("yum", "install"), ("microdnf", "install")),
    "zypper": (("zypper", "install"),),
    "apk": (("apk", "add"),),
    "pacman": (("pacman", "-S", "--needed"),),
}
HEADER_TEST = "#include <stdio.h>\nint main(void) { return 0; }\n"


def install_command(host: Host, family: str, missing: Iterable[str], root: bool) -> str:
    """What a person types to get all that is missing; empty for a distribution of an unknown family."""
    if family not in INSTALL:
        return ""
    names = {**PACKAGES[""], **PACKAGES.get(family, {})}
    packages = list(dict.fromkeys(word for tool in missing for word in names[tool].split()))
    programs = [words for words in INSTALL[family] if host.which(words[0])] or [INSTALL[family][0]]
    command = shlex.join([*programs[0], *packages])
    if family == "apt" and not any(
        name.endswith(("_Packages", "_Packages.lz4")) for name in host.list("/var/lib/apt/lists")
    ):
        command = f"apt-get update && {command}"
    if root:
        return command
    if host.which("sudo"):
        return " && ".join(f"sudo {part}" for part in command.split(" && "))
    return f"su -c {shlex.quote(command)}"


def find_tool(host: Host, tool: Tool) -> tuple[list[str], str | None]:
    """The command of a tool, from its variable or its usual names, and its path; None when it is not here."""
    given = named_command(host, tool)
    if given:
        program = given[0]
        if "/" in program:
            return given, program if host.exists(program) else None
        return given, host.which(program)
    for name in tool.names:
        if path := host.which(name):
            return [name], path
    return [tool.names[0]], None


def named_command(host: Host, tool: Tool) -> list[str]:
    """The words of the variable that overrules a tool's usual names; empty when it is not set."""
    text = host.environment.get(tool.variable, "") if tool.variable else ""
    try:
        return shlex.split(text)
    except ValueError:  # a quotation that never ends: configure would look for this very name
        return [text]


def parse_version(text: str) -> str:
    """The version in the first line a tool prints, such as 12.2.0; empty when it tells none."""
    line = first_line(text)
    for part in (re.sub(r"\([^)]*\)", " ", line), line):  # a packager's own number stands in brackets
        if found := re.search(r"(?<![\w.])v?(\d+\.\d+[\w.+-]*)", part):
            return found[1]
    return ""


def has_headers(host: Host, command: list[str]) -> bool:
    """Whether the C library's headers are there; a compiler alone can build nothing."""
    result = ask(host, *command, "-x", "c", "-fsyntax-only", "-", given=HEADER_TEST)
    return result.succeeded or "stdio.h" not in result.errors


def read_tools(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    family = survey.found.value("platform.distribution", {}).get("family", "")
    found = {tool.id: find_tool(host, tool) for tool in TOOLS}
    missing = [tool.id for tool in TOOLS if tool.needed and found[tool.id][1] is None and not named_command(host, tool)]
    compiler, path = found["tool.cc"]
    incomplete = path is not None and not has_headers(host, compiler)
    if incomplete:
        missing.insert(0, "headers")
    command = install_command(host, family, missing, survey.root) if missing else ""
    for tool in TOOLS:
        words, path = found[tool.id]
        if path is None:
            yield _missing_fact(host, tool, words, command)
        else:
            fact = _tool_fact(host, tool, words, path)
            yield _without_headers(fact, command) if incomplete and tool.id == "tool.cc" else fact


def _tool_fact(host: Host, tool: Tool, words: list[str], path: str) -> Fact:
    version = parse_version(ask(host, *words, "--version").output)
    line = shlex.join(words)
    value = {"path": path, "version": version}
    if len(words) > 1:
        value["command"] = line
    named = bool(named_command(host, tool))
    return make_fact(
        tool.id,
        value,
        f"{line} {version}".strip(),
        "ok",
        read_from=f"${tool.variable}" if named else path,
        see_yourself=f"{line} --version",
        meaning=_("Named by ${variable}; configure takes it too.").format(variable=tool.variable) if named else "",
    )


def _without_headers(fact: Fact, command: str) -> Fact:
    return replace(
        fact,
        text=_("{text}, without the C library's headers").format(text=fact.text),
        state="problem",
        meaning=_("The compiler finds no stdio.h, so it can build nothing."),
        action=command or _("Install the C library's headers with your distribution's package manager."),
    )


def _missing_fact(host: Host, tool: Tool, words: list[str], command: str) -> Fact:
    see = f"command -v {shlex.quote(words[0])}"
    named = bool(named_command(host, tool))
    if tool.needed or named:
        problem = tool.id != "tool.bash"
        meaning = _("A build needs it.") if problem else _("Open MPI's configure goes wrong with some other shells.")
        action = command or _("Install {name} with your distribution's package manager.").format(name=words[0])
        if named:
            meaning = _("${variable} names {program}, and configure would stop there.").format(
                variable=tool.variable, program=words[0]
            )
            action = _("Correct it, or forget it: unset {variable}").format(variable=tool.variable)
        text = _("{name} is not here").format(name=words[0])
        state = "problem" if problem else "attention"
        return make_fact(
            tool.id, None, text, state, read_from="$PATH", see_yourself=see, meaning=meaning, action=action
        )
    lost = {
        "tool.cxx": _("The old C++ bindings cannot be built, which nobody misses."),
        "tool.fortran": _("Open MPI is built without its Fortran part."),
    }[tool.id]
    return make_fact(tool.id, None, _("none"), read_from="$PATH", see_yourself=see, meaning=lost)


PROBES = (Probe(tuple(tool.id for tool in TOOLS), read_tools, ("platform.distribution",)),)
