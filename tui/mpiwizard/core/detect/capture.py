"""A recording of this box for a report: what detection asked and was told, without what names somebody."""

from __future__ import annotations

import json
import re
import secrets
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mpiwizard import __version__
from mpiwizard.core.context import Context, Wishes
from mpiwizard.core.detect.kernel import cma_command
from mpiwizard.core.detect.masks import HOST_FILES, Masks
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.detect.pruning import Interest
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.detect.virtualisation import cpuid_command
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.host import Host, Result
from mpiwizard.core.i18n import _
from mpiwizard.core.recordings import RecordingWriter, RememberingHost

_LONGEST = 1 << 18  # characters of a file or an output that are kept
_VARIABLES = re.compile(  # that detection looks at
    r"PATH|HOME|PWD|USER|LOGNAME|LANG|LANGUAGE|LC_\w+|TERM|SHELL|TMPDIR|TEMP|TMP|container|CC|CXX|FC|F77|CFLAGS|"
    r"CXXFLAGS|LDFLAGS|CPPFLAGS|LD_LIBRARY_PATH|LD_PRELOAD|LD_AUDIT|MPIEXEC_TIMEOUT|LIBRARY_PATH|CPATH|"
    r"PKG_CONFIG_PATH|PYTHONPATH|VIRTUAL_ENV|CONDA_PREFIX|MAMBA_ROOT_PREFIX|SPACK_ROOT|MODULEPATH|HPCX_\w+|"
    r"XDG_(?:STATE|CACHE|CONFIG)_HOME|"
    r"(?:OMPI|OPAL|ORTE|PMIX|PRTE|PMI|UCX|FI|RDMAV|HWLOC|HYDRA|MPI|I_MPI|MPICH|MV2|NCCL|OMP|KMP)_\w+|"
    r"SLURM_(?:JOB_?ID|STEP_ID|JOB_NUM_NODES|NNODES|NTASKS|NPROCS|JOB_CPUS_PER_NODE|TASKS_PER_NODE)|"
    r"PBS_(?:JOBID|NODEFILE|ENVIRONMENT)|LSB_(?:JOBID|HOSTS|MCPU_HOSTS)|SGE_ROOT|PE_HOSTFILE|NSLOTS|JOB_ID|"
    r"FLUX_JOB_\w+|WSL_DISTRO_NAME|KUBERNETES_SERVICE_HOST|HOSTNAME|(?:APPTAINER|SINGULARITY)_NAME"
)
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASS(?!IVE)|CREDENTIAL|PRIVATE|KEY(?:_|$)|AUTH|ACCOUNT|COOKIE|JWT|LICENSE|_URI|CONTACT|MAIL", re.I
)
_HOST_VARIABLES = re.compile(
    r"NODELIST|HOSTS?$|HOSTNAME|NODENAME|NODEFILE|_O_HOST|TOPOLOGY_ADDR$|PBS_JOBID|PBS_SERVER|CLUSTER"
)
_USER_VARIABLES = re.compile(r"USER$|USERNAME$|LOGNAME$")
_HOMES = re.compile(  # names of users in paths, those of Windows with blanks, and in the output of ompi_info
    r"(?:/home/|(?m:^(?:config|build):user:))([^/:\s\"',;)]+)|/Users/([^/:\n\"]+)"
)
_WORDS = re.compile(r"[a-z0-9]+")
_URL = re.compile(r"(?<=://)[^\s\"',;]+")
_HOST_LISTS = ("PBS_NODEFILE", "PE_HOSTFILE")  # variables that name a file with a host at the beginning of each line


class Kept(Struct, frozen=True):
    """What a recording holds, so that a person can judge it before it is given away."""

    path: str  # of the archive
    files: tuple[str, ...]
    commands: tuple[str, ...]
    variables: tuple[str, ...]
    replaced: dict[str, int]  # kind of thing -> how many different ones were replaced
    machine: Machine


