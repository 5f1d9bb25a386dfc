"""Memory, swap, shared memory and huge pages: what is told of small boxes, and what of it needs a hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.detect.boxes import box, context_of, texts_with

from mpiwizard.core.context import Wishes
from mpiwizard.core.detect import memory
from mpiwizard.core.detect.facts import Probe, Survey, make_fact
from mpiwizard.core.detect.memory import parse_meminfo, parse_transparent
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.host import Host, RealHost, Result
from mpiwizard.core.recordings import RecordedHost

MIB, GIB = 1 << 20, 1 << 30
DF = "df -P -k /dev/shm"
MEMINFO = """MemTotal:        8388608 kB
MemFree:         2097152 kB
MemAvailable:    6291456 kB
SwapTotal:       2097152 kB
SwapFree:        1572864 kB
HugePages_Total:       0
HugePages_Free:        0
Hugepagesize:       2048 kB
"""


def memory_of(
    host: Host, layer: str = "none", cpus: int | None = 8, fabric: Sequence[str] | None = (), patience: float = 2.0
) -> Machine:
    """What is said of a box's memory, when this is known of the rest."""
    known = {"platform.layer": layer, "cpu.online": cpus, "cpu.usable": cpus, "network.fabric": fabric}
    told = [telling(fact_id, value) for fact_id, value in known.items()]
    context = msgspec.structs.replace(context_of(host), patience=patience)
    return survey_machine(context, Wishes(), None, (*told, *memory.PROBES))


def telling(fact_id: str, value: object) -> Probe:
    def read(survey: Survey) -> Iterator[Fact]:
        yield make_fact(fact_id, value, str(value), "unknown" if value is None else "info")

    return Probe((fact_id,), read)


def shm(kibibytes: int, free: int | None = None) -> dict[str, dict[str, Any]]:
    free = kibibytes if free is None else free
    line = f"shm {kibibytes} {kibibytes - free} {free} 0% /dev/shm"
    return {DF: {"output": f"Filesystem 1024-blocks Used Available Capacity Mounted on\n{line}\n"}}


# --- parsers --------------------------------------------------------------------------------------------

texts = texts_with(
    "MemTotal:", "SwapTotal:", " kB", "\n", "9" * 25, "17", "HugePages_Total:", "[", "]", "always", "²", "max",
    "Max locked memory ", "unlimited", " ", "bytes", "\t", "0::/", "/dev/shm", "-1",
)  # fmt: skip


@settings(max_examples=100)
@given(texts)
def test_no_text_makes_a_parser_fail(text: str) -> None:
    assert all(value >= 0 for value in parse_meminfo(text).values())
    parse_transparent(text)


@given(st.dictionaries(st.sampled_from(["MemTotal", "SwapFree", "Hugepagesize"]), st.integers(0, 10**12)))
def test_sizes_come_back_in_bytes_and_counts_as_they_are(sizes: dict[str, int]) -> None:
    text = "".join(f"{name}:  {kibibytes} kB\n" for name, kibibytes in sizes.items())
    expected = {name: kibibytes * 1024 for name, kibibytes in sizes.items()}
    assert parse_meminfo(text + "HugePages_Free:     3\n") == {**expected, "HugePages_Free": 3}


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries({name: texts for name in ("meminfo", "limits", "cgroup", "memory", "enabled", "df")}))
def test_whatever_the_files_hold_each_fact_is_told_or_unknown(told: dict[str, str]) -> None:
    class Anything(RecordedHost):
        def __init__(self) -> None:
            self.environment: Mapping[str, str] = {}

        def read(self, path: str, limit: int = 1 << 20) -> str | None:
            if path.endswith("mountinfo"):
                return "2 1 0:6 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
            return next((text for name, text in told.items() if name in path), "0::/\n")

        def exists(self, path: str) -> bool:
            return True

        def run(self, argv: Sequence[str], **_options: Any) -> Result:
            return Result(0, told["df"])

    machine = memory_of(Anything(), "wsl2", fabric=["efa_0: EFA"])
    assert [fact.text for fact in machine.facts if "reading it failed" in fact.text] == []
    assert msgspec.json.decode(msgspec.json.encode(machine), type=Machine) == machine


# --- memory and swap ------------------------------------------------------------------------------------


def grouped(path: str, **files: str) -> dict[str, str]:
    """A box in a control group of version 2 with these files."""
    return {
        "/proc/meminfo": MEMINFO,
        "/proc/self/cgroup": f"0::{path}\n",
        "/proc/self/mountinfo": "2 1 0:6 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        **{f"/sys/fs/cgroup{path}/{name.replace('_', '.', 1)}": text for name, text in files.items()},
    }


