"""Interfaces, routes, the network for TCP, and the host's name: on made-up boxes, and on interfaces made for real."""

from __future__ import annotations

import json
import os
import shutil
import string
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.detect.boxes import box, context_of, recorded, texts_with

from mpiwizard.core.context import Wishes
from mpiwizard.core.detect import hostname, interfaces, network, routes
from mpiwizard.core.detect.facts import Probe, Survey, make_fact
from mpiwizard.core.detect.interfaces import Interface
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.host import Host

PROBES = (*interfaces.PROBES, *routes.PROBES, *network.PROBES, *hostname.PROBES)


def look(host: Host, layer: str = "none") -> Machine:
    """What is told of a box's network, inside such a layer."""

    def read_layer(survey: Survey) -> list[Fact]:
        return [make_fact("platform.layer", layer, layer)]

    return survey_machine(context_of(host), Wishes(), None, (Probe(("platform.layer",), read_layer), *PROBES), host)


def interface(name: str, *, driver: str = "", links: Mapping[str, str] | None = None, **files: str) -> dict[str, str]:
    """The files of an interface that is up, in /sys/class/net; a value that begins with `->` is a link."""
    files = {"type": "1", "flags": "0x1003", "operstate": "up", "ifindex": "2", "iflink": "2", **files}
    entries = {f"/sys/class/net/{name}/{file.replace('__', '/')}": text + "\n" for file, text in files.items()}
    if driver:
        entries[f"/sys/class/net/{name}/device/driver"] = f"->/sys/bus/drivers/{driver}"
    return entries | {f"/sys/class/net/{name}/{link}": f"->{target}" for link, target in (links or {}).items()}


def net_box(
    folder: Path,
    *parts: Mapping[str, str],
    addresses: Mapping[str, str] | None = None,
    default: str = "",
    files: Mapping[str, str] | None = None,
    commands: Mapping[str, Mapping[str, Any]] | None = None,
) -> Host:
    """A box with such interfaces and addresses (one or several with blanks between), and a default route."""
    entries = {path: text for part in parts for path, text in part.items()} | dict(files or {})
    entries["/proc/net/route"] = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n" + (
        f"{default} 00000000 0101A8C0 0003 0 0 100 00000000 0 0 0\n" if default else ""
    )
    told = [
        {
            "ifname": name,
            "addr_info": [
                {"local": text.partition("/")[0], "prefixlen": int(text.partition("/")[2]), "scope": "global"}
                for text in texts.split()
            ],
        }
        for name, texts in (addresses or {}).items()
    ]
    asked = {"ip -json addr": {"output": json.dumps(told)}} | dict(commands or {})
    host = box(folder, {path: text for path, text in entries.items() if not text.startswith("->")}, asked)
    for path, text in entries.items():
        if text.startswith("->"):
            link = folder / "root" / path.lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(text[2:])
    return host


def by_name(machine: Machine) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in machine.value("network.interfaces", [])}


LOOPBACK = interface("lo", type="772", flags="0x9", operstate="unknown")


