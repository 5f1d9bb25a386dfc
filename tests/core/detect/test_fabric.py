"""RDMA devices, and libfabric and UCX: found, told apart, and asked without waiting for them."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.detect.boxes import box, context_of, recorded, texts_with

from mpiwizard.core.context import Wishes
from mpiwizard.core.detect import fabric, kernel, libraries
from mpiwizard.core.detect.facts import Survey
from mpiwizard.core.detect.headline import headline
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.host import Host, RealHost
from mpiwizard.core.recordings import RecordedHost

PROBES = (*fabric.PROBES, *libraries.PROBES)
UVERBS = {"/dev/infiniband/uverbs0": "", "/sys/class/here": ""}


def look(host: Host, patience: float = 2.0) -> Machine:
    context = msgspec.structs.replace(context_of(host), patience=patience)
    return survey_machine(context, Wishes(), None, PROBES, host)


def rdma_box(
    folder: Path,
    files: Mapping[str, str],
    drivers: Mapping[str, str] | None = None,
    commands: Mapping[str, Mapping[str, Any]] | None = None,
    environment: Mapping[str, str] | None = None,
) -> RecordedHost:
    """A box with these files below /sys/class/infiniband or anywhere (`/…`), and a driver for each device."""
    anywhere = {path if path[0] == "/" else f"{fabric.RDMA}/{path}": text for path, text in files.items()}
    host = box(folder, anywhere, commands, environment)
    for device, driver in (drivers or {}).items():
        link = folder / "root" / fabric.RDMA[1:] / device / "device/driver"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../../../bus/pci/drivers/{driver}")
    return host


def port(device: str, layer: str, state: str = "4: ACTIVE", rate: str = "100 Gb/sec (4X EDR)") -> dict[str, str]:
    path = f"{device}/ports/1"
    return {f"{path}/link_layer": layer + "\n", f"{path}/state": state + "\n", f"{path}/rate": rate + "\n"}


# --- devices -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "driver", "layer", "kind"),
    [
        ("mlx5_0", "mlx5_core", "InfiniBand", "InfiniBand"),
        ("mlx5_0", "mlx5_core", "Ethernet", "RoCE"),
        ("mlx4_0", "mlx4_core", "InfiniBand", "InfiniBand"),
        ("bnxt_re0", "bnxt_en", "Ethernet", "RoCE"),
        ("mana_0", "mana", "Ethernet", "RoCE"),
        ("rdmap0s6", "efa", "Unknown", "EFA"),
        ("efa_0", "", "", "EFA"),
        ("erdma_0", "erdma", "Ethernet", "eRDMA"),
        ("irdma0", "ice", "Ethernet", "irdma"),
        ("rocep1s0", "idpf", "Ethernet", "irdma"),
        ("hfi1_0", "hfi1", "InfiniBand", "Omni-Path"),
        ("rxe0", "virtio_net", "Ethernet", "Soft-RoCE"),
        ("siw0", "mlx5_core", "Ethernet", "Soft-iWARP"),
        ("cxgb4_0", "cxgb4", "Ethernet", "RoCE"),
        ("strange0", "strange", "Unknown", "RDMA"),
        ("strange0", "", "", "RDMA"),
    ],
)
def test_the_kind_of_a_device_follows_from_its_driver_and_its_layer(
    tmp_path: Path, name: str, driver: str, layer: str, kind: str
) -> None:
    host = rdma_box(tmp_path, UVERBS | port(name, layer), {name: driver} if driver else {})
    assert look(host).value("network.fabric") == [f"{name}: {kind}"]


def test_a_software_device_that_udev_renamed_is_known_by_its_parent(tmp_path: Path) -> None:
    files = UVERBS | port("rocep0s3", "Ethernet") | {"rocep0s3/parent": "ens3\n"}
    fact = look(rdma_box(tmp_path, files, {"rocep0s3": "mlx5_core"})).fact("network.fabric")
    assert fact.value == ["rocep0s3: Soft-RoCE"]
    assert "no faster than TCP" in fact.meaning
    assert headline(Machine((fact,))).endswith("no fast fabric")


def test_a_card_for_iwarp_is_not_taken_for_roce_nor_for_a_fast_fabric(tmp_path: Path) -> None:
    files = UVERBS | port("cxgb4_0", "Ethernet") | {"cxgb4_0/node_type": "4: RNIC\n"}
    fact = look(rdma_box(tmp_path, files, {"cxgb4_0": "cxgb4"})).fact("network.fabric")
    assert fact.value == ["cxgb4_0: iWARP"]
    assert headline(Machine((fact,))).endswith("RDMA over Ethernet, speed not known")


@pytest.mark.parametrize(("yama", "told"), [("0\n", False), ("1\n", True)])
def test_yama_keeps_shared_memory_out_of_jobs_through_efa(tmp_path: Path, yama: str, told: bool) -> None:
    host = rdma_box(tmp_path, UVERBS | port("efa_0", "Unknown") | {kernel.YAMA: yama})
    fact = survey_machine(context_of(host), Wishes(), None, (*kernel.PROBES, *PROBES), host).fact("network.fabric")
    assert ("Yama is 1" in fact.meaning) == told
    assert fact.state == "ok" and "sysctl" not in fact.action


@pytest.mark.parametrize(("node", "kind"), [("1: CA", "Soft-RoCE"), ("4: RNIC", "Soft-iWARP")])
def test_a_device_below_no_hardware_is_software(tmp_path: Path, node: str, kind: str) -> None:
    files = {f"/sys/devices/virtual/infiniband/x0/{name}": text for name, text in {"node_type": node}.items()}
    host = box(tmp_path, UVERBS | files)
    link = tmp_path / "root" / fabric.RDMA[1:] / "x0"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to("../../devices/virtual/infiniband/x0")
    assert look(host).value("network.fabric") == [f"x0: {kind}"]


def test_the_layer_of_the_port_that_is_up_counts(tmp_path: Path) -> None:
    files = UVERBS | port("mlx4_0", "InfiniBand", "1: DOWN")
    files |= {path.replace("ports/1", "ports/2"): text for path, text in port("mlx4_0", "Ethernet").items()}
    assert look(rdma_box(tmp_path, files, {"mlx4_0": "mlx4_core"})).value("network.fabric") == ["mlx4_0: RoCE"]


def test_a_device_is_shown_with_its_rate_its_interface_and_what_was_read(tmp_path: Path) -> None:
    files = UVERBS | port("mlx5_0", "InfiniBand") | {"mlx5_0/device/net/ib0/type": "32"}
    fact = look(rdma_box(tmp_path, files, {"mlx5_0": "mlx5_core"})).fact("network.fabric")
    assert (fact.text, fact.state) == ("mlx5_0: InfiniBand (100 Gb/sec, ib0)", "ok")
    assert fact.raw == "mlx5_0: mlx5_core, InfiniBand, 4: ACTIVE, 100 Gb/sec (4X EDR)"


def test_a_fabric_with_no_port_up_is_something_to_look_at(tmp_path: Path) -> None:
    files = UVERBS | port("mlx5_0", "InfiniBand", "1: DOWN") | port("mlx5_1", "InfiniBand", "2: INIT")
    fact = look(rdma_box(tmp_path, files)).fact("network.fabric")
    assert (fact.state, fact.value) == ("attention", ["mlx5_0: InfiniBand", "mlx5_1: InfiniBand"])
    assert "down" in fact.text and "TCP" in fact.meaning and fact.action


def test_one_port_that_is_up_is_enough(tmp_path: Path) -> None:
    files = UVERBS | port("mlx5_0", "InfiniBand", "1: DOWN") | port("mlx5_1", "InfiniBand")
    assert look(rdma_box(tmp_path, files)).fact("network.fabric").state == "ok"


def test_missing_device_files_are_something_to_look_at(tmp_path: Path) -> None:
    fact = look(rdma_box(tmp_path, {"/sys/class/here": "", **port("mlx5_0", "InfiniBand")})).fact("network.fabric")
    assert fact.state == "attention"
    assert "--device=/dev/infiniband" in fact.action


def test_no_device_is_none_and_no_sysfs_is_unknown(tmp_path: Path) -> None:
    assert look(box(tmp_path / "a", {"/sys/class/net/lo/type": "772"})).fact("network.fabric").text == "none"
    assert look(box(tmp_path / "b", {"/etc/nothing": ""})).fact("network.fabric").state == "unknown"


@pytest.mark.parametrize(
    ("machine", "words"),
    [("ec2-efa", "security group"), ("azure-d4", "no InfiniBand"), ("alibaba", "nobody published")],
)
def test_each_fabric_says_what_it_needs_or_lacks(machine: str, words: str) -> None:
    assert words in recorded(machine).fact("network.fabric").meaning


# --- what to build with ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    ["/opt/amazon/efa", "/opt/cray/libfabric/1.22.0", "/usr/local", "/usr"],
)
def test_libfabric_is_found_where_vendors_put_it_with_its_version(tmp_path: Path, place: str) -> None:
    library = {
        f"{place}/include/rdma/fabric.h": "",
        f"{place}/lib/x86_64-linux-gnu/pkgconfig/libfabric.pc": "Name: libfabric\nVersion: 1.22.0\n",
    }
    fact = look(box(tmp_path, library)).fact("network.libfabric")
    assert (fact.value, fact.text) == (place, f"{place} 1.22.0")
    assert "Version: 1.22.0" in fact.raw and fact.read_from == f"{place}/include/rdma/fabric.h"


@pytest.mark.parametrize(
    "place",
    [
        "/opt/hpcx-v2.18-gcc/ucx",
        "/opt/mellanox/hpcx-v2.20/ucx",
        "/opt/nvidia/hpc_sdk/Linux_x86_64/24.3/comm_libs/hpcx/latest/ucx",
        "/opt/nvidia/hpc_sdk/Linux_x86_64/24.3/comm_libs/12.3/hpcx/hpcx-2.17/ucx",
        "/usr",
    ],
)
def test_ucx_is_found_where_vendors_put_it_with_its_version(tmp_path: Path, place: str) -> None:
    library = {f"{place}/include/ucp/api/ucp.h": "", f"{place}/lib/pkgconfig/ucx.pc": "Version: 1.16.0\n"}
    fact = look(box(tmp_path, library)).fact("network.ucx")
    assert (fact.value, fact.text) == (place, f"{place} 1.16.0")


def test_a_library_without_its_header_is_not_there_to_build_with(tmp_path: Path) -> None:
    machine = look(box(tmp_path, {"/usr/lib/x86_64-linux-gnu/libfabric.so.1": ""}))
    assert machine.value("network.libfabric") is None
    here = machine.fact("network.providers")
    assert here.value == {"path": "/usr/lib/x86_64-linux-gnu/libfabric.so.1", "version": None, "providers": []}


def test_the_newest_of_several_is_taken_but_what_a_module_named_goes_first(tmp_path: Path) -> None:
    files = {f"/opt/hpcx-v2.{minor}/ucx/include/ucp/api/ucp.h": "" for minor in (9, 18, 20)}
    assert look(box(tmp_path / "a", files)).value("network.ucx") == "/opt/hpcx-v2.20/ucx"
    loaded = box(tmp_path / "b", files, environment={"HPCX_UCX_DIR": "/opt/hpcx-v2.18/ucx/"})
    assert look(loaded).value("network.ucx") == "/opt/hpcx-v2.18/ucx"


def test_without_a_pkgconfig_file_the_header_tells_the_version(tmp_path: Path) -> None:
    header = "#define FI_MAJOR_VERSION 2\n#define FI_MINOR_VERSION 1\n#define FI_REVISION_VERSION 0\n"
    fact = look(box(tmp_path, {"/usr/include/rdma/fabric.h": header})).fact("network.libfabric")
    assert fact.text == "/usr 2.1.0"
    assert "4.1.7" in fact.meaning and "5.0.6" in fact.meaning


# --- what is here to run -----------------------------------------------------------------------------

LISTED = "".join(f"{name}:\n    version: 122.0\n" for name in ("efa", "ofi_rxm", "tcp", "ofi_hook_perf"))
FI_INFO = {
    "/opt/amazon/efa/bin/fi_info --version": {
        "output": "/opt/amazon/efa/bin/fi_info: 1.22.0amzn4.0\nlibfabric: 1.22.0amzn4.0\nlibfabric api: 1.22\n"
    },
    "/opt/amazon/efa/bin/fi_info -l": {"output": LISTED},
}
EFA = UVERBS | port("efa_0", "Unknown")


def test_the_vendors_libfabric_tells_its_version_and_its_providers(tmp_path: Path) -> None:
    files = {"/opt/amazon/efa/bin/fi_info": "", "/usr/bin/fi_info": ""}
    fact = look(box(tmp_path, files, FI_INFO)).fact("network.providers")
    assert fact.value == {
        "path": "/opt/amazon/efa/bin/fi_info",
        "version": "1.22.0amzn4.0",
        "providers": ["efa", "ofi_rxm", "tcp"],
    }
    assert fact.text == "1.22.0amzn4.0: efa, ofi_rxm, tcp"
    assert "libfabric: 1.22.0amzn4.0" in fact.raw and "efa:" in fact.raw


def test_a_libfabric_without_efa_is_something_to_look_at_where_there_is_efa(tmp_path: Path) -> None:
    told = {"fi_info --version": {"output": "libfabric: 1.17.0\n"}, "fi_info -l": {"output": "tcp:\n  version: 1\n"}}
    commands = {f"/usr/bin/{line}": answer for line, answer in told.items()}
    with_efa = look(rdma_box(tmp_path / "a", EFA | {"/usr/bin/fi_info": ""}, commands=commands))
    assert with_efa.fact("network.providers").state == "attention"
    assert "/opt/amazon/efa" in with_efa.fact("network.providers").action
    without = look(rdma_box(tmp_path / "b", {"/usr/bin/fi_info": ""}, commands=commands))
    assert without.fact("network.providers").state == "info"


def test_a_list_of_providers_that_does_not_end_costs_the_list_only(tmp_path: Path) -> None:
    commands = {**FI_INFO, "/opt/amazon/efa/bin/fi_info -l": {"status": "timed out"}}
    fact = look(box(tmp_path, {"/opt/amazon/efa/bin/fi_info": ""}, commands)).fact("network.providers")
    assert (fact.value["version"], fact.value["providers"]) == ("1.22.0amzn4.0", [])
    assert "did not end" in fact.text


def test_a_program_that_does_not_start_says_why(tmp_path: Path) -> None:
    broken = {"errors": "fi_info: error while loading shared libraries: libefa.so.1\n", "status": 127}
    commands = {f"/usr/bin/fi_info {option}": broken for option in ("--version", "-l")}
    fact = look(box(tmp_path, {"/usr/bin/fi_info": ""}, commands)).fact("network.providers")
    assert fact.state == "unknown"
    assert "libefa.so.1" in fact.text


def test_programs_that_hang_for_good_cost_only_their_own_facts(tmp_path: Path) -> None:
    for name in ("fi_info", "ucx_info"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\ntrap '' TERM\nexec sleep 4\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    started = monotonic()
    machine = look(RealHost({"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}), patience=0.4)
    assert monotonic() - started < 2.0
    late = {fact.id for fact in machine.facts if "timed out" in fact.text}
    assert late == {"network.providers", "network.transports"}
    assert {fact.id for fact in machine.facts} >= {"network.fabric", "network.libfabric", "network.ucx"}


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("# Version 1.13.1\n# Git branch '<unknown>', revision 0000000\n", "1.13.1"),
        ("# Library version: 1.17.0\n# Library path: /opt/libucs.so.0\n# API headers version: 1.16.0\n", "1.17.0"),
        ("# UCT version=1.10.1 revision 6a5856e\n# configured with: --prefix=/usr\n", "1.10.1"),
        ("ucx_info: command not found\n", ""),
    ],
)
def test_the_version_of_ucx_is_read_in_all_its_wordings(output: str, version: str) -> None:
    assert libraries.parse_ucx_version(output) == version


def ucx_box(folder: Path, *transports: str) -> RecordedHost:
    """A box with InfiniBand and Debian's UCX with such transports."""
    loaded = {f"/usr/lib/x86_64-linux-gnu/ucx/libuct_{name}.so.0": "" for name in transports}
    files = UVERBS | port("mlx5_0", "InfiniBand") | loaded | {"/usr/bin/ucx_info": ""}
    return rdma_box(folder, files, commands={"/usr/bin/ucx_info -v": {"output": "# Version 1.13.1\n"}})


