"""Parsers read what the kernel writes, and survive whatever else a file may hold."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.detect.boxes import look, texts_with

from mpiwizard.core.context import Folders, Wishes
from mpiwizard.core.detect import marks, system, tools
from mpiwizard.core.detect.cgroups import parse_cgroups, parse_cpu_max
from mpiwizard.core.detect.cpu import parse_cpu_list, usable_cpus
from mpiwizard.core.detect.disk import Space, parse_df
from mpiwizard.core.detect.facts import Survey
from mpiwizard.core.detect.installations import classify_launcher
from mpiwizard.core.detect.kernel import parse_trial
from mpiwizard.core.detect.launchers import own_prefixes
from mpiwizard.core.detect.libraries import LIBFABRIC, UCX, version_of
from mpiwizard.core.detect.limits import tasks_of
from mpiwizard.core.detect.memory import parse_meminfo
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.detect.mounts import mount_of, parse_mountinfo
from mpiwizard.core.detect.parameters import parse_parameters
from mpiwizard.core.detect.tools import named_command
from mpiwizard.core.detect.virtualisation import find_virtualisation
from mpiwizard.core.host import Result
from mpiwizard.core.recordings import RecordedHost

PARSERS = (
    parse_mountinfo, parse_cgroups, parse_cpu_max, parse_cpu_list, parse_df, parse_meminfo, parse_parameters,
    system.parse_os_release, marks.wsl_version, parse_trial, tools.parse_version, classify_launcher,
)  # fmt: skip

texts = texts_with(
    "0::/", "-", " - ", "/", "max", "100000", "00000000", "0003", "eth0", "|--", "/32 host LOCAL", "kB", "MemTotal:",
    "\\040", "\\777", "0-", "-1", "99999999999999999999", "flags", ":", "=", '"', "'", "\t", "\n", "[{}]", "²",
)  # fmt: skip


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
@given(text=texts)
def test_no_text_makes_a_parser_fail(parse: object, text: str) -> None:
    parse(text)  # type: ignore[operator]


names = st.text(string.printable + "äß漢", min_size=1).filter(lambda name: "\0" not in name)


def as_the_kernel_writes(text: str) -> str:
    """mangle_path of the kernel: blank, tab, newline and backslash as octal."""
    return "".join(f"\\{ord(character):03o}" if character in " \t\n\\" else character for character in text)


@given(point=names, source=names, kind=st.sampled_from(["ext4", "9p", "overlay"]))
def test_mount_points_come_back_as_they_were_named(point: str, source: str, kind: str) -> None:
    line = (
        f"36 35 98:0 / /{as_the_kernel_writes(point)} rw,noatime shared:1 - {kind} {as_the_kernel_writes(source)} rw\n"
    )
    (mount,) = parse_mountinfo(line)
    assert (mount.point, mount.source, mount.type) == ("/" + point, source, kind)
    assert mount.options == {"rw", "noatime"}


def test_a_path_lies_on_the_longest_mount_above_it_and_the_last_of_two() -> None:
    mounts = parse_mountinfo(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "2 1 8:2 / /home rw - xfs /dev/sdb1 rw\n"
        "3 1 8:3 / /home rw - nfs4 server:/home rw\n"
        "4 1 8:4 / /home2 rw - btrfs /dev/sdc1 rw\n"
    )
    kinds = {
        path: mount.type
        for path in ("/", "/home/ada", "/home", "/home2/x", "/homes")
        if (mount := mount_of(mounts, path))
    }
    assert kinds == {"/": "ext4", "/home/ada": "nfs4", "/home": "nfs4", "/home2/x": "btrfs", "/homes": "ext4"}


@given(st.frozensets(st.integers(0, 500)))
def test_a_list_of_cpus_comes_back(cpus: frozenset[int]) -> None:
    assert parse_cpu_list(",".join(str(cpu) for cpu in sorted(cpus))) == cpus


def test_ranges_of_cpus_are_understood() -> None:
    assert parse_cpu_list("0-2,8\n") == {0, 1, 2, 8}


@given(st.integers(1, 10**9), st.integers(1000, 10**6))
def test_a_quota_is_its_part_of_the_period(quota: int, period: int) -> None:
    assert parse_cpu_max(f"{quota} {period}\n") == pytest.approx(quota / period)


@pytest.mark.parametrize("text", ["max 100000\n", "", "-1 100000", "0 100000", "5 0"])
def test_no_quota_is_no_limit(text: str) -> None:
    assert parse_cpu_max(text) is None


@given(st.integers(1, 1024), st.one_of(st.none(), st.floats(0.01, 2000)))
def test_usable_cpus_never_exceed_the_affinity_and_never_are_none(affinity: int, quota: float | None) -> None:
    usable = usable_cpus(affinity, quota)
    assert 1 <= usable <= affinity
    assert quota is None or usable < quota + 1


@given(st.dictionaries(st.sampled_from(["ID", "NAME", "PRETTY_NAME"]), st.text(string.ascii_letters + " .()'$")))
def test_os_release_values_come_back_as_they_were_quoted(values: dict[str, str]) -> None:
    values = {name: " ".join(value.split()) for name, value in values.items()}
    text = "".join(f'{name}="{value}"\n' for name, value in values.items())
    assert system.parse_os_release(text) == values


def test_a_file_system_with_blanks_in_its_name_has_its_space_read() -> None:
    text = "Filesystem 1024-blocks Used Available Capacity Mounted on\nC:\\My Disk 1000 400 600 40% /mnt/my disk\n"
    assert parse_df(text) == Space(1000 * 1024, 600 * 1024)


class SayingHost(RecordedHost):
    """A box of which every file and every variable holds the same text."""

    def __init__(self, text: str) -> None:
        super().__init__(Path("/nowhere"))
        self._text = text
        self.environment = dict.fromkeys(("CC", "HOME"), text)

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        return self._text

    def list(self, path: str) -> tuple[str, ...]:
        return ("1", "x86_64-linux-gnu")


@given(text=st.one_of(texts, st.sampled_from(["IBM/S390", "vendor_id : IBM/S390"]), st.text().map(json.dumps)))
def test_no_text_in_a_file_makes_a_reader_of_files_fail(text: str) -> None:
    host = SayingHost(text)
    survey = Survey(host, Folders(Path("/s"), Path("/c"), Path("/f")), Wishes(), 0.0, Machine(()))
    assert find_virtualisation(host)
    assert tasks_of(host, "1000") >= 0
    assert all(named_command(host, tool) is not None for tool in tools.TOOLS)
    assert all(len(version_of(host, library, "/usr")) == 2 for library in (LIBFABRIC, UCX))
    assert all(isinstance(prefix, str) for prefix in own_prefixes(survey))


class AnythingHost:
    """A box whose files, folders and commands hold texts of a pool; which of them, the seed and the question decide.

    Probes ask from threads, where hypothesis cannot draw.
    """

    def __init__(self, pool: list[str], seed: int) -> None:
        self._pool, self._seed = pool, seed
        self.environment: Mapping[str, str] = {
            "PATH": "/usr/bin:relative::/mnt/c/x y", "HOME": "/home/ada", "CC": "cc",
            **dict.fromkeys(("LD_LIBRARY_PATH", "MODULEPATH", "SLURM_JOB_ID", "LANG", "OMPI_MCA_btl"), pool[0]),
        }  # fmt: skip
        self.is_real = False

    def _chance(self, *question: str) -> Random:
        return Random(repr((self._seed, question)))

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        return self._chance("read", path).choice([None, *self._pool])

    def list(self, path: str) -> tuple[str, ...]:
        if path.count("/") > 8:  # folders without end are not what is tried here
            return ()
        chance = self._chance("list", path)
        names = ["a", "eth0", "efa_0", "1", "cpu0", "node0", "openmpi"]
        return tuple(sorted(chance.sample(names, chance.randint(0, 2))))

    def exists(self, path: str) -> bool:
        return self._chance("exists", path).random() < 0.5

    def resolve(self, path: str) -> str:
        return path

    def which(self, program: str) -> str | None:
        return f"/usr/bin/{program}" if self._chance("which", program).random() < 0.5 else None

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = 10.0,
        environment: Mapping[str, str] | None = None,
        folder: str | None = None,
        given: str = "",
        grace: float = 2.0,
    ) -> Result:
        chance = self._chance("run", *argv)
        return Result(chance.choice([0, 0, 1, 127]), chance.choice(["", *self._pool]), chance.choice(["", *self._pool]))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(texts, min_size=1, max_size=6), st.integers())
def test_whatever_a_box_holds_detection_ends_with_a_machine(pool: list[str], seed: int) -> None:
    machine = look(AnythingHost(pool, seed))
    assert machine.headline
    assert [fact.text for fact in machine.facts if "reading it failed" in fact.text] == []
    assert {fact.id for fact in machine.facts} >= {"platform.layer", "cpu.usable", "tool.cc"}


def test_bytes_that_are_no_text_are_read_all_the_same(tmp_path: Path) -> None:
    for name in ("proc/self/mountinfo", "etc/os-release", "proc/cpuinfo", "proc/self/cgroup", "proc/net/route"):
        file = tmp_path / "root" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(range(256)) * 4)
    machine = look(RecordedHost(tmp_path))
    assert [fact.text for fact in machine.facts if "reading it failed" in fact.text] == []