# --- what an interface is ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "files", "driver", "kind"),
    [
        ("lo", {"type": "772"}, "", "loopback"),
        ("enp1s0", {}, "ixgbe", "physical"),
        ("ens5", {}, "ena", "virtual-card"),
        ("ens4", {}, "gve", "virtual-card"),
        ("ens4", {}, "gvnic", "virtual-card"),
        ("eth0", {}, "virtio_net", "virtual-card"),
        ("eth0", {}, "hv_netvsc", "virtual-card"),
        ("eth0", {}, "mana", "virtual-card"),
        ("ens192", {}, "vmxnet3", "virtual-card"),
        ("eth0", {}, "vif", "virtual-card"),
        ("ens3", {}, "ixgbevf", "virtual-function"),
        ("enp1s0v0", {"device__physfn__vendor": "0x8086"}, "mlx5_core", "virtual-function"),
        ("wlp2s0", {"uevent": "DEVTYPE=wlan"}, "iwlwifi", "wireless"),
        ("ib0", {"type": "32"}, "mlx5_core", "infiniband"),
        ("br0", {"uevent": "DEVTYPE=bridge"}, "", "bridge"),
        ("virbr0", {}, "", "bridge"),
        ("docker0", {"uevent": "DEVTYPE=bridge"}, "", "docker"),
        ("br-0123456789ab", {"bridge__bridge_id": "8000"}, "", "docker"),
        ("vethab12", {}, "", "veth"),
        ("eth0", {"ifindex": "2", "iflink": "41"}, "", "veth"),
        ("eno1.7", {"uevent": "INTERFACE=eno1.7\nDEVTYPE=vlan", "ifindex": "5", "iflink": "2"}, "", "vlan"),
        ("bond0", {"uevent": "DEVTYPE=bond"}, "", "bond"),
        ("wg0", {"type": "65534", "uevent": "DEVTYPE=wireguard"}, "", "vpn"),
        ("tailscale0", {"type": "65534", "tun_flags": "0x1001"}, "", "vpn"),
        ("ztabcdefgh", {"tun_flags": "0x1002"}, "", "vpn"),
        ("tun0", {"type": "65534", "tun_flags": "0x1001"}, "", "vpn"),
        ("tap0", {"tun_flags": "0x1002"}, "", "tunnel"),
        ("tunl0", {"type": "768"}, "", "tunnel"),
        ("sit0", {"type": "776"}, "", "tunnel"),
        ("flannel.1", {"uevent": "DEVTYPE=vxlan"}, "", "tunnel"),
        ("vxlan.calico", {"uevent": "DEVTYPE=vxlan"}, "", "tunnel"),
        ("dummy0", {}, "", "dummy"),
        ("ifb0", {}, "", "dummy"),
        ("br-ex", {}, "", "bridge"),
        ("ovs0", {}, "", "virtual"),
    ],
)
def test_what_an_interface_is_shows_in_its_files(
    tmp_path: Path, name: str, files: dict[str, str], driver: str, kind: str
) -> None:
    host = net_box(tmp_path, interface(name, driver=driver, **files))
    assert by_name(look(host))[name]["kind"] == kind
    assert by_name(look(host))[name]["driver"] == driver


@pytest.mark.parametrize(
    ("speed", "value"), [("25000", 25000), ("-1", None), ("0", None), ("4294967295", None), ("fast", None)]
)
def test_a_speed_that_the_driver_does_not_know_is_unknown(tmp_path: Path, speed: str, value: int | None) -> None:
    told = by_name(look(net_box(tmp_path, interface("eth0", driver="igb", speed=speed, mtu="9001"))))["eth0"]
    assert (told["speed"], told["mtu"]) == (value, 9001)


def test_the_fixed_speed_of_a_pair_is_no_speed(tmp_path: Path) -> None:
    host = net_box(tmp_path, interface("eth0", iflink="9", speed="10000"), addresses={"eth0": "172.17.0.2/16"})
    assert by_name(look(host))["eth0"]["speed"] is None
    assert look(host).fact("network.interfaces").text == "eth0 172.17.0.2/16"


def test_a_card_of_azure_below_another_is_its_virtual_function(tmp_path: Path) -> None:
    host = net_box(
        tmp_path,
        interface("eth0", driver="hv_netvsc"),
        interface("enP1s1", driver="mlx5_core", links={"master": "../eth0"}),
        addresses={"eth0": "10.0.0.5/24"},
        default="eth0",
    )
    function = by_name(look(host))["enP1s1"]
    assert (function["kind"], function["master"]) == ("virtual-function", "eth0")
    assert "eth0, which has the address" in function["note"]


@pytest.mark.parametrize(("mirrors", "kind"), [(False, "wsl-nat"), (True, "wsl-mirrored")])
def test_under_wsl_a_card_is_its_own_or_the_pcs(tmp_path: Path, mirrors: bool, kind: str) -> None:
    extra = interface("loopback0", driver="hv_netvsc") if mirrors else {}
    kernel = {"/proc/sys/kernel/osrelease": "6.6.87.2-microsoft-standard-WSL2\n"}
    machine = look(net_box(tmp_path, interface("eth0", driver="hv_netvsc"), extra, files=kernel), "wsl2")
    assert by_name(machine)["eth0"]["kind"] == kind
    assert not mirrors or by_name(machine)["loopback0"]["note"]


