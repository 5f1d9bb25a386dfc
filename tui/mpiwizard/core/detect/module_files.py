"""MPIs that a cluster offers through environment modules. Their files are read; `module` is not run."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mpiwizard.core.detect.facts import Probe, Survey, make_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

MOST = 40  # module files that are read; a cluster has an MPI for each of its compilers
DEEPEST = 4  # folders below a path of MODULEPATH, as in mpi/openmpi/gcc-13/5.0.3.lua
USUAL = (  # where distributions and vendors put them, for a shell that has not set MODULEPATH
    "/etc/modulefiles", "/usr/share/Modules/modulefiles", "/usr/share/modulefiles", "/usr/share/modules/modulefiles",
    "/opt/modulefiles", "/opt/intel/oneapi/modulefiles",
)  # fmt: skip
MPI_NAME = re.compile(
    r"(open-?mpi|ompi|mpich|mvapich2?|hpcx|intel-?mpi|impi|intel-oneapi-mpi|cray-mpich|mpt|spectrum-mpi)(?![a-z])"
    r"|mpi(?=[-_/.]|$)",
    re.IGNORECASE,
)
_UNKNOWN = "\0"  # stands for what cannot be known without running the file
_LONGEST = 1000  # characters of a line that is looked at
_STRING = r'"[^"]*"'


def find_module_files(host: Host, folders: list[str]) -> list[tuple[str, str]]:
    """Names of modules that are an MPI's, with the path and the text left to `read`; at most MOST."""
    found: list[tuple[str, str]] = []
    for folder in folders:
        waiting = [name for name in host.list(folder) if MPI_NAME.match(name)][::-1]
        while waiting and len(found) < MOST:
            name = waiting.pop()
            path = f"{folder}/{name}"
            if posixpath.basename(name).startswith(".") or name.endswith("~"):
                continue
            inside = host.list(path)
            if inside and name.count("/") < DEEPEST:
                waiting += [f"{name}/{one}" for one in inside[::-1]]
            elif not inside and (name.endswith(".lua") or (host.read(path) or "").startswith("#%Module")):
                found.append((name.removesuffix(".lua"), path))
    return found


def tcl_paths(text: str, file: str, environment: Mapping[str, str]) -> list[str]:
    """What a module file in Tcl puts into PATH. Conditions and loops are not followed, unknown commands left out."""
    variables = {"ModulesCurrentModulefile": file, **{f"env({name})": value for name, value in environment.items()}}
    paths: list[str] = []
    for line in text.splitlines():
        line = _expand_tcl(line[:_LONGEST].strip(), variables)
        words = ["".join(parts) for parts in re.findall(r'"([^"]*)"|\{([^{}]*)\}|([^\s"{}]+)', line)]
        match words:
            case ["set", name, value] if _UNKNOWN not in value:
                variables[name] = value
            case ["set", name, *_rest]:
                variables.pop(name, None)
            case ["prepend-path" | "append-path", *options, "PATH", value] if len(options) < 3:
                paths += value.split(":")
    return _absolute(paths)


def _expand_tcl(line: str, variables: Mapping[str, str]) -> str:
    """A line with its variables filled in, and its commands as far as they only take paths apart."""
    line = re.sub(
        r"\$(?:::)?(?:(env\(\w+\))|\{(?:::)?([\w()]+)\}|(\w+))",
        lambda name: variables.get(name[1] or name[2] or name[3], _UNKNOWN),
        line,
    )[:_LONGEST]
    while found := re.search(r"\[([^\[\]]*)\]", line):
        match found[1].split():
            case ["file", "dirname", path]:
                value = posixpath.dirname(path) or _UNKNOWN
            case ["file", "normalize", path] | ["exec", "readlink", "-f", path]:
                value = path
            case _:
                value = _UNKNOWN
        line = line[: found.start()] + value + line[found.end() :]
    return line


def lua_paths(text: str, environment: Mapping[str, str]) -> list[str]:
    """What a module file in Lua puts into PATH, as far as it is put together from plain strings."""
    variables: dict[str, str] = {}
    paths: list[str] = []
    for line in text.splitlines():
        line = line[:_LONGEST]
        if found := re.match(r"\s*(?:local\s+)?(\w+)\s*=(?!=)(.*)", line):
            value = _lua_value(found[2], variables, environment)
            variables.pop(found[1], None)
            if value is not None:
                variables[found[1]] = value
        elif found := re.match(r"""\s*(?:prepend|append)_path\s*[({]\s*["']PATH["']\s*,(.*)[)}]""", line):
            paths += (_lua_value(found[1], variables, environment) or "").split(":")
    return _absolute(paths)


