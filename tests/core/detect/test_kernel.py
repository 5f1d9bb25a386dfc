"""The kernel and its rights: what Open MPI 4.x and 5.x can do with them, on small boxes and on this one."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.detect.boxes import box, context_of, texts_with

from mpiwizard.core.context import Wishes
from mpiwizard.core.detect import cma, kernel, rights, single_copy
from mpiwizard.core.detect.facts import Probe, make_fact
from mpiwizard.core.detect.kernel import classify_cma, parse_config, parse_release, parse_trial, refusal_of
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.detect.rights import CAP_SYS_PTRACE, holds, parse_seccomp, parse_uid_map
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.host import Host, RealHost, Result
from mpiwizard.core.recordings import RecordedHost

TRIAL = "python3 -m mpiwizard.core.detect.cma"
WORKS = {"plain": 0, "permitted": 0, "kcmp": 0}
EPERM, ENOSYS = 1, 38
ORDINARY = "CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\nSeccomp:\t0\nSeccomp_filters:\t0\n"
TRACER = f"CapEff:\t{1 << CAP_SYS_PTRACE:016x}\nCapBnd:\t000001ffffffffff\nSeccomp:\t0\n"
IN_DOCKER = "CapEff:\t00000000a80425fb\nCapBnd:\t00000000a80425fb\nSeccomp:\t2\nSeccomp_filters:\t1\n"
CONFIG = "CONFIG_KCMP=y\nCONFIG_CROSS_MEMORY_ATTACH=y\n# CONFIG_CMA is not set\n"


def kernel_of(host: Host, layer: str = "none", patience: float = 2.0) -> Machine:
    """What is said of a box's kernel, and nothing else of it."""
    told = Probe(("platform.layer",), lambda survey: [make_fact("platform.layer", layer, layer)])
    probes = (told, *kernel.PROBES, *rights.PROBES, *single_copy.PROBES)
    context = msgspec.structs.replace(context_of(host), patience=patience)
    return survey_machine(context, Wishes(), None, probes)


def files_of(
    release: str = "6.18.44", yama: int | None = None, status: str = ORDINARY, config: str = CONFIG
) -> dict[str, str]:
    files = {
        "/proc/sys/kernel/osrelease": f"{release}\n",
        "/proc/self/status": f"Name:\tcat\n{status}",
        "/proc/self/uid_map": "         0          0 4294967295\n",
        f"/boot/config-{release}": config,
        "/dev/null": "",
    }
    return files if yama is None else {**files, "/proc/sys/kernel/yama/ptrace_scope": f"{yama}\n"}


def trial(**answer: int | None) -> dict[str, dict[str, Any]]:
    return {TRIAL: {"output": json.dumps(answer) + "\n"}}


# --- parsers --------------------------------------------------------------------------------------------

texts = texts_with(
    "Seccomp:", "CapEff:", "\t", "0", "2", "ffffffffffffffff", "\n", "# CONFIG_CMA is not set", "CONFIG_", "=", "y",
    "4294967295", " ", "²", "6.1", "-", ".", '{"plain": 0, "permitted": ', "}", "[]", "null", "1e400", "99999999999",
)  # fmt: skip


@settings(max_examples=100)
@given(texts)
def test_no_text_makes_a_parser_fail(text: str) -> None:
    parse_release(text)
    parse_config(text)
    classify_cma(parse_trial(text))
    parse_seccomp(text)
    holds(CAP_SYS_PTRACE, "CapEff", text)
    parse_uid_map(text)


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries({name: texts for name in ("release", "status", "uid_map", "yama", "config", "trial")}))
def test_whatever_the_files_hold_each_fact_is_told_or_unknown(told: dict[str, str]) -> None:
    class Anything(RecordedHost):
        def __init__(self) -> None:
            self.environment: Mapping[str, str] = {}

        def read(self, path: str, limit: int = 1 << 20) -> str | None:
            return next((text for name, text in told.items() if name in path), told["release"])

        def exists(self, path: str) -> bool:
            return True

        def run(self, argv: Sequence[str], **_options: Any) -> Result:
            return Result(0, told["trial"] if "mpiwizard.core.detect.cma" in argv else told["config"])

    machine = kernel_of(Anything())
    assert [fact.text for fact in machine.facts if "reading it failed" in fact.text] == []
    assert msgspec.json.decode(msgspec.json.encode(machine), type=Machine) == machine


