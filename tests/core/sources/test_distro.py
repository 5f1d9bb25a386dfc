"""The box's own package sources become source-package lists of ours; other vendors are left out."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.host import RecordedHost
from mpiwizard.core.sources.distro import _from_lines, _from_stanzas, probe, source_lists

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
