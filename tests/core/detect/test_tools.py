"""Programs and libraries of a build: which ones are here, in which version, and what a missing one costs."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.detect.boxes import box, context_of, look

from mpiwizard.core.context import Wishes
from mpiwizard.core.detect import development, system, tools
from mpiwizard.core.detect.model import Machine
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.host import RealHost

DEBIAN = {"/etc/os-release": "ID=debian\nVERSION_ID=12\n", "/proc/self/status": "Uid:\t0\t0\t0\t0\n"}


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def look_with(path: str, **variables: str) -> Machine:
    """What the probes of tools say of this box with another PATH."""
    host = RealHost({"PATH": path, "HOME": "/nowhere", **variables})
    return survey_machine(context_of(host), Wishes(), None, (*system.PROBES, *tools.PROBES))


# --- compilers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "tool", "text"),
    [
        ({"gcc": "gcc (Debian 12.2.0-14) 12.2.0"}, "cc", "gcc 12.2.0"),
        ({"clang": "Debian clang version 14.0.6"}, "cc", "clang 14.0.6"),
        ({"icx": "Intel(R) oneAPI DPC++/C++ Compiler 2024.2.0 (2024.2.0.20240602)"}, "cc", "icx 2024.2.0"),
        ({"nvc": "\nnvc 24.7-0 64-bit target on x86-64 Linux -tp zen3"}, "cc", "nvc 24.7-0"),
        ({"clang": "clang version 14.0.6", "gcc": "gcc (GCC) 13.1.0"}, "cc", "gcc 13.1.0"),
        ({"ifx": "ifx (IFX) 2024.2.0 20240602"}, "fortran", "ifx 2024.2.0"),
        ({"icpx": "Intel(R) oneAPI DPC++/C++ Compiler 2024.2.0 (2024.2.0.20240602)"}, "cxx", "icpx 2024.2.0"),
    ],
)
def test_compilers_of_all_makers_are_known_by_name(tmp_path: Path, names: dict[str, str], tool: str, text: str) -> None:
    files = {**DEBIAN, **{f"/usr/bin/{name}": "" for name in names}}
    commands = {f"{name} --version": {"output": output + "\n"} for name, output in names.items()}
    fact = look(box(tmp_path, files, commands)).fact(f"tool.{tool}")
    assert fact.text == text
    assert fact.raw == names[text.split()[0]].strip()


@pytest.mark.parametrize(("name", "state", "action"), [("gcc", "ok", ""), ("clang", "attention", "export CC=clang")])
def test_a_compiler_that_configure_does_not_look_for_has_to_be_named(
    tmp_path: Path, name: str, state: str, action: str
) -> None:
    fact = look(box(tmp_path, {**DEBIAN, f"/usr/bin/{name}": ""})).fact("tool.cc")
    assert (fact.state, fact.action) == (state, action)


def test_other_compilers_of_the_box_are_mentioned_and_two_names_of_one_are_not(tmp_path: Path) -> None:
    host = box(tmp_path, {**DEBIAN, "/usr/bin/gcc": "", "/usr/bin/icx": ""})
    (tmp_path / "root/usr/bin/cc").symlink_to("/usr/bin/gcc")
    assert look(host).fact("tool.cc").meaning == "Also here: icx. CC chooses another one."


def test_a_compiler_that_hangs_costs_its_own_fact_only(tmp_path: Path) -> None:
    program(tmp_path, "gcc", "exec /bin/sleep 60")
    program(tmp_path, "g++", "echo 'g++ (GCC) 13.1.0'")
    program(tmp_path, "make", "echo 'GNU Make 4.3'")
    started = time.monotonic()
    machine = look_with(str(tmp_path))
    assert time.monotonic() - started < 5
    assert machine.fact("tool.cc").state == "unknown"
    assert [machine.fact(f"tool.{name}").text for name in ("cxx", "make")] == ["g++ 13.1.0", "make 4.3"]
    assert machine.fact("tool.perl").state == "problem"


def test_a_compiler_that_will_not_be_ended_does_not_hold_up_the_others(tmp_path: Path) -> None:
    program(tmp_path, "gfortran", "trap '' TERM; exec /bin/sleep 60")
    program(tmp_path, "make", "echo 'GNU Make 4.3'")
    started = time.monotonic()
    machine = look_with(str(tmp_path))
    assert time.monotonic() - started < 3
    assert machine.fact("tool.fortran").state == "unknown"
    assert machine.fact("tool.make").text == "make 4.3"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler")
def test_the_compiler_of_this_box_shows_the_line_its_version_was_read_from() -> None:
    fact = look_with(os.environ["PATH"]).fact("tool.cc")
    assert fact.value["version"] and fact.value["version"] in fact.raw


# --- autotools and ccache ----------------------------------------------------------------------------

AUTOCONF = '#! /bin/sh\n# Generated from autoconf.as by GNU Autoconf 2.71.\nversion="\\\nautoconf (GNU Autoconf) 2.71\n'
AUTOMAKE = "#!/usr/bin/perl\nBEGIN\n{\n  unshift (@INC, '/usr/share/automake-1.16')\n    unless $ENV{X};\n}\n"
CONFIG = "our $APIVERSION = '1.16';\nour $VERSION = '1.16.5';\n"
LIBTOOLIZE = "#! /usr/bin/env sh\nscriptversion='(GNU libtool) 2.4.7'\n"


def test_autotools_are_one_fact_that_names_what_is_missing(tmp_path: Path) -> None:
    files = {
        **DEBIAN,
        "/usr/bin/autoconf": AUTOCONF,
        "/usr/bin/automake": AUTOMAKE,
        "/usr/share/automake-1.16/Automake/Config.pm": CONFIG,
        "/usr/bin/libtoolize": LIBTOOLIZE,
        "/usr/bin/m4": "\x7fELF",
    }
    fact = look(box(tmp_path, files, {"m4 --version": {"output": "m4 (GNU M4) 1.4.19\n"}})).fact("tool.autotools")
    assert fact.text == "autoconf 2.71, automake 1.16.5, libtoolize 2.4.7, m4 1.4.19 (no flex)"
    assert fact.value["automake"] == {"path": "/usr/bin/automake", "version": "1.16.5"}
    assert "/usr/bin/automake: our $VERSION = '1.16.5';" in fact.raw
    assert fact.state == "info"


def test_a_script_that_does_not_tell_its_version_is_asked_for_it(tmp_path: Path) -> None:
    files = {**DEBIAN, "/usr/bin/automake": "#!/bin/sh\n"}
    commands = {"automake --version": {"output": "automake (GNU automake) 1.15\n"}}
    assert look(box(tmp_path, files, commands)).value("tool.autotools")["automake"]["version"] == "1.15"


def test_without_autotools_nothing_is_wrong(tmp_path: Path) -> None:
    fact = look(box(tmp_path, DEBIAN)).fact("tool.autotools")
    assert (fact.value, fact.text, fact.state) == (None, "none", "info")
    assert "git" in fact.meaning


@pytest.mark.skipif(shutil.which("autoconf") is None or shutil.which("automake") is None, reason="needs autotools")
def test_what_is_read_from_the_scripts_of_this_box_is_what_they_say() -> None:
    host = RealHost()
    for name in ("autoconf", "automake"):
        path = shutil.which(name)
        assert path is not None
        version = tools.parse_version(host.run([name, "--version"]).output)
        assert tools.parse_version(tools.version_line(host, path)) == version != ""


@pytest.mark.parametrize(
    ("environment", "link", "text"),
    [
        ({}, "", "4.7.5, not in use"),
        ({"CC": "ccache gcc"}, "", "4.7.5, used by ccache gcc"),
        ({"PATH": "/usr/lib/ccache:/usr/bin"}, "usr/lib/ccache/gcc", "4.7.5, used by gcc"),
    ],
)
def test_ccache_is_in_use_by_the_variable_or_in_the_compilers_place(
    tmp_path: Path, environment: dict[str, str], link: str, text: str
) -> None:
    files = {**DEBIAN, "/usr/bin/ccache": "", "/usr/bin/gcc": ""}
    host = box(tmp_path, files, {"ccache --version": {"output": "ccache version 4.7.5\n"}}, environment)
    if link:
        (tmp_path / "root" / link).parent.mkdir(parents=True)
        (tmp_path / "root" / link).symlink_to("/usr/bin/ccache")
    fact = look(host).fact("tool.ccache")
    assert fact.text == text
    assert bool(fact.action) == ("not in use" in text)


# --- development files of libraries ------------------------------------------------------------------

PC = "prefix=/usr\nexec_prefix=${prefix}\nlibdir=${prefix}/lib/x86_64-linux-gnu\nincludedir=${prefix}/include\n\n"
HWLOC = {
    "/usr/include/hwloc.h": "#define HWLOC_API_VERSION 0x00020800\n",
    "/usr/include/x86_64-linux-gnu/hwloc/autogen/config.h": '#define HWLOC_VERSION "2.9.0"\n'
    "#define HWLOC_VERSION_MAJOR 2\n",
    "/usr/lib/x86_64-linux-gnu/pkgconfig/hwloc.pc": PC + "Name: hwloc\nVersion: 2.9.0\n",
}
LIBEVENT = {
    "/usr/include/event2/event.h": "",
    "/usr/include/event2/event-config.h": "#define EVENT__NUMERIC_VERSION 0x02010c00\n\n"
    '#define EVENT__VERSION "2.1.12-stable"\n',
}
PMIX_FOLDER = "/usr/lib/x86_64-linux-gnu/pmix2"
PMIX = {
    f"{PMIX_FOLDER}/include/pmix.h": "",
    f"{PMIX_FOLDER}/include/pmix_version.h": "#define PMIX_VERSION_MAJOR 4L\n#define PMIX_VERSION_MINOR 2L\n"
    "#define PMIX_VERSION_RELEASE 2L\n#define PMIX_NUMERIC_VERSION 0x00040202\n",
    "/usr/lib/x86_64-linux-gnu/pkgconfig/pmix.pc": f"prefix={PMIX_FOLDER}\nincludedir={PMIX_FOLDER}/include\n"
    "Name: pmix\nVersion: 4.2.2rc2\n",
}  # as Debian 12 has them


@pytest.mark.parametrize(
    ("library", "files", "value"),
    [
        ("hwloc", HWLOC, {"prefix": "/usr", "version": "2.9.0"}),
        ("libevent", LIBEVENT, {"prefix": "/usr", "version": "2.1.12-stable"}),
        ("pmix", PMIX, {"prefix": PMIX_FOLDER, "version": "4.2.2"}),
        (
            "pmix",
            {
                path.replace(f"{PMIX_FOLDER}/include", "/usr/include"): text
                for path, text in PMIX.items()
                if ".h" in path
            },
            {"prefix": "/usr", "version": "4.2.2"},
        ),
        (
            "hwloc",  # headers for several architectures: the version is in a file of another name
            {"/usr/include/hwloc.h": "", "/usr/lib64/pkgconfig/hwloc.pc": "Version: 2.4.1\n"},
            {"prefix": "/usr", "version": "2.4.1"},
        ),
        ("hwloc", {"/usr/lib/x86_64-linux-gnu/libhwloc.so.15": ""}, None),
        ("hwloc", {"/usr/lib64/pkgconfig/hwloc.pc": "Version: 2.4.1\n"}, None),
    ],
)
def test_development_files_are_found_with_their_version(
    tmp_path: Path, library: str, files: dict[str, str], value: dict[str, str] | None
) -> None:
    fact = look(box(tmp_path, {**DEBIAN, **files})).fact(f"tool.{library}")
    assert fact.value == value
    assert fact.state == "info"
    assert value is None or (value["version"].partition("-")[0] in fact.raw or "VERSION_MINOR 2L" in fact.raw)


def test_development_files_of_the_active_conda_environment_count(tmp_path: Path) -> None:
    files = {
        "/home/ada/miniconda3/envs/mpi/include/hwloc.h": "",
        "/home/ada/miniconda3/envs/mpi/include/hwloc/autogen/config.h": '#define HWLOC_VERSION "2.11.2"\n',
    }
    host = box(tmp_path, files, environment={"CONDA_PREFIX": "/home/ada/miniconda3/envs/mpi"})
    assert look(host).value("tool.hwloc") == {"prefix": "/home/ada/miniconda3/envs/mpi", "version": "2.11.2"}


@pytest.mark.parametrize(
    ("library", "version", "stops"),
    [
        ("pmix", "4.2.2", True),
        ("pmix", "4.2.4", False),
        ("pmix", "5.0.3", False),
        ("hwloc", "2.12.0", False),
        ("hwloc", "3.0.0", True),
        ("libevent", "2.1.12-stable", False),
    ],
)
def test_a_library_that_stops_the_build_of_somebody_else_is_named_and_harmless_for_us(
    tmp_path: Path, library: str, version: str, stops: bool
) -> None:
    header = {"pmix": "pmix.h", "hwloc": "hwloc.h", "libevent": "event2/event.h"}[library]
    files = {f"/usr/include/{header}": "", f"/usr/lib64/pkgconfig/{library}.pc": f"Version: {version}\n"}
    fact = look(box(tmp_path, {**DEBIAN, **files})).fact(f"tool.{library}")
    assert ("stops" in fact.meaning) == stops
    assert fact.action.endswith(f"--with-{library}=internal")
    assert fact.state == "info"


# --- whatever a file or a program may say -------------------------------------------------------------

words = st.sampled_from(
    ["#define PMIX_VERSION_MAJOR ", "#define PMIX_VERSION_MINOR ", "#define PMIX_VERSION_RELEASE 2L", "4L", "\n", "²",
     '#define HWLOC_VERSION "', '"', "#define EVENT__VERSION ", "prefix", "=", "${prefix}", "${", "}", "Version:", "(",
     "(GNU libtool) ", "1.2", "our $VERSION = '", "'", "v", "-"]
)  # fmt: skip
texts = st.one_of(st.text(), st.lists(words).map("".join), st.lists(words).map(" ".join))


@settings(max_examples=100)
@given(text=texts)
def test_no_text_makes_a_parser_fail(text: str) -> None:
    assert isinstance(tools.parse_version(text), str)
    assert all(isinstance(value, str) for value in development.parse_pc(text).values())
    for library in development.LIBRARIES:
        assert isinstance(development.parse_macros(library, text), str)


@settings(max_examples=100)
@given(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)))
def test_a_version_comes_back_from_the_macros_it_was_written_in(numbers: tuple[int, int, int]) -> None:
    names = ("MAJOR", "MINOR", "RELEASE")
    text = "".join(f"#define PMIX_VERSION_{name} {number}L\n" for name, number in zip(names, numbers, strict=True))
    pmix = next(library for library in development.LIBRARIES if library.name == "pmix")
    assert development.parse_macros(pmix, text) == ".".join(map(str, numbers))


def test_variables_of_a_pkg_config_file_are_filled_in_and_a_circle_ends() -> None:
    values = development.parse_pc("a=/opt\nb=${a}/lib\nc=${c}${c}\nVersion: 1.2 # of today\n")
    assert (values["b"], values["Version"]) == ("/opt/lib", "1.2")
    text = "x=yy\n" + "x=${x}${x}\n" * 60
    assert len(development.parse_pc(text)["x"]) <= 4096