def test_available_memory_names_the_group_that_limits_it(tmp_path: Path) -> None:
    files = grouped("/job", memory_max=f"{2 * GIB}\n", memory_current=f"{GIB}\n")
    machine = memory_of(box(tmp_path, files))
    assert machine.value("memory.limit") == 2 * GIB
    assert machine.fact("memory.limit").raw == str(2 * GIB)
    fact = machine.fact("memory.available")
    assert (fact.value, fact.text) == (GIB, "1 GiB of 2 GiB")
    assert fact.read_from == "/proc/meminfo, /sys/fs/cgroup/job"


def test_available_memory_without_a_limit_is_read_from_meminfo_alone(tmp_path: Path) -> None:
    fact = memory_of(box(tmp_path, {"/proc/meminfo": MEMINFO})).fact("memory.available")
    assert (fact.value, fact.read_from) == (6 * GIB, "/proc/meminfo")
    assert fact.raw == "MemFree:         2097152 kB\nMemAvailable:    6291456 kB"


@pytest.mark.parametrize(
    ("files", "text", "limit"),
    [
        ({"/proc/meminfo": MEMINFO}, "2 GiB, 512 MiB in use", None),
        ({"/proc/meminfo": MEMINFO.replace("1572864", "2097152")}, "2 GiB, none in use", None),
        ({"/proc/meminfo": MEMINFO.replace("2097152", "0").replace("1572864", "0")}, "none", None),
        (grouped("/job", memory_swap_max="max\n"), "2 GiB, 512 MiB in use", None),
    ],
)
def test_swap_is_told_with_what_is_in_use(tmp_path: Path, files: dict[str, str], text: str, limit: int | None) -> None:
    fact = memory_of(box(tmp_path, files)).fact("memory.swap")
    assert (fact.text, fact.value["limit"]) == (text, limit)
    assert fact.raw.startswith("SwapTotal:")


def test_a_group_without_swap_has_none_of_the_boxs(tmp_path: Path) -> None:
    files = grouped("/job")
    files["/sys/fs/cgroup/job/memory.swap.max"] = "0\n"
    fact = memory_of(box(tmp_path, files)).fact("memory.swap")
    assert (fact.value["limit"], fact.text) == (0, "none for this control group, 2 GiB on the box")
    assert "memory.swap.max: 0" in fact.raw


def test_a_swap_limit_of_version_1_counts_memory_and_swap_together(tmp_path: Path) -> None:
    files = {
        "/proc/meminfo": MEMINFO,
        "/proc/self/cgroup": "4:memory:/job\n",
        "/proc/self/mountinfo": "2 1 0:6 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
        "/sys/fs/cgroup/memory/job/memory.limit_in_bytes": f"{GIB}\n",
        "/sys/fs/cgroup/memory/job/memory.memsw.limit_in_bytes": f"{GIB + 256 * MIB}\n",
    }
    assert memory_of(box(tmp_path, files)).value("memory.swap")["limit"] == 256 * MIB


def test_version_1_without_a_limit_leaves_the_swap_of_the_box(tmp_path: Path) -> None:
    files = {
        "/proc/meminfo": MEMINFO,
        "/proc/self/cgroup": "4:memory:/user.slice\n",
        "/proc/self/mountinfo": "2 1 0:6 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
    }
    for name in ("limit_in_bytes", "memsw.limit_in_bytes"):
        files[f"/sys/fs/cgroup/memory/user.slice/memory.{name}"] = "9223372036854771712\n"
    fact = memory_of(box(tmp_path, files)).fact("memory.swap")
    assert (fact.value["limit"], fact.text) == (None, "2 GiB, 512 MiB in use")


def test_without_meminfo_the_sizes_are_unknown_and_nothing_else_fails(tmp_path: Path) -> None:
    machine = memory_of(box(tmp_path, {"/proc/self/limits": "Max locked memory  unlimited  unlimited  bytes\n"}))
    unknown = {fact.id for fact in machine.of_state("unknown")}
    assert {"memory.total", "memory.swap", "memory.hugepages", "memory.shm"} <= unknown
    assert machine.fact("memory.memlock").text == "unlimited"


# --- shared memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "cpus", "text", "state"),
    [
        (64 * 1024, 8, "64 MiB of 64 MiB free, 4 to 16 ranks fit", "attention"),
        (64 * 1024, 4, "64 MiB of 64 MiB free, 4 ranks fit", "ok"),
        (8 * 1024 * 1024, 64, "8 GiB of 8 GiB free, 512 ranks fit", "ok"),
        (1024, 2, "1 MiB of 1 MiB free, 0 to 0 ranks fit", "attention"),
    ],
)
def test_shared_memory_says_how_many_ranks_fit_into_it(
    tmp_path: Path, size: int, cpus: int, text: str, state: str
) -> None:
    fact = memory_of(box(tmp_path, {"/dev/shm/.keep": ""}, shm(size)), cpus=cpus).fact("memory.shm")
    assert (fact.text, fact.state, fact.value) == (text, state, {"size": size * 1024, "free": size * 1024})
    assert bool(fact.action) == (state == "attention")