@given(st.lists(st.integers(0, 10**8), min_size=1, max_size=5), st.sampled_from(["", "-rc1", "-5-amd64", "+", ".el9"]))
def test_a_release_comes_back_as_its_numbers(numbers: list[int], suffix: str) -> None:
    assert parse_release(".".join(map(str, numbers)) + suffix) == (numbers, suffix.lstrip("-.+"))


@pytest.mark.parametrize(
    ("release", "version", "text"),
    [
        ("5.15.153.1-microsoft-standard-WSL2", [5, 15, 153, 1], "5.15.153.1 (Microsoft, for WSL2)"),
        ("4.19.128-microsoft-standard", [4, 19, 128], "4.19.128 (Microsoft, for WSL2)"),
        ("4.4.0-19041-Microsoft", [4, 4, 0], "4.4.0 (WSL1, not Linux itself)"),
        ("6.1.0-18-cloud-amd64", [6, 1, 0], "6.1.0 (Debian, for clouds)"),
        ("5.14.0-427.el9.x86_64", [5, 14, 0], "5.14.0 (Enterprise Linux)"),
        ("6.5.0-1022-aws", [6, 5, 0], "6.5.0 (Ubuntu, for this cloud)"),
        ("6.18.44-fc-v657", [6, 18, 44], "6.18.44 (fc-v657)"),
        ("6.8.0", [6, 8, 0], "6.8.0"),
    ],
)
def test_a_release_is_understood_as_a_version(tmp_path: Path, release: str, version: list[int], text: str) -> None:
    machine = kernel_of(box(tmp_path, files_of(release)))
    fact = machine.fact("kernel.version")
    assert (fact.value, fact.text, fact.raw) == (version, text, release)
    assert machine.value("kernel.release") == release


def test_a_kernel_from_before_cma_is_something_to_look_at(tmp_path: Path) -> None:
    machine = kernel_of(box(tmp_path, files_of("2.6.32-754.el6.x86_64", config="")))
    assert machine.fact("kernel.version").state == "attention"
    assert machine.value("kernel.single_copy") is None or machine.value("kernel.single_copy")["4"] == "none"


# --- how the kernel was built ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ("CONFIG_CROSS_MEMORY_ATTACH=y\n# CONFIG_CMA is not set\n", "y"),
        ("# CONFIG_CROSS_MEMORY_ATTACH is not set\nCONFIG_CMA=y\n", "n"),
        ("CONFIG_CMA=y\n", None),
        ("\0\1\2 no configuration", None),
    ],
)
def test_the_symbol_that_counts_is_not_the_one_the_guide_looks_for(
    tmp_path: Path, config: str, value: str | None
) -> None:
    fact = kernel_of(box(tmp_path, files_of(config=config))).fact("kernel.config")
    assert fact.value == value
    assert (fact.state == "unknown") == (value is None)
    if value:
        assert "CONFIG_CMA" in fact.raw and "CONFIG_CMA" in fact.meaning and 50 in fact.claims


def test_a_packed_configuration_is_read_through_a_command(tmp_path: Path) -> None:
    files = {"/proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2\n"}
    commands = {"zcat /proc/config.gz": {"output": CONFIG}}
    fact = kernel_of(box(tmp_path, files, commands)).fact("kernel.config")
    assert (fact.value, fact.read_from) == ("y", "zcat /proc/config.gz")
    assert fact.raw == "CONFIG_KCMP=y\nCONFIG_CROSS_MEMORY_ATTACH=y\n# CONFIG_CMA is not set"


def test_without_zcat_the_configuration_is_unknown_and_says_why(tmp_path: Path) -> None:
    fact = kernel_of(box(tmp_path, {"/proc/sys/kernel/osrelease": "6.1.0\n"})).fact("kernel.config")
    assert (fact.state, fact.text) == ("unknown", "not known: no configuration of it is here")


