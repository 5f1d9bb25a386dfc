"""The distribution's own source package, through apt in a folder of ours.

Nothing under /etc changes and no rights are needed: apt gets its own lists, archives and a source
list derived from the configured mirrors. Its configuration is that of the box without the hooks
that other packages put there. apt checks the signatures with the distribution's keyrings.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from mpiwizard.core.context import Context, Wishes
from mpiwizard.core.errors import WizardError
from mpiwizard.core.host import Host, Result
from mpiwizard.core.i18n import _
from mpiwizard.core.locks import take_lock
from mpiwizard.core.sources.model import Availability

_UPDATE_SECONDS = 60.0
_DOWNLOAD_SECONDS = 900.0
_PROBE_PATIENCE = 20.0  # seconds
_URI = re.compile(r"^'(?P<uri>[^']+)' (?P<file>\S+) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-f]{64})$", re.M)
_ORIGINAL = re.compile(r"^openmpi_(?P<release>[0-9.]+)\S*\.orig\.tar\.(?:xz|gz|bz2)$")
_HOOK = re.compile(r"^(?:APT::Update::|DPkg::|AptCli::|APT::Periodic|Acquire::IndexTargets::|Dir)", re.I)


def probe(context: Context, wishes: Wishes) -> Availability:
    """What the distribution's source package offers. Never raises; asks the configured mirrors."""
    if not context.host.is_real:
        return Availability("distro", False, reason=_("not asked: this is a recorded machine"))
    if context.host.which("apt-get") is None:
        return Availability("distro", False, reason=_("this distribution has no apt"))
    if context.offline:
        return Availability("distro", False, reason=_("not asked: --offline"))
    try:
        with _alone(context, _PROBE_PATIENCE):
            package = _Package(context)
            package.update()
            return package.offer()
    except (WizardError, OSError) as error:
        return Availability("distro", False, reason=str(error))


def fetch(context: Context, target: Path, expected: Availability | None = None) -> tuple[Path, str]:
    """Download the original archive into `target`; its path and the SHA-256 that apt's signed list names.

    Raises WizardError with apt's own reason.
    """
    with _alone(context, _DOWNLOAD_SECONDS):
        package = _Package(context)
        package.update()
        offer = package.offer()
        if not offer.reachable:
            raise WizardError(offer.reason)
        target.mkdir(parents=True, exist_ok=True)
        result = package.run(
            ["apt-get", "source", "--download-only", "--only-source", "openmpi"],
            _DOWNLOAD_SECONDS,
            folder=target,
        )
    path = target / offer.file
    if not result.succeeded or not path.is_file():
        raise WizardError(_first_complaint(result))
    return path, offer.sha256


@contextlib.contextmanager
def _alone(context: Context, patience: float) -> Iterator[None]:
    """Hold the private folders, which two must not fill at once; WizardError when that stays impossible."""
    lock = take_lock(context.folders.state / "apt" / "ours.lock", patience)
    if lock is None:
        raise WizardError(_("another mpiwizard uses apt at this moment; try again when it has its source"))
    try:
        yield
    finally:
        os.close(lock)