@pytest.mark.parametrize(
    ("files", "addresses", "reason"),
    [
        ({}, "10.0.0.1/24", ""),
        ({"flags": "0x1002"}, "10.0.0.1/24", "down"),
        ({"operstate": "down"}, "10.0.0.1/24", "no cable"),
        ({"operstate": "unknown"}, "10.0.0.1/24", ""),
        ({}, "", "no address"),
        ({}, "169.254.3.4/16", "one cable only"),
        ({}, "fd00::7/64", "IPv6"),
    ],
)
def test_an_interface_that_leads_nowhere_says_why(
    tmp_path: Path, files: dict[str, str], addresses: str, reason: str
) -> None:
    host = net_box(tmp_path, interface("eno1", driver="igb", **files), addresses={"eno1": addresses})
    note = by_name(look(host))["eno1"]["note"]
    assert reason in note if reason else note == ""


def test_a_bridge_above_a_card_leads_out_and_one_without_a_card_does_not(tmp_path: Path) -> None:
    host = net_box(
        tmp_path,
        interface("eno1", driver="igb", links={"master": "../br0"}),
        interface("br0", uevent="DEVTYPE=bridge", brif__eno1__state="3"),
        interface("br1", uevent="DEVTYPE=bridge", brif__veth1__state="3"),
        interface("veth1"),
        addresses={"br0": "10.0.0.1/24", "br1": "10.1.0.1/24"},
        default="br0",
    )
    machine = look(host)
    assert by_name(machine)["eno1"]["note"] == "a part of br0"
    assert by_name(machine)["br1"]["note"] == "a bridge inside this box"
    assert machine.value("network.include") == "10.0.0.0/24"


def test_a_dead_loopback_is_something_to_look_at(tmp_path: Path) -> None:
    dead = interface("lo", type="772", flags="0x8", operstate="down")
    fact = look(net_box(tmp_path, dead, interface("eth0"))).fact("network.interfaces")
    assert (fact.state, fact.action) == ("attention", "sudo ip link set lo up")


def test_when_ip_does_not_end_the_addresses_come_from_proc(tmp_path: Path) -> None:
    trie = "Main:\n     |-- 192.168.1.7\n        /32 host LOCAL\n"
    connected = "Iface\neth0 0001A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n"
    six = "fd000000000000000000000000000002 04 40 00 82     eth0\nfe80000000000000000000000000000a 04 40 20 80 eth0\n"
    files = {**interface("eth0"), "/proc/net/fib_trie": trie, "/proc/net/route": connected, "/proc/net/if_inet6": six}
    machine = look(box(tmp_path, files, {"ip -json addr": {"status": "timed out"}}))
    assert by_name(machine)["eth0"]["addresses"] == ["192.168.1.7/24", "fd00::2/64"]
    assert "fib_trie" in machine.fact("network.interfaces").read_from


def test_the_row_shows_what_mpi_may_use_and_counts_the_others(tmp_path: Path) -> None:
    host = net_box(
        tmp_path,
        LOOPBACK,
        interface("docker0", uevent="DEVTYPE=bridge"),
        interface("ens5", driver="ena", speed="25000"),
        addresses={"lo": "127.0.0.1/8", "docker0": "172.17.0.1/16", "ens5": "172.31.0.9/20"},
    )
    assert look(host).fact("network.interfaces").text == "ens5 172.31.0.9/20 (ena, 25 Gbit/s) + 2 others"


# --- routes ------------------------------------------------------------------------------------------


def test_the_default_route_with_the_lowest_metric_counts() -> None:
    found = routes.parse_routes(
        "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
        "wlan0 00000000 0100A8C0 0003 0 0 600 00000000 0 0 0\n"
        "eth0 00000000 0101A8C0 0003 0 0 100 00000000 0 0 0\n"
        "down0 00000000 0101A8C0 0000 0 0 1 00000000 0 0 0\n"
        "gone0 00000000 00000000 0201 0 0 0 00000000 0 0 0\n"
        "eth0 0001A8C0 00000000 0001 0 0 100 00FFFFFF 0 0 0\n"
    )
    default = routes.default_route(found)
    assert default is not None and (default.interface, default.gateway) == ("eth0", "192.168.1.1")
    assert (str(found[-1].network), found[-1].gateway) == ("192.168.1.0/24", "")


