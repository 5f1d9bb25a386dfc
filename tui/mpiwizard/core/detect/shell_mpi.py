"""Whether this shell's mpirun, compilers and libmpi belong together. Parts of two MPIs do not work as one."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from msgspec import Struct

from mpiwizard.core.detect.facts import Probe, Survey, ask, at_once, first_line, lines_with, make_fact
from mpiwizard.core.detect.launchers import prefix_of_program
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _

PROGRAMS = ("mpirun", "mpicc", "mpifort")
PREFIXES = ("OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX", "PMIX_INSTALL_PREFIX")  # where Open MPI looks for its parts
LDCONFIG = "/sbin/ldconfig"  # people's PATH often leaves /sbin out
_LIBRARY = re.compile(r"libmpi(ch)?\.so\.\d+")
_LONGEST_COMMAND = 1 << 16  # characters of a command line that are looked at; shlex takes long for more
_OWN_TREES = ("/usr/lib64/openmpi/", "/usr/lib64/mpich/", "/usr/lib64/mpi/")  # prefixes inside of /usr


class Program(Struct, frozen=True):
    """A program of an MPI on PATH; `kind` is empty where the name of its file does not tell it."""

    name: str
    path: str
    real: str
    prefix: str
    kind: str


class Library(Struct, frozen=True):
    """The libmpi that a program compiled here would load, and what made the loader take it."""

    path: str
    because: str  # LD_LIBRARY_PATH, runpath or ldconfig


class Conflict(Struct, frozen=True):
    """Two things that do not belong together, what comes of it, and the line that mends it."""

    sentence: str
    breaks: str
    mend: str


def find_program(host: Host, name: str) -> Program | None:
    path = host.which(name)
    if path is None:
        return None
    real = host.resolve(path)
    return Program(name, path, real, prefix_of_program(host, path), kind_of_file(posixpath.basename(real)))


def kind_of_file(name: str) -> str:
    """The MPI that calls its programs so; with Debian's alternatives two of them share /usr/bin."""
    if name.endswith(".openmpi") or name in ("orterun", "prterun", "prte", "opal_wrapper"):
        return "Open MPI"
    return "MPICH" if name.endswith(".mpich") or "hydra" in name else ""


def parse_wrapper(text: str) -> tuple[list[str], list[str]]:
    """Folders a compiler wrapper links from, and those it writes into the program as run path."""
    text = text[:_LONGEST_COMMAND]
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    links = [word[2:] for word in words if word.startswith("-L/")]
    linker = ",".join(word[4:] for word in words if word.startswith("-Wl,")).split(",")
    paths = [after for before, after in pairwise(linker) if before in ("-rpath", "--rpath")]
    paths += [word.partition("=")[2] for word in linker if word.startswith(("-rpath=", "--rpath="))]
    return links, [path for path in paths if path.startswith("/")]


def parse_ldconfig(text: str) -> list[str]:
    """Paths of the libmpi that the loader knows, from `ldconfig -p`, in its order."""
    return re.findall(rf"^\s*{_LIBRARY.pattern} \([^)\n]*\) => (/\S+)".replace("(ch)", "(?:ch)"), text, re.MULTILINE)


def belongs(host: Host, path: str, prefix: str) -> bool:
    """Whether a library lies in the installation with this prefix."""
    real, prefix = host.resolve(path), host.resolve(prefix)
    if prefix in ("/", "/usr"):
        return real.startswith(("/usr/lib", "/lib")) and not real.startswith(_OWN_TREES)
    return real.startswith(prefix + "/")