class _Package:
    """apt with private folders."""

    def __init__(self, context: Context) -> None:
        self._host = context.host
        self._folder = context.folders.state / "apt"
        for name in ("lists/partial", "archives/partial", "sources"):
            (self._folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        self._write_sources()
        self._write_configuration()

    def _write_sources(self) -> None:
        for old in (self._folder / "sources").iterdir():
            old.unlink()
        for name, text in source_lists(self._host).items():
            (self._folder / "sources" / name).write_text(text, encoding="utf-8")

    def _write_configuration(self) -> None:
        dump = self._host.run(["apt-config", "dump"]).output
        kept = [line for line in dump.splitlines() if not _HOOK.match(line)]
        ours = {
            "Dir::Etc::Parts": "/dev/null",
            "Dir::Etc::Main": "/dev/null",
            "Dir::Etc::SourceList": "/dev/null",
            "Dir::Etc::SourceParts": f"{self._folder}/sources",
            "Dir::State::Lists": f"{self._folder}/lists",
            "Dir::Cache": f"{self._folder}",
            "Dir::Cache::Archives": f"{self._folder}/archives",
            "Dir::Cache::pkgcache": "",
            "Dir::Cache::srcpkgcache": "",
            "APT::Sandbox::User": "root",  # apt's own user cannot enter a private folder
            "Acquire::Languages": "none",
            "Acquire::http::Timeout": "15",
            "Acquire::https::Timeout": "15",
        }
        lines = [*kept, *(f'{name} "{value}";' for name, value in ours.items())]
        (self._folder / "apt.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def run(self, argv: list[str], timeout: float, folder: Path | None = None) -> Result:
        environment: Mapping[str, str] = {
            **self._host.environment,
            "APT_CONFIG": str(self._folder / "apt.conf"),
            "LC_ALL": "C.UTF-8",
        }
        return self._host.run(
            argv, timeout=timeout, environment=environment, folder=str(folder) if folder else None
        )

    def update(self) -> None:
        if not any((self._folder / "sources").iterdir()):
            raise WizardError(_("no package mirror of this distribution is configured"))
        result = self.run(["apt-get", "update", "-o", "Acquire::Retries=1"], _UPDATE_SECONDS)
        if result.timed_out:
            raise WizardError(
                _("the package mirror did not answer within {seconds:.0f} s").format(seconds=_UPDATE_SECONDS)
            )

    def offer(self) -> Availability:
        """What `apt-get source` would download."""
        result = self.run(["apt-get", "source", "--print-uris", "--only-source", "openmpi"], 30.0)
        for match in _URI.finditer(result.output):
            if original := _ORIGINAL.match(match["file"]):
                return Availability(
                    "distro",
                    True,
                    original["release"].rstrip("."),
                    match["file"],
                    int(match["size"]),
                    match["sha256"],
                    _("the distribution's source package, from its signed list"),
                )
        return Availability("distro", False, reason=_first_complaint(result))


def _first_complaint(result: Result) -> str:
    """apt's first error in one line."""
    for line in result.errors.splitlines():
        if line.startswith("E: "):
            return _("apt says: {text}").format(text=line[3:].strip())
    return _("apt ended with exit status {status} and no reason").format(status=result.status)


def source_lists(host: Host) -> dict[str, str]:
    """The box's own package sources, turned into source-package lists: file name -> content.

    Only entries of this distribution's release are taken: other vendors seldom serve sources.
    """
    codename = _codename(host)
    lists: dict[str, str] = {}
    folder = "/etc/apt/sources.list.d"
    for path in ("/etc/apt/sources.list", *(f"{folder}/{name}" for name in host.list(folder))):
        text = host.read(path) or ""
        name = path.rpartition("/")[2]
        if path.endswith(".sources"):
            if turned := _from_stanzas(text, codename):
                lists[name] = turned
        elif path.endswith(".list") and (turned := _from_lines(text, codename)):
            lists[name] = turned
    return lists


def _codename(host: Host) -> str:
    for line in (host.read("/etc/os-release") or "").splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip("\"'")
    return ""


def _from_stanzas(text: str, codename: str) -> str:
    """deb822 stanzas with `Types: deb` made into `Types: deb-src`."""
    turned = []
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if line.strip() and not line.startswith("#")]
        fields = {
            name.strip().lower(): value.strip()
            for name, colon, value in (line.partition(":") for line in lines)
            if colon and not name.startswith((" ", "\t"))
        }
        suites = fields.get("suites", "").split()
        if (
            "deb" in fields.get("types", "").split()
            and fields.get("enabled", "yes").lower() not in ("no", "false")
            and any(suite.startswith(codename) for suite in suites)
        ):
            kept = [line for line in lines if not line.lower().startswith(("types:", "architectures:"))]
            turned.append("\n".join(["Types: deb-src", *kept]))
    return "\n\n".join(turned) + "\n" if turned else ""


def _from_lines(text: str, codename: str) -> str:
    """`deb` lines made into `deb-src` lines."""
    turned = []
    for line in text.splitlines():
        match = re.match(r"^\s*deb\s+(?P<options>\[[^]]*\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<rest>[^#]*)", line)
        if match and match["suite"].startswith(codename):
            options = re.sub(r"arch=\S+?(?=[\s\]])", "", match["options"] or "")
            options = "" if options.strip(" []") == "" else options
            turned.append(f"deb-src {options}{match['uri']} {match['suite']} {match['rest'].strip()}")
    return "\n".join(turned) + "\n" if turned else ""