def test_the_way_out_is_told_for_both_families(tmp_path: Path) -> None:
    zero = "0" * 32
    six = (
        f"{zero} 00 {zero} 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth0\n"
        f"{zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200       lo\n"
    )
    machine = look(net_box(tmp_path, interface("eth0"), default="eth0", files={"/proc/net/ipv6_route": six}))
    fact = machine.fact("network.route")
    assert fact.value == {
        "interface": "eth0", "gateway": "192.168.1.1", "interface6": "eth0", "gateway6": "fd00::1"
    }  # fmt: skip
    assert "00000000" in fact.raw and " lo" not in fact.raw


def test_no_way_out_is_known_and_no_file_is_not(tmp_path: Path) -> None:
    without = look(net_box(tmp_path / "a", interface("eth0"))).fact("network.route")
    assert (without.value, without.text, without.state) == (None, "none", "info")
    assert look(box(tmp_path / "b", {"/etc/nothing": ""})).fact("network.route").state == "unknown"


def test_an_address_without_any_route_is_a_table_that_is_not_shown(tmp_path: Path) -> None:
    machine = look(net_box(tmp_path, interface("eth0"), addresses={"eth0": "192.168.1.7/24"}))
    assert machine.fact("network.route").state == "unknown"
    assert machine.value("network.include") == "192.168.1.0/24"


def test_facts_name_only_the_files_that_were_there(tmp_path: Path) -> None:
    files = {"/etc/hostname": "pc\n", "/proc/net/route": "Iface\neth0 00000000 0101A8C0 0003 0 0 1 00000000 0 0 0\n"}
    machine = look(box(tmp_path, files))
    assert machine.fact("network.route").read_from == "/proc/net/route"
    assert machine.fact("network.hostname").read_from == "/etc/hostname"


# --- the network for TCP -----------------------------------------------------------------------------


def two_cards(folder: Path, one: tuple[str, str, str], other: tuple[str, str, str], default: str = "a0") -> Fact:
    """What is concluded of two cards, a0 and b0, each with a driver, a speed and addresses."""
    host = net_box(
        folder,
        interface("a0", driver=one[0], speed=one[1]),
        interface("b0", driver=other[0], speed=other[1]),
        addresses={"a0": one[2], "b0": other[2]},
        default=default,
    )
    return look(host).fact("network.include")


def test_the_faster_of_two_networks_is_taken_and_the_default_route_named(tmp_path: Path) -> None:
    fact = two_cards(tmp_path, ("igb", "1000", "10.0.0.1/24"), ("mlx5_core", "100000", "10.9.0.1/16"))
    assert fact.value == "10.9.0.0/16"
    assert "100 Gbit/s" in fact.meaning
    assert fact.contradictions == ("The default route goes through a0.",)
    assert fact.rests_on == ("network.interfaces", "network.route")


def test_a_private_network_is_taken_before_a_faster_public_one_which_is_named(tmp_path: Path) -> None:
    fact = two_cards(tmp_path, ("igb", "10000", "8.8.4.4/24"), ("igb", "1000", "10.9.0.1/16"))
    assert fact.value == "10.9.0.0/16"
    assert "a0 is faster, 10 Gbit/s, but its address is public." in fact.contradictions


def test_the_first_address_of_a_card_tells_whether_it_is_public(tmp_path: Path) -> None:
    # A cloud adds a private address to its public card, which other machines cannot reach.
    fact = two_cards(tmp_path, ("virtio_net", "-1", "8.8.4.4/24 10.1.0.5/16"), ("virtio_net", "-1", "10.9.0.1/20"))
    assert fact.value == "10.9.0.0/20"


def test_the_default_route_decides_where_no_speed_is_known(tmp_path: Path) -> None:
    one, other = ("virtio_net", "-1", "10.0.0.1/24"), ("virtio_net", "-1", "10.9.0.1/16")
    assert two_cards(tmp_path / "a", one, other, default="a0").value == "10.0.0.0/24"
    fact = two_cards(tmp_path / "b", one, other, default="b0")
    assert (fact.value, fact.contradictions) == ("10.9.0.0/16", ())