# --- rights ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "seccomp", "text"),
    [
        (ORDINARY, 0, "none"),
        ("Seccomp:\t1\n", 1, "strict: only what was open before"),
        (IN_DOCKER, 2, "1 filter"),
        ("Seccomp:\t2\nSeccomp_filters:\t3\n", 2, "3 filters"),
        ("Seccomp:\t2\n", 2, "a filter"),  # before Linux 5.9 the number is not told
    ],
)
def test_a_filter_of_system_calls_is_seen(tmp_path: Path, status: str, seccomp: int, text: str) -> None:
    fact = kernel_of(box(tmp_path, files_of(status=status))).fact("kernel.seccomp")
    assert (fact.value, fact.text) == (seccomp, text)
    assert fact.raw.startswith("Seccomp:")


@pytest.mark.parametrize(
    ("status", "held", "text"),
    [
        (TRACER, True, "held"),
        (ORDINARY, False, "not held, root here has it"),
        (IN_DOCKER, False, "not held, not even by root here"),
    ],
)
def test_the_right_to_trace_is_one_bit_of_the_capabilities(tmp_path: Path, status: str, held: bool, text: str) -> None:
    fact = kernel_of(box(tmp_path, files_of(status=status))).fact("kernel.ptrace")
    assert (fact.value, fact.text) == (held, text)


@pytest.mark.parametrize(
    ("uid_map", "own"),
    [
        ("         0          0 4294967295\n", False),
        ("         0       1000          1\n         1     100000      65536\n", True),
        ("", True),  # made, and not mapped yet
    ],
)
def test_a_user_namespace_of_our_own_is_seen(tmp_path: Path, uid_map: str, own: bool) -> None:
    files = {**files_of(), "/proc/self/uid_map": uid_map}
    fact = kernel_of(box(tmp_path, files, trial(**WORKS))).fact("kernel.userns")
    assert fact.value is own and fact.raw


def test_without_proc_the_rights_are_unknown(tmp_path: Path) -> None:
    machine = kernel_of(box(tmp_path, {"/etc/nothing": ""}))
    assert {fact.state for fact in machine.facts if fact.id != "platform.layer"} == {"unknown"}


# --- the one conclusion ---------------------------------------------------------------------------------

SWITCHED_OFF = "4.x: mpirun --mca btl_vader_single_copy_mechanism none; 5.x: mpirun --mca smsc ^cma"