@pytest.mark.parametrize(
    ("layer", "size", "free", "cpus", "action"),
    [
        ("docker", 65536, 65536, 8, "Start the container with --shm-size=1g. Or make do with small segments: "),
        ("docker", 65536, 65536, 128, "Start the container with --shm-size=2g."),
        ("podman", 64512, 64512, 64, "Start the container with --shm-size=1g."),
        ("kubernetes", 65536, 65536, 64, "Give the pod an emptyDir volume with medium: Memory, mounted at /dev/shm."),
        ("none", 4 << 20, 1024, 8, "Delete what ended jobs left there; ls -l /dev/shm shows it."),
        ("none", 65536, 0, 8, "sudo mount -o remount,size=1g /dev/shm"),
    ],
)
def test_too_little_shared_memory_comes_with_the_exact_way_to_more(
    tmp_path: Path, layer: str, size: int, free: int, cpus: int, action: str
) -> None:
    fact = memory_of(box(tmp_path, {"/dev/shm/.keep": ""}, shm(size, free)), layer, cpus).fact("memory.shm")
    assert fact.action.startswith(action)
    assert ("btl_vader_segment_size 4194304" in fact.action) == (free // 4096 >= cpus)


def test_a_df_that_says_nothing_leaves_shared_memory_unknown(tmp_path: Path) -> None:
    fact = memory_of(box(tmp_path, {"/dev/shm/.keep": ""}, {DF: {"status": 1}})).fact("memory.shm")
    assert (fact.state, fact.text) == ("unknown", "not known: df gave no answer")


# --- huge pages, locked memory, Windows -----------------------------------------------------------------


def test_huge_pages_that_are_set_aside_are_not_there_for_others(tmp_path: Path) -> None:
    text = MEMINFO.replace("HugePages_Total:       0", "HugePages_Total:     512").replace(
        "HugePages_Free:        0", "HugePages_Free:      512"
    )
    files = {
        "/proc/meminfo": text,
        "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    }
    fact = memory_of(box(tmp_path, files)).fact("memory.hugepages")
    assert fact.value == {"total": 512, "free": 512, "size": 2 * MIB, "transparent": "madvise"}
    assert fact.text == "512 × 2 MiB set aside; transparent: madvise"
    assert fact.meaning.startswith("1 GiB is kept for them")
    assert "always [madvise] never" in fact.raw


LIMITED = (
    "Limit  Soft Limit  Hard Limit  Units\nMax locked memory         65536                65536                bytes\n"
)


@pytest.mark.parametrize(
    ("limits", "fabric", "value", "state"),
    [
        (LIMITED, ["rdmap0s6: EFA"], 65536, "attention"),
        (LIMITED, [], 65536, "info"),
        (LIMITED, None, 65536, "info"),
        (LIMITED.replace("65536", "unlimited"), ["mlx5_0: InfiniBand"], None, "ok"),
        ("", ["mlx5_0: InfiniBand"], None, "unknown"),
    ],
)
def test_a_limit_of_locked_memory_matters_only_where_there_is_a_fabric(
    tmp_path: Path, limits: str, fabric: list[str] | None, value: int | None, state: str
) -> None:
    host = box(tmp_path, {"/proc/self/limits": limits})
    fact = memory_of(host, fabric=fabric).fact("memory.memlock")
    assert (fact.value, fact.state) == (value, state)
    assert ("memlock=-1" in fact.action) == (state == "attention")
    assert state == "unknown" or "Max locked memory" in fact.raw


def test_under_wsl2_the_limits_of_windows_are_explained(tmp_path: Path) -> None:
    machine = memory_of(box(tmp_path, {"/proc/meminfo": MEMINFO}), "wsl2")
    fact = machine.fact("memory.windows")
    assert fact.text == "8 GiB, 8 processors, as WSL was given"
    assert "wsl --shutdown" in fact.action and "%UserProfile%\\.wslconfig" in fact.action
    assert ".wslconfig" in machine.fact("memory.swap").meaning


@pytest.mark.parametrize("layer", ["none", "wsl1", "docker"])
def test_elsewhere_windows_is_not_spoken_of(tmp_path: Path, layer: str) -> None:
    machine = memory_of(box(tmp_path, {"/proc/meminfo": MEMINFO}), layer)
    assert "memory.windows" not in machine.values
    assert ".wslconfig" not in machine.fact("memory.swap").meaning


def test_on_this_box_everything_known_has_its_raw_text() -> None:
    machine = memory_of(RealHost(), patience=10)
    for fact in machine.facts:
        if fact.id.startswith("memory.") and fact.value is not None and not fact.rests_on:
            assert fact.raw and fact.see_yourself, fact.id
    assert machine.value("memory.total") >= machine.value("memory.available")