def _lua_value(expression: str, variables: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """The string an expression comes to: strings, names, `..`, `or`, pathJoin and os.getenv; None for any other."""
    expression = re.sub(r"'([^'\"]*)'|\[\[([^\]\"]*)\]\]", lambda one: f'"{one[1] or one[2] or ""}"', expression)
    parts = re.split(f"({_STRING})", expression)
    for number in range(0, len(parts), 2):  # what stands between the strings
        parts[number] = re.sub(
            r"(?<!\w)(?<!(?<!\.)\.)[A-Za-z_]\w*(?!\w*\s*(?:\(|\.(?!\.)))",
            lambda name: _quoted(variables[name[0]]) if name[0] in variables else name[0],
            parts[number].partition("--")[0],
        )
    rules = (
        (r'os\.getenv\(\s*"(\w+)"\s*\)', lambda one: _quoted(environment[one[1]]) if one[1] in environment else "nil"),
        (rf"pathJoin\(\s*({_STRING}(?:\s*,\s*{_STRING})*)\s*\)", lambda one: _quoted(_joined(one[1]))),
        (r'"([^"]*)"\s*\.\.\s*"([^"]*)"', lambda one: _quoted(one[1] + one[2])),
        (rf"(?:nil or )+({_STRING})", lambda one: one[1]),
        (rf"({_STRING}) or (?:{_STRING}|nil)", lambda one: one[1]),
        (rf"(?<!\w)\(\s*({_STRING})\s*\)", lambda one: one[1]),
    )
    text, before = "".join(parts)[:_LONGEST], ""
    while text != before:
        before = text
        for pattern, value in rules:
            text = re.sub(pattern, value, text)
    found = re.match(r'\s*"([^"]*)"\s*(?:,.*)?;?\s*$', text)  # a third argument is PATH's separator
    return found[1] if found else None


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "") + '"'


def _joined(strings: str) -> str:
    """The paths in a list of Lua strings as one path."""
    first, *others = re.findall(r'"([^"]*)"', strings)
    return "/".join([first.rstrip("/"), *(one.strip("/") for one in others)])


def _absolute(paths: list[str]) -> list[str]:
    return [path.rstrip("/") for path in paths if path.startswith("/") and _UNKNOWN not in path]


def prefix_of(host: Host, paths: list[str]) -> str | None:
    """The prefix of the MPI among the folders a module puts into PATH; None when that cannot be told."""
    folders = [path for path in paths if path.endswith("/bin")]
    with_mpi = [folder for folder in folders if host.exists(f"{folder}/mpirun") or host.exists(f"{folder}/mpicc")]
    if with_mpi:
        return posixpath.dirname(with_mpi[0])
    return posixpath.dirname(folders[0]) if len(folders) == 1 else None


def read_modules(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    named = [folder.rstrip("/") for folder in host.environment.get("MODULEPATH", "").split(":") if folder[:1] == "/"]
    folders = list(dict.fromkeys([*named, *USUAL]))
    modules: list[dict[str, Any]] = []
    raw = []
    for name, file in find_module_files(host, folders):
        text = host.read(file) or ""
        real = host.resolve(file)
        paths = lua_paths(text, host.environment) if file.endswith(".lua") else tcl_paths(text, real, host.environment)
        prefix = prefix_of(host, paths)
        modules.append({"module": name, "file": file, **({"prefix": prefix} if prefix else {})})
        raw += [f"{file}: {line.strip()}" for line in text.splitlines() if re.search(r"\bPATH\b", line)][:2] or [file]
    names = [module["module"] for module in modules]
    shown = ", ".join(names[:3])
    if len(names) > 3:
        shown += " " + _("and {count} more").format(count=len(names) - 3)
    yield make_fact(
        "mpi.modules",
        modules,
        shown or _("none"),
        read_from=", ".join([module["file"] for module in modules] or named or USUAL),
        raw="\n".join(raw),
        see_yourself="module avail mpi; echo $MODULEPATH",
        meaning=_("An MPI that was made for this cluster; it may know its network better than one built here.")
        if modules
        else "",
        action=_("To try one: module load {module}; mpirun --version").format(module=names[0]) if modules else "",
        claims=(7, 8),
    )


PROBES = (Probe(("mpi.modules",), read_modules),)