@pytest.mark.parametrize(
    ("files", "layer", "answer", "value", "text", "state"),
    [
        pytest.param(files_of(), "none", WORKS, ("cma", "cma"), "4.x and 5.x: CMA", "ok", id="6.18 without Yama"),
        pytest.param(
            files_of(yama=1), "none", {**WORKS, "plain": EPERM}, ("cma", "cma"), "4.x and 5.x: CMA", "ok", id="Yama 1"
        ),
        pytest.param(
            files_of(yama=2), "none", {"plain": EPERM, "permitted": EPERM, "kcmp": 0}, ("none", "none"),
            "4.x and 5.x: none (Yama is 2)", "attention", id="Yama 2",
        ),
        pytest.param(
            files_of(yama=3, status=TRACER), "none", {"plain": EPERM, "permitted": EPERM, "kcmp": 0}, ("none", "none"),
            "4.x and 5.x: none (Yama is 3)", "attention", id="Yama 3, which no right overcomes",
        ),
        pytest.param(
            files_of(yama=2, status=TRACER), "none", WORKS, ("cma", "cma"), "4.x and 5.x: CMA", "ok",
            id="Yama 2 with the right to trace",
        ),
        pytest.param(
            files_of(status=IN_DOCKER), "docker", {**WORKS, "kcmp": EPERM}, ("cma", "none"),
            "4.x: CMA, 5.x: none (kcmp is refused)", "attention", id="Docker 23 and later",
        ),
        pytest.param(
            files_of("5.4.0-216-generic", status=IN_DOCKER), "docker",
            {"plain": EPERM, "permitted": EPERM, "kcmp": EPERM}, ("none", "none"),
            "4.x and 5.x: none (the container refuses it)", "attention", id="Docker before 23",
        ),
        pytest.param(
            files_of("4.4.0-19041-Microsoft", config=""), "wsl1",
            {"plain": ENOSYS, "permitted": ENOSYS, "kcmp": ENOSYS}, ("none", "none"),
            "4.x and 5.x: none (not in this kernel)", "attention", id="WSL1",
        ),
        pytest.param(
            files_of(), "none", {**WORKS, "kcmp": ENOSYS}, ("cma", "none"),
            "4.x: CMA, 5.x: none (the kernel has no kcmp)", "attention", id="a kernel without kcmp",
        ),
        pytest.param(
            files_of(status="Seccomp:\t2\n"), "none", {"plain": -31, "permitted": -31, "kcmp": 0}, ("none", "none"),
            "4.x and 5.x: none (a filter refuses it)", "attention", id="a filter that kills",
        ),
        pytest.param(
            files_of(), "none", {"plain": EPERM, "permitted": EPERM, "kcmp": 0}, ("none", "none"),
            "4.x and 5.x: none (refused, EPERM)", "attention", id="refused for a reason that does not show",
        ),
    ],
)  # fmt: skip
def test_each_series_gets_its_mechanism_with_the_reason(
    tmp_path: Path,
    files: dict[str, str],
    layer: str,
    answer: dict[str, int],
    value: tuple[str, str],
    text: str,
    state: str,
) -> None:
    fact = kernel_of(box(tmp_path, files, trial(**answer)), layer).fact("kernel.single_copy")
    assert (fact.value, fact.text, fact.state) == (dict(zip("45", value, strict=True)), text, state)
    assert {"kernel.cma", "kernel.kcmp", "platform.layer"} <= set(fact.rests_on)
    assert "sysctl" not in fact.action
    assert bool(fact.action) == (answer["permitted"] != 0 or layer == "docker")
    if answer["permitted"] != 0:
        assert fact.action.startswith(SWITCHED_OFF)
        assert "first large message" in fact.meaning


@pytest.mark.parametrize(("layer", "grant"), [("docker", True), ("podman", True), ("lxc", False), ("none", False)])
def test_a_container_is_given_the_right_where_its_start_takes_a_switch_for_it(
    tmp_path: Path, layer: str, grant: bool
) -> None:
    host = box(tmp_path, files_of(status=IN_DOCKER), trial(plain=0, permitted=0, kcmp=EPERM))
    assert ("--cap-add=SYS_PTRACE" in kernel_of(host, layer).fact("kernel.single_copy").action) is grant


@pytest.mark.parametrize(
    ("files", "answer", "words"),
    [
        (files_of(config="# CONFIG_CROSS_MEMORY_ATTACH is not set\n"), WORKS, "yet it works"),
        (files_of(yama=2, status=TRACER), WORKS, "mpiwizard holds CAP_SYS_PTRACE"),
        (files_of(yama=3), WORKS, "Yama is 3"),
        (files_of(status=IN_DOCKER), {"plain": 1, "permitted": 1, "kcmp": 1}, "filter is in the way"),
        (files_of(), {"plain": 1, "permitted": 1, "kcmp": 0}, "the cause does not show here"),
        (files_of(status=TRACER), {**WORKS, "kcmp": EPERM}, "yet kcmp is refused"),
    ],
)
def test_a_sign_that_speaks_against_the_trial_is_named(
    tmp_path: Path, files: dict[str, str], answer: dict[str, int], words: str
) -> None:
    (sentence,) = kernel_of(box(tmp_path, files, trial(**answer))).fact("kernel.single_copy").contradictions
    assert words in sentence


@pytest.mark.parametrize("yama", [None, 0, 1])
def test_signs_that_agree_are_no_contradiction(tmp_path: Path, yama: int | None) -> None:
    fact = kernel_of(box(tmp_path, files_of(yama=yama), trial(**WORKS))).fact("kernel.single_copy")
    assert fact.contradictions == ()


