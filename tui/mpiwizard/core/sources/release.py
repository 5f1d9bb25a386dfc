"""Open MPI's official archives: the address and SHA-256 come from recipes/releases.toml.

A download can be resumed, honours the proxy variables and the box's own certificates, and is used
only when its sum is the pinned one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mpiwizard.core.context import Context, Wishes
from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.i18n import _
from mpiwizard.core.sources.checksum import refuse_if_different, sha256_of
from mpiwizard.core.sources.model import Availability

if TYPE_CHECKING:
    import httpx

    from mpiwizard.core.recipes import Archive

_OFFICIAL = "https://download.open-mpi.org/release/open-mpi/"
_CONNECT_SECONDS = 5.0
_READ_SECONDS = 30.0


def probe(context: Context, wishes: Wishes) -> Availability:
    """Whether the official archive of the wished (or newest) release can be reached. Never raises."""
    if not context.host.is_real:
        return Availability("release", False, reason=_("not asked: this is a recorded machine"))
    archive = find_archive(context, wishes.release)
    if archive is None:
        reason = _("release {release} is not in the list of known releases").format(release=wishes.release)
        return Availability("release", False, reason=reason)
    address = address_of(archive, wishes.mirror)
    if context.offline and not wishes.mirror:
        return Availability("release", False, archive.release, reason=_("not asked: --offline"))
    import httpx

    try:
        with _client() as client:
            answer = client.head(address)
            answer.raise_for_status()
            size = int(answer.headers.get("content-length", 0))
    except (httpx.HTTPError, httpx.InvalidURL, ImportError, ValueError, OSError) as error:
        return Availability("release", False, archive.release, reason=_reason(address, error))
    detail = _("official archive, SHA-256 pinned by {count} projects").format(count=len(archive.sources))
    return Availability("release", True, archive.release, archive.file, size, archive.sha256, detail)


def fetch(
    context: Context, release: str, mirror: str, target: Path, note: Callable[[str], None]
) -> tuple[Path, str]:
    """Download a release into `target`; its path and pinned SHA-256.

    An earlier unfinished download goes on where it was. Raises WizardError; a file with a wrong sum
    is not kept.
    """
    archive = find_archive(context, release)
    if archive is None:
        raise WizardError(
            _("Release {release} is not in recipes/releases.toml, so its sum is not known.").format(release=release),
            ExitCode.USAGE,
        )
    target.mkdir(parents=True, exist_ok=True)
    path, address = target / archive.file, address_of(archive, mirror)
    if path.exists() and sha256_of(path) != archive.sha256:
        path.unlink()  # spoiled since it was kept
    if not path.exists() and _download(address, path, note) and sha256_of(path) != archive.sha256:
        path.unlink()  # the two parts are of two files: the server's has changed in between
        _download(address, path, note)
    return path, refuse_if_different(path, archive.sha256, remove=True)


def find_archive(context: Context, release: str) -> Archive | None:
    """The archive to take of a release, or of the newest one; the smaller bz2 before gz."""
    from mpiwizard.core.recipes import load_recipes

    releases = load_recipes(context.folders.config).releases
    known = releases.get(release) if release else next(reversed(releases.values()), None)
    return known.archive if known else None


def address_of(archive: Archive, mirror: str) -> str:
    """The address of an archive, on a mirror that keeps the official folders when one is given."""
    return archive.url.replace(_OFFICIAL, mirror.rstrip("/") + "/") if mirror else archive.url


def _client() -> httpx.Client:
    import ssl

    import httpx
    import truststore

    return httpx.Client(
        verify=truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        timeout=httpx.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS),
        follow_redirects=True,
    )


def _download(address: str, path: Path, note: Callable[[str], None]) -> bool:
    """Download to `path`; True when an earlier unfinished download went on."""
    import fcntl

    import httpx

    part = path.with_name(path.name + ".part")
    with part.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # two runs may want the same archive: the second waits, and has it
        if path.exists():
            part.unlink(missing_ok=True)
            return False
        have = file.seek(0, 2)  # to its end, which may have moved while we waited
        try:
            with _client() as client:
                goes_on = _get(client, address, file, have, note)
        except (httpx.HTTPError, httpx.InvalidURL, ImportError, ValueError) as error:
            raise WizardError(_reason(address, error)) from None
        part.rename(path)
    return goes_on


def _get(client: httpx.Client, address: str, file: BinaryIO, have: int, note: Callable[[str], None]) -> bool:
    """Append what is missing to the file, or fetch all anew when the server cannot go on; True when it went on."""
    import httpx

    wanted = {"Range": f"bytes={have}-"} if have else {}
    with client.stream("GET", address, headers={"Accept-Encoding": "identity", **wanted}) as answer:
        if not (have and answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE):
            answer.raise_for_status()
            goes_on = answer.status_code == httpx.codes.PARTIAL_CONTENT
            if not goes_on:
                file.truncate(0)
            _receive(answer, file.write, have if goes_on else 0, note)
            return goes_on
    file.truncate(0)
    return _get(client, address, file, 0, note)


def _receive(
    answer: httpx.Response, write: Callable[[bytes], object], have: int, note: Callable[[str], None]
) -> None:
    total = have + int(answer.headers.get("content-length", 0))
    told = time.monotonic()
    for block in answer.iter_raw():
        write(block)
        have += len(block)
        if time.monotonic() - told > 1.0:
            told = time.monotonic()
            note(_("{have:.1f} of {total:.1f} MB").format(have=have / 1e6, total=total / 1e6))


def _reason(address: str, error: Exception) -> str:
    import re
    import urllib.request

    import httpx

    host = httpx.URL(address).host if not isinstance(error, httpx.InvalidURL) else address
    if isinstance(error, httpx.HTTPStatusError):
        return _("{host} answered {status} for {address}").format(
            host=host, status=error.response.status_code, address=address
        )
    text = re.sub(r"^\[Errno -?\d+\] ", "", str(error).strip()) or type(error).__name__
    if isinstance(error, ImportError):
        text = _("a SOCKS proxy is set, and only HTTP proxies can be used here")
    proxy = urllib.request.getproxies().get(address.partition(":")[0])
    if proxy and not urllib.request.proxy_bypass(host):
        place = proxy.rpartition("@")[2]  # without the password
        return _("{host} cannot be reached through the proxy {proxy} ({reason})").format(
            host=host, proxy=place, reason=text
        )
    return _("{host} cannot be reached ({reason})").format(host=host, reason=text)
