"""Programs a build needs or can use, with one exact command that installs all that are missing."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from mpiwizard.core.detect.facts import (
    Probe,
    Survey,
    ask,
    ask_all,
    at_once,
    first_line,
    lines_with,
    make_fact,
    unknown_fact,
)
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host, Result
from mpiwizard.core.i18n import _


class Tool(Struct, frozen=True):
    """A program of a build: the names it may have, best first, and the variable that overrules them.

    `unaided` are the names configure looks for by itself; any other one has to be told to it.
    """

    id: str
    names: tuple[str, ...]
    variable: str = ""
    needed: bool = False
    unaided: tuple[str, ...] = ()


TOOLS = (  # `unaided` is what the configure of 4.1.4 looks for, the shortest lists of all releases
    Tool("tool.cc", ("gcc", "cc", "clang", "icx", "nvc", "armclang"), "CC", needed=True, unaided=("gcc", "cc")),
    Tool("tool.cxx", ("g++", "c++", "clang++", "icpx", "nvc++", "armclang++"), "CXX", unaided=("g++", "c++")),
    Tool(
        "tool.fortran",
        ("gfortran", "flang", "flang-new", "ifx", "ifort", "nvfortran", "armflang"),
        "FC",
        unaided=("gfortran", "ifort"),
    ),
    Tool("tool.make", ("make",), needed=True),
    Tool("tool.perl", ("perl",), needed=True),
    Tool("tool.bash", ("bash",), needed=True),
)
AUTOTOOLS = ("autoconf", "automake", "libtoolize", "m4", "flex")
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


def lacks_headers(trial: Result) -> bool:
    """Whether a compiler that was given HEADER_TEST missed the C library's headers; alone it can build nothing."""
    return not trial.succeeded and "stdio.h" in trial.errors


def _header_trial(host: Host, words: list[str]) -> Result:
    return ask(host, *words, "-x", "c", "-fsyntax-only", "-", given=HEADER_TEST)


def _command_for_all(survey: Survey, without_headers: bool) -> str:
    """The command that installs all that is missing; empty when nothing is, or nobody knows how."""
    host = survey.host
    missing = ["headers"] if without_headers else []
    for tool in TOOLS:
        if tool.needed and find_tool(host, tool)[1] is None and not named_command(host, tool):
            missing.append(tool.id)
    family = survey.found.value("platform.distribution", {}).get("family", "")
    return install_command(host, family, missing, survey.root) if missing else ""


def read_tool(tool: Tool, survey: Survey) -> Iterator[Fact]:
    host = survey.host
    words, path = find_tool(host, tool)
    if path is None:
        yield _missing_fact(survey, tool, words)
        return
    questions = [partial(ask, host, *words, "--version")]
    if tool.id == "tool.cc":
        questions.append(partial(_header_trial, host, words))
    version, *trials = at_once(questions)
    see = f"{shlex.join(words)} --version"
    if version.timed_out:
        yield unknown_fact(tool.id, _("{command} does not end").format(command=see), read_from=path, see_yourself=see)
        return
    fact = _tool_fact(host, tool, words, path, version.output)
    if trials and lacks_headers(trials[0]):
        fact = _without_headers(fact, trials[0], _command_for_all(survey, without_headers=True))
    yield fact


def _tool_fact(host: Host, tool: Tool, words: list[str], path: str, output: str) -> Fact:
    line = shlex.join(words)
    version = parse_version(output)
    value = {"path": path, "version": version}
    if len(words) > 1:
        value["command"] = line
    named = bool(named_command(host, tool))
    unheard = tool.variable and not named and words[0] not in tool.unaided
    meaning = _other_compilers(host, tool, path)
    if named:
        meaning = _("Named by ${variable}; configure takes it too.").format(variable=tool.variable)
    elif unheard:
        meaning = _("configure does not look for a compiler of this name; it has to be told.")
    return make_fact(
        tool.id,
        value,
        f"{line} {version}".strip(),
        "attention" if unheard and tool.needed else "ok",
        read_from=f"${tool.variable}" if named else path,
        raw=first_line(output) or path,
        see_yourself=f"{line} --version",
        meaning=meaning,
        action=f"export {tool.variable}={words[0]}" if unheard else "",
    )


def _other_compilers(host: Host, tool: Tool, path: str) -> str:
    """A word about compilers of other names; two names of one program are one compiler."""
    if not tool.variable:
        return ""
    programs = {host.resolve(path)}
    others = []
    for name in tool.names:
        other = host.which(name)
        if other and host.resolve(other) not in programs:
            programs.add(host.resolve(other))
            others.append(name)
    if not others:
        return ""
    return _("Also here: {names}. {variable} chooses another one.").format(
        names=", ".join(others), variable=tool.variable
    )


def _without_headers(fact: Fact, trial: Result, command: str) -> Fact:
    return replace(
        fact,
        text=_("{text}, without the C library's headers").format(text=fact.text),
        state="problem",
        raw=lines_with("stdio.h", trial.errors),
        meaning=_("The compiler finds no stdio.h, so it can build nothing."),
        action=command or _("Install the C library's headers with your distribution's package manager."),
    )


