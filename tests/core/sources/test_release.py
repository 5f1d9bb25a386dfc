"""Official archives over a server on loopback: reached, resumed, refused when the sum is wrong."""

from __future__ import annotations

import hashlib
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.worker.conftest import MINIATURE

from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.errors import WizardError
from mpiwizard.core.host import RealHost
from mpiwizard.core.sources.release import address_of, fetch, find_archive, probe

FILE = "openmpi-5.0.11.tar.bz2"


class Server:
    """A mirror on loopback that serves one content and honours ranges; `cut` breaks off after so many bytes."""

    def __init__(self, content: bytes) -> None:
        self.content, self.cut, self.ranges = content, 0, []  # type: ignore[var-annotated]
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_arguments: object) -> None:
                """Say nothing."""

            def _answer(self, body: bool) -> None:
                if not self.path.endswith(f"/v5.0/{FILE}"):
                    self.send_error(404)
                    return
                wanted = self.headers.get("Range", "")
                outer.ranges.append(wanted)
                start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
                if start and start >= len(outer.content):
                    self.send_error(416)
                    return
                self.send_response(206 if wanted else 200)
                self.send_header("Content-Length", str(len(outer.content) - start))
                self.end_headers()
                end = outer.cut or len(outer.content)
                if body:
                    self.wfile.write(outer.content[start:end])

            def do_GET(self) -> None:
                self._answer(True)

            def do_HEAD(self) -> None:
                self._answer(False)

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.mirror = f"http://127.0.0.1:{self._server.server_port}/mirror"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(MINIATURE.read_bytes())
    yield made
    made.close()


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A context whose own recipes pin the miniature's sum for 5.0.11."""
    recipes = tmp_path / "config" / "recipes"
    recipes.mkdir(parents=True)
    sha256 = hashlib.sha256(MINIATURE.read_bytes()).hexdigest()
    (recipes / "releases.toml").write_text(
        f'[[archive]]\nrelease = "5.0.11"\nfile = "{FILE}"\nsha256 = "{sha256}"\nsources = ["this test"]\n'
        f'url = "https://download.open-mpi.org/release/open-mpi/v5.0/{FILE}"\n'
    )
    folders = Folders(tmp_path / "s", tmp_path / "c", tmp_path / "config")
    return Context(RealHost(), folders)


def quiet(_text: str) -> None:
    """Nobody listens."""


def test_a_reachable_mirror_offers_the_release_with_its_pinned_sum(context: Context, server: Server) -> None:
    offer = probe(context, Wishes(mirror=server.mirror, release="5.0.11"))
    assert (offer.reachable, offer.release, offer.size) == (True, "5.0.11", len(server.content))
    assert len(offer.sha256) == 64


def test_an_unreachable_mirror_gives_its_reason_in_one_line(context: Context, server: Server) -> None:
    server.close()
    offer = probe(context, Wishes(mirror=server.mirror, release="5.0.11"))
    assert not offer.reachable
    assert "127.0.0.1 cannot be reached" in offer.reason
    assert "\n" not in offer.reason


def test_a_mirror_without_the_file_names_status_and_address(context: Context, server: Server) -> None:
    offer = probe(context, Wishes(mirror=server.mirror, release="4.1.8"))
    assert not offer.reachable
    assert "404" in offer.reason


def test_a_nonsense_mirror_is_a_reason_not_a_crash(context: Context) -> None:
    for mirror in ("not a url", "ftp://127.0.0.1/", "http://[::1", ""):
        offer = probe(Context(context.host, context.folders, offline=True), Wishes(mirror=mirror, release="5.0.11"))
        assert not offer.reachable
        assert offer.reason


def test_a_download_is_checked_and_kept(context: Context, server: Server, tmp_path: Path) -> None:
    path, sha256 = fetch(context, "5.0.11", server.mirror, tmp_path / "d", quiet)
    assert path.read_bytes() == server.content
    assert sha256 == hashlib.sha256(server.content).hexdigest()
    assert [found.name for found in path.parent.iterdir()] == [FILE]


def test_a_broken_off_download_goes_on_where_it_was(context: Context, server: Server, tmp_path: Path) -> None:
    server.cut = 5000
    with pytest.raises(WizardError):
        fetch(context, "5.0.11", server.mirror, tmp_path / "d", quiet)
    server.cut = 0
    path, _sha256 = fetch(context, "5.0.11", server.mirror, tmp_path / "d", quiet)
    assert path.read_bytes() == server.content
    assert server.ranges == ["", "bytes=5000-"]


def test_a_wrong_sum_names_both_and_keeps_nothing(context: Context, server: Server, tmp_path: Path) -> None:
    wrong = server.content[:-1] + b"?"
    expected = hashlib.sha256(server.content).hexdigest()
    server.content = wrong
    with pytest.raises(WizardError) as caught:
        fetch(context, "5.0.11", server.mirror, tmp_path / "d", quiet)
    assert expected in str(caught.value)
    assert hashlib.sha256(wrong).hexdigest() in str(caught.value)
    assert list((tmp_path / "d").iterdir()) == []


def test_a_stale_part_longer_than_the_file_is_thrown_away(context: Context, server: Server, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / f"{FILE}.part").write_bytes(b"x" * 10)
    path, _sha256 = fetch(context, "5.0.11", server.mirror, tmp_path / "d", quiet)
    assert path.read_bytes() == server.content


@pytest.mark.parametrize("rest", [0, 1000])
def test_a_part_as_long_as_the_file_or_longer_is_fetched_anew(
    context: Context, server: Server, tmp_path: Path, rest: int
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / f"{FILE}.part").write_bytes(server.content + b"x" * rest)
    path, _sha256 = fetch(context, "5.0.11", server.mirror, tmp_path / "d", quiet)
    assert path.read_bytes() == server.content


def test_a_kept_download_that_was_spoiled_is_fetched_again(context: Context, server: Server, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / FILE).write_bytes(b"spoiled")
    path, _sha256 = fetch(context, "5.0.11", server.mirror, tmp_path / "d", quiet)
    assert path.read_bytes() == server.content


def test_two_runs_that_want_the_same_archive_both_get_it_from_one_download(
    context: Context, server: Server, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(fetch, context, "5.0.11", server.mirror, tmp_path / "d", quiet) for _ in range(2)]
    assert [future.result()[0].read_bytes() == server.content for future in asked] == [True, True]
    assert server.ranges == [""]


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("http://user:secret@127.0.0.1:9", "through the proxy 127.0.0.1:9 (Connection refused)"),
        ("socks5://127.0.0.1:9", "only HTTP proxies"),
        ("gopher://127.0.0.1", "gopher"),
    ],
)
def test_a_proxy_that_does_not_work_is_named_without_its_password(
    proxy: str, words: str
) -> None:
    program = (
        "from mpiwizard.core.context import Context, Wishes; from mpiwizard.core.sources.release import probe\n"
        "print(probe(Context.of_person(), Wishes(mirror='http://mirror.invalid/', release='5.0.11')).reason)\n"
    )
    environment = {**os.environ, "http_proxy": proxy, "all_proxy": proxy, "no_proxy": ""}
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert words in told.stdout
    assert "secret" not in told.stdout


def test_a_mirror_keeps_the_official_folders(context: Context) -> None:
    archive = find_archive(context, "4.1.8")
    assert archive is not None
    assert address_of(archive, "http://mirror/open-mpi/") == f"http://mirror/open-mpi/v4.1/{archive.file}"
    assert address_of(archive, "").startswith("https://download.open-mpi.org/release/open-mpi/v4.1/")