@pytest.mark.parametrize(
    ("files", "layer", "value", "text"),
    [
        (files_of(), "none", {"4": "cma", "5": "cma"}, "4.x and 5.x: CMA; likely, not tried"),
        (files_of(yama=1), "none", {"4": "cma", "5": "cma"}, "4.x and 5.x: CMA; likely, not tried"),
        (files_of(yama=2), "none", {"4": "none", "5": "none"}, "4.x and 5.x: none (Yama is 2); likely, not tried"),
        (
            files_of(config="# CONFIG_CROSS_MEMORY_ATTACH is not set\n"), "none", {"4": "none", "5": "none"},
            "4.x and 5.x: none (not built into this kernel); likely, not tried",
        ),
        (
            files_of(), "wsl1", {"4": "none", "5": "none"},
            "4.x and 5.x: none (WSL1 does not have it); likely, not tried",
        ),
        (
            files_of(status=IN_DOCKER), "docker", {"4": None, "5": "none"},
            "4.x: not known, 5.x: none (Docker refuses kcmp); likely, not tried",
        ),
        (
            files_of(status=IN_DOCKER), "podman", None,
            "not known: CMA was not tried; it depends on the container's filter",
        ),
    ],
)  # fmt: skip
def test_without_a_trial_it_is_said_what_is_likely_and_that_it_was_not_tried(
    tmp_path: Path, files: dict[str, str], layer: str, value: dict[str, str | None] | None, text: str
) -> None:
    machine = kernel_of(box(tmp_path, files), layer)
    fact = machine.fact("kernel.single_copy")
    assert (fact.value, fact.text) == (value, text)
    assert machine.fact("kernel.cma").state == "unknown"
    assert "kernel.cma" not in fact.rests_on


# --- mechanisms from outside the kernel -----------------------------------------------------------------


def devices(
    name: str, header: str, *, module: bool = True, device: bool = True, headers: bool = True
) -> dict[str, str]:
    files = {f"/sys/module/{name}/refcnt": "0\n"} if module else {}
    files |= {f"/dev/{name}": ""} if device else {}
    return files | ({f"/usr/include/{header}": ""} if headers else {})


def open_to_us(name: str, yes: bool) -> dict[str, dict[str, Any]]:
    return {
        f"ls -l /dev/{name}": {"output": f"crw-rw---- 1 root mpi 10, 57 Nov 30 12:00 /dev/{name}\n"},
        f"test -w /dev/{name}": {"status": 0 if yes else 1},
    }


@pytest.mark.parametrize(
    ("files", "writable", "value"),
    [
        ({}, True, "absent"),
        (devices("xpmem", "xpmem.h", device=False), True, "hidden"),
        (devices("xpmem", "xpmem.h"), False, "refused"),
        (devices("xpmem", "xpmem.h", headers=False), True, "usable"),
        (devices("xpmem", "xpmem.h"), True, "ready"),
    ],
)
def test_xpmem_is_ready_only_when_this_user_may_use_it_and_can_build_with_it(
    tmp_path: Path, files: dict[str, str], writable: bool, value: str
) -> None:
    commands = open_to_us("xpmem", writable) if "/dev/xpmem" in files else {}
    fact = kernel_of(box(tmp_path, {**files_of(), **files}, commands)).fact("kernel.xpmem")
    assert fact.value == value
    assert bool(fact.raw) == (value != "absent")


@pytest.mark.parametrize(("headers", "name"), [(True, "xpmem"), (False, "cma")])
def test_xpmem_comes_first_where_a_build_would_have_it(tmp_path: Path, headers: bool, name: str) -> None:
    files = {**files_of(), **devices("xpmem", "xpmem.h", headers=headers)}
    fact = kernel_of(box(tmp_path, files, {**trial(**WORKS), **open_to_us("xpmem", True)})).fact("kernel.single_copy")
    assert fact.value == {"4": name, "5": name}
    assert headers or "built with XPMEM" in fact.meaning