def test_the_transports_of_ucx_are_the_files_beside_it(tmp_path: Path) -> None:
    fact = look(ucx_box(tmp_path, "ib", "rdmacm", "cma")).fact("network.transports")
    assert fact.value["transports"] == ["cma", "ib", "rdmacm"]
    assert (fact.text, fact.state) == ("1.13.1: cma, ib, rdmacm", "info")


def test_a_ucx_without_infiniband_is_something_to_look_at_where_there_is_infiniband(tmp_path: Path) -> None:
    fact = look(ucx_box(tmp_path, "cma")).fact("network.transports")
    assert (fact.state, fact.value["version"]) == ("attention", "1.13.1")


# --- whatever a file or a program says ---------------------------------------------------------------

texts = texts_with(
    "libfabric:", "efa:", "\n", " ", "# Version ", "1.2", "Version:", "²", "4:", "ACTIVE",
)  # fmt: skip


@settings(max_examples=100)
@given(text=texts)
def test_no_text_makes_a_parser_of_the_fabric_fail(text: str) -> None:
    assert isinstance(libraries.parse_fi_version(text), str)
    assert isinstance(libraries.parse_ucx_version(text), str)
    assert all(name and not name.startswith("ofi_hook") for name in libraries.parse_providers(text))


@settings(max_examples=100)
@given(st.lists(st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True), unique=True))
def test_providers_come_back_as_they_were_listed(names: list[str]) -> None:
    text = "".join(f"{name}:\n    version: 117.0\n" for name in names)
    assert libraries.parse_providers(text) == [name for name in names if not name.startswith("ofi_hook")]


class Anything(RecordedHost):
    """A box with one device whose files hold anything."""

    def __init__(self, folder: Path, text: str) -> None:
        super().__init__(folder)
        self._text = text

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        return self._text

    def list(self, path: str) -> tuple[str, ...]:
        return ("mlx5_0", "1", "hpcx-1") if path.count("/") < 7 else ()

    def exists(self, path: str) -> bool:
        return len(path) % 2 == 0


@settings(max_examples=100)
@given(text=texts)
def test_devices_and_libraries_whose_files_hold_anything_are_read(text: str) -> None:
    context = context_of(host := Anything(Path("/nowhere"), text))
    survey = Survey(host, context.folders, Wishes(), 0.0, Machine(()))
    told = [fact for probe in PROBES for fact in probe.read(survey)]
    assert {fact.id for fact in told} == {fact_id for probe in PROBES for fact_id in probe.ids}