def find_library(host: Host, compiler: Program, wrapper: str, cached: list[str]) -> Library | None:
    """The libmpi for programs of this compiler, in the loader's order: LD_LIBRARY_PATH, run path, its cache."""
    links, run_paths = parse_wrapper(wrapper)
    own = [*links, *run_paths, f"{compiler.prefix}/lib", f"{compiler.prefix}/lib64"]
    names = [name for folder in own for name in host.list(folder) if _LIBRARY.fullmatch(name)]
    if not names:
        return None
    wanted = names[0]  # what the program asks for; libmpi.so.40 is the name in all of Open MPI 4 and 5
    if "-rpath" in wrapper:  # its folders are printed without quotes, and one with blanks comes apart
        run_paths += own
    for folders, because in ((_library_path(host), "LD_LIBRARY_PATH"), (run_paths, "runpath")):
        for folder in folders:
            if host.exists(f"{folder}/{wanted}"):
                return Library(f"{folder}/{wanted}", because)
    if not wrapper:  # nobody knows whether its programs have a run path
        return None
    return next((Library(path, "ldconfig") for path in cached if path.endswith(f"/{wanted}")), None)


def _library_path(host: Host) -> list[str]:
    folders = host.environment.get("LD_LIBRARY_PATH", "").split(":")
    return [folder.rstrip("/") for folder in folders if folder.startswith("/")]


def find_conflicts(host: Host, programs: dict[str, Program], library: Library | None) -> list[Conflict]:
    """Everything that does not belong to the mpirun on PATH."""
    launcher = programs.get("mpirun")
    if launcher is None:
        return []
    conflicts = []
    strangers = [one for one in programs.values() if _is_strange(one, launcher)]
    for stranger in strangers:
        conflicts.append(
            Conflict(
                _("{name} is that of {other}, mpirun that of {prefix}").format(
                    name=stranger.name, other=_who(stranger, launcher), prefix=_who(launcher, stranger)
                ),
                _("A program compiled by one MPI and started by another runs as so many separate ranks 0, or stops."),
                _mend_path(host, launcher, stranger, programs),
            )
        )
    compiler = programs.get("mpicc", launcher)
    explained = compiler in strangers and library is not None and belongs(host, library.path, compiler.prefix)
    if library and not explained and not belongs(host, library.path, launcher.prefix):
        conflicts.append(_library_conflict(host, library, launcher))
    is_open_mpi = launcher.kind == "Open MPI" or host.exists(f"{launcher.prefix}/bin/ompi_info")
    for variable in PREFIXES if is_open_mpi else ():
        value = host.environment.get(variable, "")
        if value and host.resolve(value) != launcher.prefix:
            conflicts.append(
                Conflict(
                    _("{variable} names {value}, mpirun is in {prefix}").format(
                        variable=variable, value=value, prefix=launcher.prefix
                    ),
                    _("mpirun looks there for its own parts, and stops or takes those of another release."),
                    f"unset {variable}",
                )
            )
    return conflicts


def _is_strange(program: Program, launcher: Program) -> bool:
    kinds = {program.kind, launcher.kind} - {""}
    return program.prefix != launcher.prefix or len(kinds) > 1


def _who(program: Program, other: Program) -> str:
    """A program's prefix, and its kind where the prefixes are the same."""
    return program.prefix if program.prefix != other.prefix else f"{program.kind} ({posixpath.basename(program.real)})"


def _mend_path(host: Host, launcher: Program, stranger: Program, programs: dict[str, Program]) -> str:
    if stranger.prefix == launcher.prefix:
        flavour = "openmpi" if launcher.kind == "Open MPI" else "mpich"
        return f"sudo update-alternatives --set mpi {launcher.prefix}/bin/mpicc.{flavour}"
    for prefix in (launcher.prefix, stranger.prefix):
        if all(host.exists(f"{prefix}/bin/{name}") for name in programs):
            return f'export PATH={shlex.quote(prefix)}/bin:"$PATH"'
    return _("Call both by their full path, or install what is missing beside {path}.").format(path=launcher.path)