@pytest.mark.parametrize(
    ("answer", "value", "action"),
    [
        (WORKS, {"4": "cma", "5": "cma"}, ""),
        (
            {"plain": 1, "permitted": 1, "kcmp": 0}, {"4": "knem", "5": "knem"},
            "4.x: mpirun --mca btl_vader_single_copy_mechanism knem; 5.x: mpirun --mca smsc knem",
        ),
        ({**WORKS, "kcmp": 1}, {"4": "cma", "5": "knem"}, "5.x: mpirun --mca smsc knem"),
    ],
)  # fmt: skip
def test_knem_stands_in_for_cma_only_when_it_is_asked_for(
    tmp_path: Path, answer: dict[str, int], value: dict[str, str], action: str
) -> None:
    files = {**files_of(), **devices("knem", "knem_io.h")}
    fact = kernel_of(box(tmp_path, files, {**trial(**answer), **open_to_us("knem", True)})).fact("kernel.single_copy")
    assert (fact.value, fact.action) == (value, action)


# --- the trial itself, with real processes --------------------------------------------------------------

NUMBERS = {"x86_64": {"read": 310, "kcmp": 312}, "aarch64": {"read": 270, "kcmp": 272}}
REFUSE, KILL = 0x00050000 | EPERM, 0x80000000  # SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS of linux/seccomp.h
FILTER = """
import ctypes, struct
library = ctypes.CDLL(None)
program = b"".join(struct.pack("HBBI", *line) for line in (
    (0x20, 0, 0, 0), (0x15, 0, 1, {number}), (0x06, 0, 0, {action}), (0x06, 0, 0, 0x7FFF0000)))
code = ctypes.create_string_buffer(program)
whole = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(code)))
zero = [ctypes.c_ulong(0)] * 3
assert library.prctl(38, ctypes.c_ulong(1), *zero) == 0  # PR_SET_NO_NEW_PRIVS
assert library.prctl(22, ctypes.c_ulong(2), whole, *zero[:2]) == 0  # PR_SET_SECCOMP
"""
SAY_KERNEL = """
from pathlib import Path
import msgspec
from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.detect import kernel, rights, single_copy
from mpiwizard.core.detect.facts import Probe, make_fact
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.host import RealHost
layer = Probe(("platform.layer",), lambda survey: [make_fact("platform.layer", "none", "none")])
context = Context(RealHost(), Folders(Path("/"), Path("/"), Path("/")), offline=True, patience=20)
probes = (layer, *kernel.PROBES, *rights.PROBES, *single_copy.PROBES)
print(msgspec.json.encode(survey_machine(context, Wishes(), None, probes)).decode())
"""


def kernel_in_a_process(code: str = "", before: Sequence[str] = ()) -> Machine:
    """What is said of this box's kernel in a process that first runs `code`, started by the command `before`."""
    environment = {**os.environ, "PYTHONPATH": str(Path(cma.__file__).parents[3])}
    result = subprocess.run(
        [*before, sys.executable, "-c", code + SAY_KERNEL], capture_output=True, text=True, timeout=60, env=environment
    )
    assert result.returncode == 0, result.stderr
    return msgspec.json.decode(result.stdout, type=Machine)


def filtered(call: str, action: int) -> str:
    if platform.machine() not in NUMBERS:
        pytest.skip("the numbers of system calls are not known here")
    return FILTER.format(number=NUMBERS[platform.machine()][call], action=action)


def test_on_this_box_the_conclusion_follows_the_trial() -> None:
    machine = kernel_of(RealHost())
    tried = subprocess.run([sys.executable, "-I", "-S", cma.__file__], capture_output=True, check=True).stdout
    expected = "cma" if json.loads(tried)["permitted"] == 0 else "none"
    value = machine.value("kernel.single_copy")
    assert value["4"] == expected or value["4"] in ("xpmem", "knem")
    assert machine.fact("kernel.cma").raw == tried.decode().strip()


def test_a_filter_that_refuses_the_reading_costs_cma() -> None:
    machine = kernel_in_a_process(filtered("read", REFUSE))
    assert (machine.value("kernel.seccomp"), machine.value("kernel.cma")) == (2, "refused")
    assert "EPERM" in machine.fact("kernel.cma").text
    fact = machine.fact("kernel.single_copy")
    assert fact.value == {"4": "none", "5": "none"}
    assert SWITCHED_OFF in fact.action


