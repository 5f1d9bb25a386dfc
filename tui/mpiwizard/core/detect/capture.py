"""A recording of this box for a report: what detection asked and was told, without what names somebody."""

from __future__ import annotations

import json
import re
import secrets
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mpiwizard import __version__
from mpiwizard.core.context import Context, Wishes
from mpiwizard.core.detect.kernel import cma_command
from mpiwizard.core.detect.masks import HOST_FILES, Masks
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.detect.virtualisation import cpuid_command
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.host import Host, Result
from mpiwizard.core.i18n import _
from mpiwizard.core.recordings import RecordingWriter, RememberingHost

_LONGEST = 1 << 18  # characters of a file or an output that are kept
_VARIABLES = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_\w+|TERM|SHELL|TMPDIR|TEMP|TMP|container|CC|CXX|FC|F77|CFLAGS|"
    r"CXXFLAGS|LDFLAGS|CPPFLAGS|LD_LIBRARY_PATH|LD_PRELOAD|LD_AUDIT|MPIEXEC_TIMEOUT|LIBRARY_PATH|CPATH|"
    r"PKG_CONFIG_PATH|PYTHONPATH|VIRTUAL_ENV|CONDA_\w+|MODULE\w*|LOADEDMODULES|LMOD_\w+|"
    r"XDG_(?:STATE|CACHE|CONFIG)_HOME|"
    r"(?:OMPI|OPAL|ORTE|PMIX|PRTE|PMI|UCX|FI|RDMAV|HWLOC|HYDRA|MPI|I_MPI|MPICH|MV2|NCCL|OMP|KMP)_\w+|SLURM_\w+|"
    r"PBS_\w+|LSB_\w+|LSF_\w+|SGE_\w+|PE_HOSTFILE|NSLOTS|JOB_ID|FLUX_\w+|COBALT_\w+|WSL\w*|"
    r"KUBERNETES_SERVICE_HOST|APPTAINER_\w+|SINGULARITY_\w+|CI|GITHUB_ACTIONS|GITLAB_CI"
)
_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|PRIVATE|_KEY\b|AUTH|ACCOUNT|COOKIE|JWT", re.I)
_HOST_VARIABLES = re.compile(r"NODELIST|HOSTS?$|HOSTNAME|NODENAME|NODEFILE|_O_HOST|TOPOLOGY_ADDR$|SUBMIT_HOST|WORKDIR")


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
    masks = masks_for(host, key or secrets.token_bytes(32))
    with tempfile.TemporaryDirectory(prefix="mpiwizard-capture-") as scratch:
        folder = Path(scratch) / "recording"
        folder.mkdir()
        kept = _write(folder, host, masks)
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


def masks_for(host: RememberingHost, key: bytes) -> Masks:
    """Masks that know the names and addresses of a box that was asked."""
    hosts, users = set(_host_names(host)), set(_user_names(host))
    masks = Masks(hosts, users, key)
    for question, answer in host.answers().items():
        if question[0] == "read" and question[1] in ("/proc/net/fib_trie", "/etc/resolv.conf"):
            masks.know_addresses(answer or "")
        elif question[:2] == ("run", "ip"):
            masks.know_addresses(answer.output)
    return masks


def _host_names(host: Host) -> Iterator[str]:
    for path in HOST_FILES:
        name = (host.read(path) or "").strip()
        yield from (name, name.partition(".")[0], name.partition(".")[2])
    for line in (host.read("/etc/hosts") or "").splitlines():
        address, *names = line.partition("#")[0].split()[:8] or [""]
        if address in ("", "::1", "ff02::1", "ff02::2", "fe00::0", "ff00::0"):
            continue
        for name in names:
            if not name.startswith(("localhost", "ip6-")):
                yield from (name, name.partition(".")[0])
    for line in (host.read("/etc/resolv.conf") or "").splitlines():
        if line.startswith(("search ", "domain ")):
            yield from (name for name in line.split()[1:] if "." in name)
    for name, value in host.environment.items():
        if _HOST_VARIABLES.search(name):
            yield from re.findall(r"[A-Za-z][\w-]*\w(?=\[|,|\.|$)", value.partition("/")[0])


def _user_names(host: Host) -> Iterator[str]:
    environment = host.environment
    yield from (environment.get("USER", ""), environment.get("LOGNAME", ""))
    found = re.search(r"^Uid:\s+(\d+)", host.read("/proc/self/status") or "", re.MULTILINE)
    for line in (host.read("/etc/passwd") or "").splitlines():
        parts = line.split(":")
        if found and len(parts) > 5 and parts[2] == found[1]:
            yield parts[0]
            yield parts[4].partition(",")[0]
    for text in (*environment.values(), *(str(word) for question in _questions(host) for word in question)):
        yield from re.findall(r"/home/([^/:\s]+)", text)
        yield from re.findall(r"/Users/([^/:\n]+)", text)  # of Windows, where names may hold blanks


def _questions(host: Host) -> Iterator[tuple[Any, ...]]:
    if isinstance(host, RememberingHost):
        yield from host.answers()


def _write(
    folder: Path, host: RememberingHost, masks: Masks
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """All answers as a recording; the files, commands and variables it holds."""
    writer = RecordingWriter(folder)
    answers = host.answers()
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


def _present(answers: Mapping[tuple[Any, ...], Any]) -> Iterator[str]:
    """Paths that were seen to be there."""
    for (kind, *words), answer in answers.items():
        if kind == "list":
            yield from (f"{words[0].rstrip('/')}/{name}" for name in answer)
        elif kind == "exists" and answer:
            yield words[0]
        elif kind == "which" and answer:
            yield answer


def _of_kind(answers: Mapping[tuple[Any, ...], Any], kind: str) -> list[tuple[tuple[Any, ...], Any]]:
    return [(question, answer) for question, answer in answers.items() if question[0] == kind]


def _masked(result: Result, source: str, masks: Masks) -> Result:
    output, errors = (masks.text(text[:_LONGEST], source) for text in (result.output, result.errors))
    return Result(result.status, output, errors, result.timed_out, result.seconds)


def kept_variables(environment: Mapping[str, str], masks: Masks) -> dict[str, str]:
    """The variables detection looks at, without those that hold secrets by their name."""
    return {
        name: masks.plain(value)
        for name, value in sorted(environment.items())
        if _VARIABLES.fullmatch(name) and not _SECRET_NAME.search(name)
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