def _library_conflict(host: Host, library: Library, launcher: Program) -> Conflict:
    folder, name = posixpath.split(library.path)
    sentence = {
        "LD_LIBRARY_PATH": _("LD_LIBRARY_PATH puts {path} first, mpirun is that of {prefix}"),
        "runpath": _("mpicc links with {path}, mpirun is that of {prefix}"),
        "ldconfig": _("programs load {path}, mpirun is that of {prefix}"),
    }[library.because].format(path=library.path, prefix=launcher.prefix)
    if library.because == "LD_LIBRARY_PATH":
        others = ":".join(one for one in _library_path(host) if one != folder)
        mend = f"export LD_LIBRARY_PATH={shlex.quote(others)}" if others else "unset LD_LIBRARY_PATH"
    elif library.because == "runpath":  # an installation that was moved
        mend = f"export OPAL_PREFIX={shlex.quote(launcher.prefix)}"
    else:
        own = [f"{launcher.prefix}/{lib}" for lib in ("lib", "lib64") if host.exists(f"{launcher.prefix}/{lib}/{name}")]
        mend = f"export LD_LIBRARY_PATH={shlex.quote((own or [launcher.prefix + '/lib'])[0])}"
    return Conflict(sentence, _("A program would load another MPI's library than the one that starts it."), mend)


def read_shell(survey: Survey) -> Iterator[Fact]:
    host = survey.host
    programs = {name: program for name in PROGRAMS if (program := find_program(host, name))}
    see = "type -a mpirun mpicc mpifort; mpicc -show; echo $LD_LIBRARY_PATH; /sbin/ldconfig -p | grep libmpi"
    if not programs:
        yield make_fact("mpi.shell", None, _("none"), read_from="$PATH", see_yourself=see)
        return
    wrapper, cache = _ask(host, programs)
    base = programs.get("mpicc") or next(iter(programs.values()))
    library = find_library(host, base, wrapper, parse_ldconfig(cache))
    conflicts = find_conflicts(host, programs, library)
    missing = [name for name in ("mpirun", "mpicc") if name not in programs]
    text = _("all of {prefix}").format(prefix=base.prefix)
    if conflicts:
        text = "; ".join(conflict.sentence for conflict in conflicts[:2])
    elif missing:
        text = _("{name} of {prefix}, no {missing}").format(
            name=", ".join(programs), prefix=base.prefix, missing=", ".join(missing)
        )
    names = ("LD_LIBRARY_PATH", *PREFIXES)
    lines = [f"{name}={host.environment[name]}" for name in names if name in host.environment]
    lines += [one.path if one.path == one.real else f"{one.path} -> {one.real}" for one in programs.values()]
    lines += [lines_with(r"libmpi(ch)?\.so\.", cache), f"mpicc -show: {first_line(wrapper)}" if wrapper else ""]
    yield make_fact(
        "mpi.shell",
        {
            **{name: program.prefix if (program := programs.get(name)) else None for name in PROGRAMS},
            "libmpi": library.path if library else None,
        },
        text,
        "attention" if conflicts else "info" if missing else "ok",
        read_from=", ".join(one.path for one in programs.values()),
        raw="\n".join(filter(None, lines)),
        see_yourself=see,
        meaning=" ".join(dict.fromkeys(conflict.breaks for conflict in conflicts)),
        action="; ".join(dict.fromkeys(conflict.mend for conflict in conflicts)),
        claims=(7, 8, 41, 52),
    )


def _ask(host: Host, programs: dict[str, Program]) -> tuple[str, str]:
    """What mpicc would do, `-show` being the one word that all wrappers know, and the loader's cache."""
    commands = [["mpicc", "-show"]] if "mpicc" in programs else []
    commands += [[LDCONFIG, "-p"]] if host.exists(LDCONFIG) else []
    results = at_once([partial(ask, host, *argv) for argv in commands])
    said = {argv[0]: result.output for argv, result in zip(commands, results, strict=True)}
    return said.get("mpicc", ""), said.get(LDCONFIG, "")


PROBES = (Probe(("mpi.shell",), read_shell),)