def test_a_filter_that_kills_who_reads_is_seen_too() -> None:
    machine = kernel_in_a_process(filtered("read", KILL))
    assert machine.value("kernel.cma") == "refused"
    assert "signal 31" in machine.fact("kernel.cma").text
    assert machine.value("kernel.kcmp") is not None


def test_a_filter_that_refuses_kcmp_costs_open_mpi_5_its_cma() -> None:
    if kernel_of(RealHost()).value("kernel.cma") == "refused":
        pytest.skip("CMA does not work on this box")
    machine = kernel_in_a_process(filtered("kcmp", REFUSE))
    assert machine.value("kernel.kcmp") is False
    assert machine.value("kernel.single_copy") == {"4": "cma", "5": "none"}


def test_a_user_namespace_of_our_own_is_seen_on_a_real_kernel() -> None:
    unshare = ("unshare", "-U", "-r")
    with suppress(FileNotFoundError):
        if subprocess.run([*unshare, "true"], capture_output=True).returncode == 0:
            assert kernel_in_a_process(before=unshare).value("kernel.userns") is True
            return
    pytest.skip("user namespaces cannot be made here")


def program_with(replacement: str) -> list[str]:
    """The trial as a program of which one function does something else."""
    code = f"""
import importlib.util, os, time
found = importlib.util.spec_from_file_location("cma", {cma.__file__!r})
cma = importlib.util.module_from_spec(found)
found.loader.exec_module(cma)
{replacement}
cma.main()
"""
    return [sys.executable, "-I", "-c", code]


def test_a_reading_that_hangs_ends_by_itself_and_costs_only_its_own_answer() -> None:
    started = time.monotonic()
    result = subprocess.run(
        program_with("cma.read_from = lambda *_: time.sleep(60)"), capture_output=True, text=True, timeout=30
    )
    answer = json.loads(result.stdout)
    assert (answer["plain"], answer["permitted"]) == (None, None)
    assert answer["kcmp"] is not None or platform.machine() not in cma.KCMP_NUMBERS
    assert classify_cma(answer) is None
    assert time.monotonic() - started < 15  # 0.9 s on an idle box; the sleep is 60


def test_a_trial_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    note = f"""
def read(pid, address):
    open({str(pids)!r}, "w").write(f"{{pid}} {{os.getpid()}}.")
    time.sleep(60)
cma.PATIENCE, cma.read_from = 60, read
"""
    process = subprocess.Popen(program_with(note))
    try:
        await_that(lambda: pids.exists() and pids.read_text().endswith("."))
    finally:
        process.kill()
        process.wait()
    for pid in pids.read_text().rstrip(".").split():
        await_that(lambda pid=pid: is_gone(pid))


def await_that(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_gone(pid: str) -> bool:
    """Whether a process has ended, buried by its parent or not yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_trial_that_hangs_costs_cma_and_kcmp_and_the_conclusion_stays_honest(tmp_path: Path) -> None:
    class Hanging(RecordedHost):
        def run(self, argv: Sequence[str], **options: Any) -> Result:
            if "mpiwizard.core.detect.cma" in argv:
                time.sleep(3)
            return super().run(argv, **options)

    box(tmp_path, files_of())
    machine = kernel_of(Hanging(tmp_path), patience=0.3)
    assert {fact.id for fact in machine.of_state("unknown")} == {"kernel.cma", "kernel.kcmp"}
    assert machine.fact("kernel.single_copy").text == "4.x and 5.x: CMA; likely, not tried"
    assert machine.seconds < 2


@pytest.mark.parametrize(
    ("code", "text"), [(1, "EPERM"), (-1, "wrong bytes"), (-31, "ended by signal 31"), (999, "999")]
)
def test_a_refusal_is_named_so_that_it_can_be_looked_up(code: int, text: str) -> None:
    assert refusal_of(code) == text