def capture(context: Context, target: Path, key: bytes | None = None) -> Kept:
    """Detect, and write all that was asked into an archive, masked. Raises WizardError when it cannot be written.

    `key` (up to 64 bytes) decides the replacements; by default it is a new one each time.
    """
    if target.exists():
        message = _("{path} is there already; name another file with -o.")
        raise WizardError(message.format(path=target), ExitCode.USAGE)
    host = RememberingHost(context.host)
    machine = survey_machine(context, Wishes(), None, host=host)
    answers = host.answers()  # what is asked further on is for the masks alone
    masks = masks_for(context.host, answers, key or secrets.token_bytes(32))
    with tempfile.TemporaryDirectory(prefix="mpiwizard-capture-") as scratch:
        folder = Path(scratch) / "recording"
        folder.mkdir()
        kept = _write(folder, host, answers, masks)
        about = {
            "schema": 1,
            "mpiwizard": __version__,
            "time": context.clock(),
            "headline": masks.plain(machine.headline),
        }
        (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        _pack(folder, target)
    files, commands, variables = kept
    replaced = {kind: len(things) for kind, things in sorted(masks.counts.items())}
    return Kept(str(target), files, commands, variables, replaced, machine)


Answers = Mapping[tuple[Any, ...], Any]


def masks_for(host: Host, answers: Answers, key: bytes) -> Masks:
    """Masks that know the names and addresses of a box that was asked."""
    texts = list(_texts(host, answers))
    own = {part for path in HOST_FILES if (name := (host.read(path) or "").strip()) for part in _with_domain(name)}
    own_users = set(_own_users(host))
    words = {str(word) for question in answers for word in question[1:]}
    interest = Interest(frozenset(own), frozenset(own_users), frozenset(word for word in words if word[:1] == "/"))
    others = set(_occurring(_host_names(host, texts), texts))
    homes = {name for text in texts for found in _HOMES.findall(text) for name in found}
    masks = Masks(own | others, own_users | homes | set(_occurring(_other_users(host), texts)), key, interest)
    for question, answer in answers.items():
        if question[0] == "read" and question[1] == "/proc/net/fib_trie":
            masks.know_addresses(answer or "")
        elif question[:2] == ("run", "ip"):
            masks.know_addresses(answer.output)
    masks.know_addresses(host.read("/etc/resolv.conf") or "")
    return masks


def _occurring(names: Iterable[str], texts: Iterable[str]) -> Iterator[str]:
    """Those of many names that may be in a text: /etc/hosts can name all servers that show advertisements."""
    words = {word for text in texts for word in _WORDS.findall(text.lower())}
    return (name for name in set(names) if "\ufffd" not in name and words.issuperset(_WORDS.findall(name.lower())))


def _texts(host: Host, answers: Answers) -> Iterator[str]:
    """All that a recording might hold; of names and accounts, which are many, it holds only our own."""
    yield from host.environment.values()
    for (kind, *words), answer in answers.items():
        yield from map(str, words)
        if kind == "run":
            yield from (answer.output, answer.errors)
        elif isinstance(answer, str) and words[0] not in ("/etc/hosts", "/etc/passwd"):
            yield answer


def _with_domain(name: str) -> Iterator[str]:
    """A host's name with its parts, each of which may stand alone."""
    yield name
    yield from name.split(".")
    if "." in (domain := name.partition(".")[2]):
        yield domain


def _host_names(host: Host, texts: list[str]) -> Iterator[str]:
    environment = host.environment
    for line in (host.read("/etc/hosts") or "").splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        if address not in ("::1", "ff02::1", "ff02::2", "fe00::0", "ff00::0"):
            for name in names:
                yield from _with_domain(name)
    for line in (host.read("/etc/resolv.conf") or "").splitlines():
        if line.startswith(("search ", "domain ")):
            for name in line.split()[1:]:
                yield from _with_domain(name)
    lists = [value for name, value in environment.items() if _HOST_VARIABLES.search(name) and "/" not in value]
    for variable in _HOST_LISTS:
        lists += re.findall(r"(?m)^\S+", host.read(environment.get(variable, "")) or "")
    for name in re.findall(r"[A-Za-z][\w.-]*", " ".join(lists)):
        yield from _with_domain(name)
    for text in texts:
        yield from re.findall(r"/lxc(?:\.payload)?[./]([\w-]+)", text)
        yield from re.findall(r"(?m)^(?:config|build):host:([\w-]+)", text)  # of ompi_info


def _own_users(host: Host) -> Iterator[str]:
    yield from (value for name, value in host.environment.items() if _USER_VARIABLES.search(name))
    found = re.search(r"^Uid:\s+(\d+)", host.read("/proc/self/status") or "", re.MULTILINE)
    for parts in _accounts(host):
        if found and parts[2] == found[1]:
            yield parts[0]
            yield parts[4].partition(",")[0]


def _other_users(host: Host) -> Iterator[str]:
    """Those of people, whose accounts are numbered from 1000."""
    for parts in _accounts(host):
        if parts[2].isdigit() and 1000 <= int(parts[2]) < 60000:
            yield parts[0]
            yield parts[4].partition(",")[0]


def _accounts(host: Host) -> list[list[str]]:
    lines = (host.read("/etc/passwd") or "").splitlines()
    return [parts for parts in (line.split(":") for line in lines) if len(parts) > 5]


def _write(
    folder: Path, host: Host, answers: Answers, masks: Masks
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """All answers as a recording; the files, commands and variables it holds."""
    writer = RecordingWriter(folder)
    files: list[str] = []
    commands: list[str] = []
    for (_resolve, path), target in sorted(_of_kind(answers, "resolve"), key=lambda pair: len(pair[0][1])):
        if target != path:
            writer.link(masks.plain(path), masks.plain(target))
    for (_list, path), names in _of_kind(answers, "list"):
        if names:
            writer.folder(masks.plain(path))
    for (_read, path), text in _of_kind(answers, "read"):
        if text is not None:
            writer.file(masks.plain(path), masks.text(text[:_LONGEST], path))
            files.append(masks.plain(path))
    for path in sorted(_present(answers), key=len, reverse=True):  # what lies in a folder before the folder
        writer.present(masks.plain(path))
    ours = {  # programs of ours, and their names on every box
        cma_command(host): ("python3", "-m", "mpiwizard.core.detect.cma"),
        cpuid_command(host): ("python3", "-m", "mpiwizard.core.detect.cpuid"),
    }
    for (_run, *argv), result in _of_kind(answers, "run"):
        if result.status != 127:
            words = [masks.plain(word) for word in ours.get(tuple(argv), argv)]
            writer.command(words, _masked(result, " ".join(argv), masks))
            commands.append(" ".join(words))
    variables = kept_variables(host.environment, masks)
    writer.environment(variables)
    return tuple(files), tuple(commands), tuple(variables)


def _present(answers: Answers) -> Iterator[str]:
    """Paths that were seen to be there."""
    for (kind, *words), answer in answers.items():
        if kind == "list":
            yield from (f"{words[0].rstrip('/')}/{name}" for name in answer)
        elif kind == "exists" and answer:
            yield words[0]
        elif kind == "which" and answer:
            yield answer


def _of_kind(answers: Answers, kind: str) -> list[tuple[tuple[Any, ...], Any]]:
    return [(question, answer) for question, answer in answers.items() if question[0] == kind]


def _masked(result: Result, source: str, masks: Masks) -> Result:
    output, errors = (masks.text(text[:_LONGEST], source) for text in (result.output, result.errors))
    return Result(result.status, output, errors, result.timed_out, result.seconds)


def kept_variables(environment: Mapping[str, str], masks: Masks) -> dict[str, str]:
    """The variables detection looks at; of those that hold secrets by their name only that they are there."""
    return {
        name: "REPLACED" if _SECRET_NAME.search(name) else _URL.sub("REPLACED", masks.plain(value))
        for name, value in sorted(environment.items())
        if _VARIABLES.fullmatch(name)
    }


def _pack(folder: Path, target: Path) -> None:
    def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    try:
        with target.open("xb") as file:
            try:
                with tarfile.open(fileobj=file, mode="w:gz") as archive:
                    archive.add(folder, target.name.partition(".")[0] or "recording", filter=anonymous)
            except BaseException:  # also Ctrl-C: half an archive is worse than none
                target.unlink(missing_ok=True)
                raise
    except OSError as error:
        message = _("{path} cannot be written ({reason}); name another file with -o.")
        raise WizardError(message.format(path=target, reason=error.strerror or error), ExitCode.USAGE) from None