def test_a_cable_is_taken_before_a_faster_wireless_network(tmp_path: Path) -> None:
    host = net_box(
        tmp_path,
        interface("wlan0", driver="iwlwifi", uevent="DEVTYPE=wlan", speed="2400"),
        interface("eno1", driver="igb", speed="1000"),
        addresses={"wlan0": "192.168.7.2/24", "eno1": "192.168.8.2/24"},
        default="wlan0",
    )
    assert look(host).value("network.include") == "192.168.8.0/24"


def test_a_wireless_card_in_the_network_of_the_cable_is_left_out(tmp_path: Path) -> None:
    host = net_box(
        tmp_path,
        interface("wlan0", driver="iwlwifi", uevent="DEVTYPE=wlan"),
        interface("eno1", driver="igb", speed="1000"),
        addresses={"wlan0": "192.168.8.3/24", "eno1": "192.168.8.2/24"},
        default="eno1",
    )
    fact = look(host).fact("network.include")
    assert (fact.value, fact.text, fact.state) == (None, "by its name, eno1", "info")
    assert fact.action.endswith("--mca btl_tcp_if_include eno1")
    assert "wlan0" in fact.contradictions[0]


@pytest.mark.parametrize("name", ["vboxnet0", "vmnet8"])
def test_a_network_for_guests_of_this_box_leads_nowhere(tmp_path: Path, name: str) -> None:
    machine = look(net_box(tmp_path, LOOPBACK, interface(name), addresses={name: "192.168.56.1/24"}))
    assert (machine.value("network.include"), machine.fact("network.include").text) == (None, "none")


def test_a_card_of_the_host_is_not_the_containers_own(tmp_path: Path) -> None:
    wireless = interface("wlan0", driver="iwlwifi", uevent="DEVTYPE=wlan")
    pair = interface("eth0", iflink="77")
    shared = look(net_box(tmp_path / "a", wireless, addresses={"wlan0": "192.168.8.3/24"}), "podman")
    own = look(net_box(tmp_path / "b", pair, addresses={"eth0": "172.17.0.2/16"}), "podman")
    assert ["--network=host" in machine.fact("network.include").meaning for machine in (shared, own)] == [False, True]


def test_cards_of_the_same_network_are_named_together(tmp_path: Path) -> None:
    fact = two_cards(tmp_path, ("ena", "-1", "172.31.0.4/20"), ("ena", "-1", "172.31.0.5/20"))
    assert (fact.value, fact.text) == ("172.31.0.0/20", "172.31.0.0/20, on a0 and b0")
    assert "only network" in fact.meaning


def test_decoys_are_left_out_each_with_its_reason(tmp_path: Path) -> None:
    host = net_box(
        tmp_path,
        LOOPBACK,
        interface("docker0", uevent="DEVTYPE=bridge"),
        interface("virbr0", uevent="DEVTYPE=bridge"),
        interface("tun0", type="65534", tun_flags="0x1001"),
        interface("eno2", driver="igb", flags="0x1002", speed="100000"),
        interface("usb0", driver="cdc_ether", speed="100000"),
        interface("eno1", driver="igb", speed="1000"),
        addresses={
            "lo": "127.0.0.1/8", "docker0": "172.17.0.1/16", "virbr0": "192.168.122.1/24", "tun0": "10.8.0.2/24",
            "eno2": "10.3.0.1/24", "usb0": "169.254.1.1/16", "eno1": "10.0.0.5/24",
        },
        default="tun0",
    )  # fmt: skip
    fact = look(host).fact("network.include")
    assert fact.value == "10.0.0.0/24"
    for decoy in ("docker0 (a bridge of Docker inside this box)", "virbr0 (a bridge inside this box)", "tun0 (a VPN)"):
        assert decoy in fact.meaning
    assert "btl_tcp_if_include 10.0.0.0/24" in fact.action


def test_a_decoy_inside_the_same_network_makes_the_name_the_better_choice(tmp_path: Path) -> None:
    host = net_box(
        tmp_path,
        interface("docker0", uevent="DEVTYPE=bridge"),
        interface("eno1", driver="igb"),
        addresses={"docker0": "172.17.0.1/16", "eno1": "172.20.0.1/12"},
        default="eno1",
    )
    fact = look(host).fact("network.include")
    assert (fact.value, fact.state) == (None, "attention")
    assert "docker0" in fact.contradictions[0] and fact.action.endswith("btl_tcp_if_include eno1")


