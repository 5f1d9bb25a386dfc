"""The steps of a plan: argv lists for the worker, and the same in shell for `plan --script`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence

from msgspec import Struct

from mpiwizard.core.configure.model import Step
from mpiwizard.core.i18n import _

HOUR = 3600.0
KEPT = (  # variables of the person that reach a build: they cannot change it, or are needed to reach the source
    "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "PATH", "LANG",
    "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR",
    "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "APT_CONFIG", "PYTHONPATH",
    "MPIWIZARD_LANG",
)  # fmt: skip


class Places(Struct, frozen=True):
    """Where a run works. Absolute paths without blanks, since make cannot bear them."""

    run: str
    downloads: str
    prefix: str

    @property
    def source(self) -> str:
        return f"{self.run}/source"

    @property
    def build(self) -> str:
        return f"{self.run}/build"


class Origin(Struct, frozen=True):
    """Where the archive comes from. `sha256` is empty when nobody vouches for one."""

    kind: str  # release, distro or archive
    file: str  # its name, or the whole path of an archive the person has
    sha256: str = ""
    url: str = ""  # of a release


class Work(Struct, frozen=True):
    """All that the steps are made from."""

    places: Places
    origin: Origin
    bash: str
    arguments: tuple[str, ...]  # of configure
    environment: dict[str, str]  # of configure, make and install
    jobs: int
    seconds: dict[str, float]  # estimates by step


def make_steps(work: Work) -> tuple[Step, ...]:
    """The eight steps, from fetch to validate."""
    return (*_source_steps(work), *_build_steps(work), *_proof_steps(work))


def _source_steps(work: Work) -> tuple[Step, ...]:
    source = work.places.source
    unpack = (
        f"mkdir -p {quoted(source)}",
        f'tar -xf "$archive" -C {quoted(source)} --strip-components=1 --no-same-owner',
    )
    return (
        _own_step(work, "fetch", _("Fetch the source"), _fetch_script(work), 2 * HOUR),
        _own_step(work, "verify", _("Verify the archive"), _verify_script(work), 600.0),
        _own_step(work, "unpack", _("Unpack it"), unpack, 1800.0),
    )


def _build_steps(work: Work) -> tuple[Step, ...]:
    configure = (work.bash, f"{work.places.source}/configure", *work.arguments)
    make = ("make", f"-j{work.jobs}")
    return (
        _command_step(work, "configure", _("Look at the machine"), configure, HOUR, safe_again="clean"),
        _command_step(work, "make", _("Compile"), make, 4 * HOUR, safe_again="continue"),
        _command_step(work, "install", _("Install"), ("make", "install"), HOUR),
    )


def _proof_steps(work: Work) -> tuple[Step, ...]:
    prefix = quoted(work.places.prefix)
    return (
        _own_step(work, "tune", _("Measure and keep what is better"), (f"mpiwizard tune --prefix {prefix}",), HOUR),
        _own_step(work, "validate", _("Prove that it works"), (f"mpiwizard validate --prefix {prefix}",), HOUR),
    )


def _own_step(
    work: Work, step: str, title: str, script: Sequence[str], deadline: float
) -> Step:
    argv = (sys.executable, "-m", "mpiwizard.worker", "step", step, work.places.run)
    seconds = work.seconds[step]
    return Step(step, title, argv, work.places.run, {}, tuple(script), seconds, deadline)


def _command_step(
    work: Work, step: str, title: str, argv: tuple[str, ...], deadline: float, safe_again: str = "again"
) -> Step:
    build = work.places.build
    shell = (f"mkdir -p {quoted(build)}", f"cd {quoted(build)}", in_shell(argv, work.environment))
    seconds = work.seconds[step]
    return Step(step, title, argv, build, work.environment, shell, seconds, deadline, safe_again)


def _fetch_script(work: Work) -> tuple[str, ...]:
    """Shell lines that leave the path of the archive in `$archive`."""
    if work.origin.kind == "archive":
        return (f"archive={quoted(work.origin.file)}",)
    if work.origin.kind == "distro":
        return _distro_script(work)
    return (
        f"archive={quoted(f'{work.places.downloads}/{work.origin.file}')}",
        f"mkdir -p {quoted(work.places.downloads)}",
        'if [ ! -f "$archive" ]; then',
        f'  curl --fail --location --retry 3 --output "$archive.part" {quoted(work.origin.url)}',
        '  mv "$archive.part" "$archive"',
        "fi",
    )


def _distro_script(work: Work) -> tuple[str, ...]:
    return (
        f"apt={quoted(f'{work.places.run}/apt')}",
        'mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/sources" "$apt/package"',
        "for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do",
        '  [ ! -f "$list" ] || sed -n "s/^deb /deb-src /p" "$list" > "$apt/sources/${list##*/}"',
        "done",
        "for list in /etc/apt/sources.list.d/*.sources; do",
        '  [ ! -f "$list" ] || sed "s/^Types:.*/Types: deb-src/" "$list" > "$apt/sources/${list##*/}"',
        "done",
        "# without hooks of the system, which may change what lies outside",
        '{ apt-config dump | grep -Eiv "^(APT::Update|APT::Periodic|DPkg|AptCli|Acquire::IndexTargets|Dir)"',
        """  printf '%s "%s";\\n' Dir::Etc::Main /dev/null Dir::Etc::Parts /dev/null \\""",
        '    Dir::Etc::SourceList /dev/null Dir::Etc::SourceParts "$apt/sources" Dir::State::Lists "$apt/lists" \\',
        '    Dir::Cache "$apt" Dir::Cache::Archives "$apt/archives" Dir::Cache::pkgcache "" \\',
        '    Dir::Cache::srcpkgcache "" Acquire::Languages none APT::Sandbox::User root; } > "$apt/apt.conf"',
        'export APT_CONFIG="$apt/apt.conf"',
        "apt-get update || true  # other vendors seldom serve sources",
        'cd "$apt/package"',
        "apt-get source --download-only --only-source openmpi",
        f"archive=$apt/package/{quoted(work.origin.file)}",
    )


def _verify_script(work: Work) -> tuple[str, ...]:
    sha256 = work.origin.sha256
    if not sha256:
        return ('sha256sum "$archive"',)
    complaint = quoted(_("The SHA-256 of the archive should be {sha256}, but it is:").format(sha256=sha256))
    ours = () if work.origin.kind == "archive" else ('  rm "$archive"',)  # or the next start would find it again
    return (
        'sum=$(sha256sum < "$archive" | cut -d " " -f 1)',
        f'if [ "$sum" != {sha256} ]; then',
        f'  echo {complaint} "$sum" >&2',
        *ours,
        "  exit 1",
        "fi",
    )


def in_shell(argv: Sequence[str], environment: Mapping[str, str]) -> str:
    """A command with its variables, quoted for bash."""
    variables = [f"{name}={quoted(value)}" for name, value in environment.items()]
    return " ".join([*variables, shlex.join(argv)])


def quoted(text: str) -> str:
    return shlex.quote(text)
