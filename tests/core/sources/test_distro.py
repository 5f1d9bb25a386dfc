"""The box's own package sources become source-package lists of ours; other vendors are left out."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.errors import WizardError
from mpiwizard.core.host import RealHost
from mpiwizard.core.recordings import RecordedHost
from mpiwizard.core.sources.distro import _alone, _from_lines, _from_stanzas, probe, source_lists

DEBIAN = """# a comment
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main
Enabled: no
"""
VENDOR = "Types: deb\nURIs: https://vendor.example\nSuites: nodistro\nComponents: main\n"


def recorded(folder: Path, files: dict[str, str]) -> RecordedHost:
    for name, content in files.items():
        path = folder / "root" / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return RecordedHost(folder)


def test_stanzas_of_this_release_are_turned_and_keep_their_keyring(tmp_path: Path) -> None:
    host = recorded(
        tmp_path,
        {
            "/etc/os-release": 'VERSION_CODENAME="bookworm"\n',
            "/etc/apt/sources.list.d/debian.sources": DEBIAN,
            "/etc/apt/sources.list.d/vendor.sources": VENDOR,
            "/etc/apt/sources.list.d/old.sources.save": DEBIAN,
        },
    )
    assert source_lists(host) == {
        "debian.sources": "Types: deb-src\nURIs: http://mirror.example/debian\n"
        "Suites: bookworm bookworm-updates\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    }


def test_lines_keep_their_options_but_the_architecture() -> None:
    text = (
        "deb [arch=amd64 signed-by=/k.gpg] http://m/ubuntu jammy main universe # comment\n"
        "deb [arch=amd64] http://m/ubuntu jammy-updates main\n"
        "deb-src http://m/ubuntu jammy main\n# deb http://m/ubuntu jammy main\ndeb http://other/ stable main\n"
    )
    assert _from_lines(text, "jammy").splitlines() == [
        "deb-src [ signed-by=/k.gpg] http://m/ubuntu jammy main universe",
        "deb-src http://m/ubuntu jammy-updates main",
    ]


@given(st.text(alphabet=st.sampled_from("deb [arch=:\n Types#Suites:bookworm/-src\t"), max_size=200))
def test_no_source_list_can_stop_the_reader(text: str) -> None:
    _from_lines(text, "bookworm")
    _from_stanzas(text, "bookworm")


def test_a_recorded_box_is_not_asked(tmp_path: Path) -> None:
    context = Context(RecordedHost(tmp_path), Folders(tmp_path / "s", tmp_path / "c", tmp_path / "k"))
    offer = probe(context, Wishes())
    assert not offer.reachable
    assert offer.reason
    assert not (tmp_path / "s").exists()


def test_three_at_once_each_get_an_answer_from_apt(tmp_path: Path) -> None:
    """With an apt that takes its time and wants the source lists to be there all the while."""
    apt = tmp_path / "bin" / "apt-get"
    apt.parent.mkdir()
    apt.write_text(
        "#!/bin/sh\n"
        'case "$1" in update) sleep 0.2 ;; esac\n'
        f"echo \"'http://m/o' openmpi_4.1.4.orig.tar.xz 5 SHA256:{'a' * 64}\"\n"
        'cd "$(dirname "$APT_CONFIG")"\n'
        'for list in sources/*; do [ -s "$list" ] || { echo "E: gone" >&2; exit 100; }; done\n'
    )
    apt.chmod(0o755)
    (apt.parent / "apt-config").symlink_to("/bin/true")
    host = RealHost({**os.environ, "PATH": f"{apt.parent}:{os.environ['PATH']}"})
    if not source_lists(host):
        pytest.skip("this box has no apt sources")
    context = Context(host, Folders(tmp_path / "s", tmp_path / "c", tmp_path / "k"))
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _number: probe(context, Wishes()), range(3)))
    assert [answer.reason for answer in answers if not answer.reachable] == []


def test_who_waits_too_long_for_apt_is_told_that_another_uses_it(tmp_path: Path) -> None:
    context = Context(RealHost(), Folders(tmp_path / "s", tmp_path / "c", tmp_path / "k"))
    with _alone(context, 0.1), pytest.raises(WizardError, match="another mpiwizard"), _alone(context, 0.1):
        pass
