"""Detection sends nothing: no packet leaves a network in which everything could leave."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TUI = Path(__file__).resolve().parents[3] / "tui"
# A network of its own in which every address is reached through d0, and IPv6 does not speak up by itself.
PREPARE = """
echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add d0 type veth peer name d1 && ip addr add 192.0.2.2/24 dev d0 && ip link set lo up &&
ip link set d1 up && ip link set d0 up && ip neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev d0 &&
ip route add default via 192.0.2.1 dev d0 || exit 77
"$@" > /dev/null
grep d0: /proc/net/dev
"""
SEND = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('169.254.169.254', 80))"


def packets_sent(folder: Path, *command: str) -> int:
    """Packets that left d0 while a command ran in a network of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(TUI),
        "XDG_STATE_HOME": str(folder),
        "XDG_CACHE_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }
    result = subprocess.run(
        ["unshare", "--map-root-user", "--net", "--mount", "--mount-proc", "--pid", "--fork",
         "sh", "-c", PREPARE, "sh", sys.executable, *command],
        capture_output=True, text=True, timeout=60, check=False, env=environment,
    )  # fmt: skip
    if "d0:" not in result.stdout:
        pytest.skip(f"no network of our own can be made here: {result.stderr.strip()}")
    return int(result.stdout.split("d0:")[1].split()[9])


def test_a_packet_would_be_seen(tmp_path: Path) -> None:
    assert packets_sent(tmp_path, "-c", SEND) > 0


@pytest.mark.parametrize("arguments", [("detect", "--json"), ("capture", "-o", "box.tar.gz")])
def test_detection_sends_no_packet(arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert packets_sent(tmp_path, "-m", "mpiwizard", *arguments) == 0