def _missing_fact(survey: Survey, tool: Tool, words: list[str]) -> Fact:
    """A tool that is not here. Its command installs the C library's headers too, where the compiler misses them."""
    see = f"command -v {shlex.quote(words[0])}"
    named = bool(named_command(survey.host, tool))
    if tool.needed or named:
        problem = tool.id != "tool.bash"
        meaning = _("A build needs it.") if problem else _("Open MPI's configure goes wrong with some other shells.")
        if named:
            meaning = _("${variable} names {program}, and configure would stop there.").format(
                variable=tool.variable, program=words[0]
            )
            action = _("Correct it, or forget it: unset {variable}").format(variable=tool.variable)
        else:
            action = _command_for_all(survey, _compiler_lacks_headers(survey)) or _(
                "Install {name} with your distribution's package manager."
            ).format(name=words[0])
        text = _("{name} is not here").format(name=words[0])
        state = "problem" if problem else "attention"
        return make_fact(
            tool.id, None, text, state, read_from="$PATH", see_yourself=see, meaning=meaning, action=action
        )
    lost = {
        "tool.cxx": _("Only the old C++ bindings want it, which are off by default in 4.x and gone in 5.0."),
        "tool.fortran": _("Open MPI is built without its Fortran part."),
    }[tool.id]
    return make_fact(tool.id, None, _("none"), read_from="$PATH", see_yourself=see, meaning=lost)


def _compiler_lacks_headers(survey: Survey) -> bool:
    """As the compiler's own fact found out before; a compiler that hangs is not asked again."""
    compiler = survey.found.fact("tool.cc")
    return compiler.value is not None and lacks_headers(_header_trial(survey.host, find_tool(survey.host, TOOLS[0])[0]))


def version_line(host: Host, path: str) -> str:
    """The text in autoconf, automake or libtoolize that holds their version; empty when there is none.

    These are scripts, and automake takes longer to say its version than all that is asked besides.
    """
    text = host.read(path) or ""
    if found := re.search(r"\(GNU (?:Autoconf|libtool)\) v?\d+\.\d[\w.-]*", text):
        return found[0]
    if found := re.search(r"'(/[^'\n]*/automake-[\d.]+)'", text):
        text = host.read(f"{found[1]}/Automake/Config.pm") or ""
        return lines_with(r"^\s*our \$VERSION = '\d+\.\d", text)
    return ""


def read_autotools(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    paths = {name: path for name in AUTOTOOLS if (path := host.which(name))}
    lines = {name: version_line(host, path) for name, path in paths.items() if name not in ("m4", "flex")}
    asked = [name for name in paths if not lines.get(name)]
    results = ask_all(host, [[name, "--version"] for name in asked])
    lines |= {name: first_line(result.output) for name, result in zip(asked, results, strict=True)}
    versions = {name: parse_version(line) for name, line in lines.items()}
    value = {name: {"path": path, "version": versions[name]} for name, path in paths.items()}
    shown = [f"{name} {versions[name]}".strip() for name in paths]
    missing = [name for name in AUTOTOOLS if name not in paths]
    text = ", ".join(shown) or _("none")
    if shown and missing:
        text += " " + _("(no {names})").format(names=", ".join(missing))
    yield make_fact(
        "tool.autotools",
        value or None,
        text,
        read_from=", ".join(paths.values()) or "$PATH",
        raw="\n".join(f"{path}: {lines[name]}" for name, path in paths.items()),
        see_yourself="; ".join(f"{name} --version | head -n1" for name in AUTOTOOLS),
        meaning=_("Only a build from a git checkout needs them; a release's archive holds its configure."),
    )


def read_ccache(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    path = host.which("ccache")
    see = "ccache --version | head -n1; ccache -s"
    if path is None:
        meaning = _("It keeps what was compiled, and a second build of the same source would be quicker.")
        yield make_fact("tool.ccache", None, _("none"), read_from="$PATH", see_yourself=see, meaning=meaning)
        return
    output = ask(host, "ccache", "--version").output
    version = parse_version(output)
    words, compiler = find_tool(host, TOOLS[0])
    through = posixpath.basename(words[0]) == "ccache" or (
        compiler is not None and posixpath.basename(host.resolve(compiler)) == "ccache"
    )
    state = _("used by {command}").format(command=shlex.join(words)) if through else _("not in use")
    yield make_fact(
        "tool.ccache",
        {"path": path, "version": version},
        f"{version}, {state}" if version else state,
        read_from=path,
        raw=first_line(output) or path,
        see_yourself=see,
        meaning=_("It keeps what was compiled: a second build of the same source takes far less time."),
        action="" if through else f"export CC='ccache {words[0]}'",
    )


def _probe(tool: Tool) -> Probe:
    """A tool's own probe: a compiler that hangs costs no other tool's fact."""
    needs = ("platform.distribution", "tool.cc") if tool.needed else ("platform.distribution",)
    return Probe((tool.id,), partial(read_tool, tool), tuple(need for need in needs if need != tool.id))


PROBES = (
    *(_probe(tool) for tool in TOOLS),
    Probe(("tool.autotools",), read_autotools),
    Probe(("tool.ccache",), read_ccache),
)