def test_an_address_without_a_network_is_given_by_the_interfaces_name(tmp_path: Path) -> None:
    host = net_box(tmp_path, interface("ens4", driver="gve"), addresses={"ens4": "10.128.0.2/32"}, default="ens4")
    fact = look(host).fact("network.include")
    assert (fact.value, fact.text) == (None, "by its name, ens4")
    assert fact.action.endswith("btl_tcp_if_include ens4")


def test_a_vpn_is_taken_only_where_nothing_else_leads_out(tmp_path: Path) -> None:
    vpn = interface("tun0", type="65534", tun_flags="0x1001")
    host = net_box(tmp_path, vpn, addresses={"tun0": "10.8.0.2/24"}, default="tun0")
    fact = look(host).fact("network.include")
    assert (fact.value, fact.meaning) == ("10.8.0.0/24", "It is a VPN, but nothing else leads out.")


@pytest.mark.parametrize(
    ("addresses", "words"), [({"eno1": "fd00::7/64"}, "--enable-ipv6"), ({}, "One box needs none")]
)
def test_a_box_without_a_network_for_tcp_says_so(tmp_path: Path, addresses: dict[str, str], words: str) -> None:
    fact = look(net_box(tmp_path, interface("eno1", driver="igb"), addresses=addresses)).fact("network.include")
    assert (fact.value, fact.text) == (None, "none")
    assert words in fact.meaning


def test_a_container_of_docker_says_that_others_do_not_reach_it(tmp_path: Path) -> None:
    host = net_box(tmp_path, interface("eth0", iflink="9"), addresses={"eth0": "172.17.0.2/16"}, default="eth0")
    assert "--network=host" in look(host, "docker").fact("network.include").meaning
    assert "--network=host" not in look(host, "none").fact("network.include").meaning


def test_without_interfaces_nothing_is_concluded(tmp_path: Path) -> None:
    machine = look(box(tmp_path, {"/etc/nothing": ""}))
    assert machine.fact("network.interfaces").state == machine.fact("network.include").state == "unknown"


# --- the network mode of WSL -------------------------------------------------------------------------


def mode_of(folder: Path, answer: Mapping[str, Any] | None, *parts: Mapping[str, str]) -> Fact:
    files = {"/usr/bin/wslinfo": ""} if answer is not None else {}
    commands = {"wslinfo --networking-mode": answer} if answer is not None else {}
    return look(net_box(folder, *parts, files=files, commands=commands), "wsl2").fact("network.mode")


def test_each_mode_is_told_and_the_mirrored_one_is_something_to_look_at(tmp_path: Path) -> None:
    states = {}
    for mode in ("nat", "mirrored", "bridged", "virtioproxy", "none"):
        fact = mode_of(tmp_path / mode, {"output": mode + "\n"})
        assert (fact.value, fact.raw) == (mode, mode)
        states[mode] = fact.state
    assert [mode for mode, state in states.items() if state == "attention"] == ["mirrored"]


@pytest.mark.parametrize("answer", [None, {"status": "timed out"}, {"output": "usage: wslinfo\n", "status": 1}, {}])
def test_a_mode_that_nobody_tells_is_unknown_with_a_hint(tmp_path: Path, answer: Mapping[str, Any] | None) -> None:
    fact = mode_of(tmp_path, answer, interface("eth0"), interface("loopback0"))
    assert fact.state == "unknown"
    assert "loopback0" in fact.text


def test_an_interface_that_speaks_against_the_mode_is_named(tmp_path: Path) -> None:
    fact = mode_of(tmp_path, {"output": "nat\n"}, interface("loopback0"))
    assert (fact.value, len(fact.contradictions)) == ("nat", 1)


def test_the_mode_is_told_nowhere_but_in_wsl(tmp_path: Path) -> None:
    host = net_box(tmp_path, files={"/usr/bin/wslinfo": ""}, commands={"wslinfo --networking-mode": {"output": "nat"}})
    assert "network.mode" not in look(host, "docker").values


# --- the host's name ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hosts", "order", "addresses", "state"),
    [
        ("127.0.0.1 localhost\n127.0.1.1 Node1.example.org node1 # here\n", "files dns", ["127.0.1.1"], "info"),
        ("10.0.0.1 node1\n10.0.0.2 node2\n", "files dns", ["10.0.0.1"], "info"),
        ("10.0.0.9 node1\n", "files dns", ["10.0.0.9"], "attention"),
        ("127.0.0.1 localhost\n", "files dns", [], "info"),
        ("127.0.0.1 localhost\n", "files", [], "attention"),
        ("127.0.0.1 localhost\n", "files myhostname", [], "info"),
        ("127.0.1.1 node1\n", "dns [!UNAVAIL=return]", [], "info"),
        ("# 127.0.1.1 node1\nrubbish node1\n", "files [NOTFOUND=return] dns", [], "info"),
        ("::1 node1\n127.0.1.1 node1\n", "", ["::1", "127.0.1.1"], "info"),
    ],
)
def test_the_hosts_name_is_looked_up_in_the_files_alone(
    tmp_path: Path, hosts: str, order: str, addresses: list[str], state: str
) -> None:
    trie = "Local:\n  |-- 10.0.0.1\n     /32 host LOCAL\n  |-- 127.0.0.1\n     /32 host LOCAL\n"
    files = {"/proc/sys/kernel/hostname": "node1\n", "/etc/hosts": hosts, "/proc/net/fib_trie": trie}
    if order:
        files["/etc/nsswitch.conf"] = f"passwd: files\nhosts:   {order}\n"
    fact = look(box(tmp_path, files)).fact("network.hostname")
    assert (fact.value["name"], fact.value["addresses"], fact.state) == ("node1", addresses, state)
    assert fact.state == "info" or fact.action
    assert fact.raw.startswith("node1")


def test_a_loopback_address_is_said_to_matter_to_several_boxes_only(tmp_path: Path) -> None:
    files = {"/proc/sys/kernel/hostname": "pc\n", "/etc/hosts": "127.0.1.1 pc\n"}
    assert "right for one box" in look(box(tmp_path, files)).fact("network.hostname").meaning


# --- whatever a file holds ---------------------------------------------------------------------------

PARSERS = (
    routes.parse_routes, routes.parse_routes6, interfaces.parse_local_addresses, interfaces.parse_addresses6,
    interfaces.addresses_by_ip, hostname.parse_order, lambda text: hostname.parse_hosts(text, "node1"),
)  # fmt: skip
texts = texts_with(
    "eth0", "00000000", "0003", "f" * 32, "0" * 32, "00", "80", "|--", "10.0.0.1", "/32 host LOCAL", "hosts:", "[",
    "]", "node1", "127.0.0.1", "999.1.1.1", "\n", " ", "\t", "#", '[{"ifname":', '"addr_info":', "[1]}]", "-1", "²",
)  # fmt: skip


@settings(max_examples=100)
@given(text=texts)
def test_no_text_makes_a_parser_of_the_network_fail(text: str) -> None:
    for parse in PARSERS:
        parse(text)


json_values = st.recursive(
    st.none() | st.integers() | st.sampled_from(["ifname", "local", "::1", "10.0.0.1", "link"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["ifname", "addr_info", "local", "prefixlen", "scope"]), inner, max_size=5),
)


@settings(max_examples=100)
@given(json_values)
def test_no_json_makes_the_reading_of_ip_fail(value: object) -> None:
    for name, addresses in interfaces.addresses_by_ip(json.dumps(value)).items():
        assert isinstance(name, str) and all("/" in address for address in addresses)


@settings(max_examples=100)
@given(st.text(string.ascii_lowercase + "-", min_size=1), st.ip_addresses())
def test_a_name_in_the_hosts_file_is_found_again(name: str, address: Any) -> None:
    assert hostname.parse_hosts(f"10.9.9.9 9other\n{address}\tx9 {name.upper()} y9\n", name) == [str(address)]


candidates = st.builds(
    Interface,
    name=st.sampled_from(["a0", "b0", "c0", "d0"]),
    kind=st.sampled_from(["physical", "virtual-card", "wireless", "veth", "vpn"]),
    up=st.just(True),
    addresses=st.lists(st.sampled_from(["10.0.0.1/24", "8.8.8.8/24", "fd00::1/64", "169.254.0.1/16"]), max_size=2),
    speed=st.one_of(st.none(), st.integers(1, 400000)),
    note=st.sampled_from(["", "", "a VPN"]),
)


@settings(max_examples=100)
@given(st.lists(candidates, max_size=5, unique_by=lambda each: each.name), st.sampled_from(["a0", "b0", None]))
def test_the_chosen_network_is_never_worse_than_another(found: list[Interface], default: str | None) -> None:
    chosen = network.find_candidates(found, default)
    fit = [each for each in found if not each.note and each.networks]
    assert len(chosen) == len(fit) or (not fit and len(chosen) <= 1)
    assert all(chosen[0].order <= other.order for other in chosen)


# --- on interfaces made for real ---------------------------------------------------------------------

MADE = """
mount -t sysfs sysfs /sys && ip link set lo up
ip link add br0 type bridge
ip link add docker0 type bridge
ip addr add 172.17.0.1/16 dev docker0
ip link set docker0 up
ip link add near type veth peer name far
ip link set far up
ip addr add 10.1.2.3/24 dev near
ip link set near mtu 9000 up
ip link add port type veth peer name end
ip link set port master br0 up
ip link set end up
ip addr add 192.168.9.1/24 dev br0
ip link set br0 up
ip link add link near name near.7 type vlan id 7
ip link add vx0 type vxlan id 3 dstport 4789 local 127.0.0.1
ip tuntap add tun9 mode tun
ip tuntap add tap9 mode tap
ip route add default via 10.1.2.1
exec "$PYTHON" -c "$ASK"
"""
ASK = """
import json
from tests.core.detect.test_network import look
from mpiwizard.core.host import RealHost
machine = look(RealHost())
print(json.dumps({fact.id: [fact.value, fact.meaning] for fact in machine.facts}))
"""


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """What detection says in a namespace of its own with interfaces of many kinds."""
    if not all(map(shutil.which, ("unshare", "ip", "mount"))):
        pytest.skip("unshare, ip or mount is not here")
    if subprocess.run(["unshare", "-nm", "mount", "-t", "sysfs", "sysfs", "/sys"], capture_output=True).returncode:
        pytest.skip("namespaces may not be made here")
    root = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "PYTHON": sys.executable, "ASK": ASK, "PYTHONPATH": f"{root}:{root / 'tui'}"}
    done = subprocess.run(
        ["unshare", "-nm", "sh", "-c", MADE], capture_output=True, text=True, timeout=60, env=environment, cwd=root
    )
    assert done.stdout, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_made_interfaces_are_told_apart(made: dict[str, Any]) -> None:
    kinds = {each["name"]: each["kind"] for each in made["network.interfaces"][0]}
    expected = {
        "lo": "loopback", "br0": "bridge", "docker0": "docker", "near": "veth", "far": "veth", "port": "veth",
        "near.7": "vlan", "vx0": "tunnel", "tun9": "vpn", "tap9": "tunnel",
    }  # fmt: skip
    assert {name: kinds[name] for name in expected if name in kinds} == {
        name: kind for name, kind in expected.items() if name in kinds
    }
    assert {"lo", "br0", "docker0", "near", "port"} <= set(kinds)


def test_a_made_interface_is_read_with_its_address_its_mtu_and_its_bridge(made: dict[str, Any]) -> None:
    told = {each["name"]: each for each in made["network.interfaces"][0]}
    assert (told["near"]["addresses"], told["near"]["mtu"], told["near"]["up"]) == (["10.1.2.3/24"], 9000, True)
    assert (told["port"]["master"], told["port"]["note"]) == ("br0", "a part of br0")
    assert told["docker0"]["note"] and told["br0"]["note"] == "a bridge inside this box"


def test_the_made_network_is_chosen_and_the_made_bridges_are_left_out(made: dict[str, Any]) -> None:
    value, meaning = made["network.include"]
    assert value == "10.1.2.0/24"
    assert "docker0" in meaning and "br0" in meaning
    assert made["network.route"][0]["gateway"] == "10.1.2.1"


def test_recorded_machines_keep_their_networks() -> None:
    assert recorded("azure-d4").value("network.include") == "10.0.0.0/24"
    assert recorded("ec2-efa").value("network.include") == "172.31.16.0/20"
