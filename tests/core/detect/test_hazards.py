"""What in a person's surroundings makes builds and jobs go wrong: PATH, variables, limits, clock, schedulers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.core.detect.boxes import MACHINES, NOW, box, context_of, recorded, texts_with

from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.detect import hazards, language, limits, loader, scheduler, times, variables
from mpiwizard.core.detect.facts import Probe, make_fact
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.host import Host, RealHost
from mpiwizard.core.recordings import RecordedHost

MODULES = (hazards, language, limits, loader, scheduler, times, variables)
CPUS = Probe(("cpu.usable",), lambda _survey: [make_fact("cpu.usable", 4, "4")])
PROBES = (CPUS, *(probe for module in MODULES for probe in module.PROBES))


def hazards_of(host: Host, prefix: str = "") -> Machine:
    """What the probes of this file's modules say of a box with four CPUs."""
    return survey_machine(context_of(host), Wishes(prefix=prefix), None, PROBES)


def with_variables(folder: Path, **environment: str) -> Machine:
    return hazards_of(box(folder, {}, None, {"HOME": "/home/ada", **environment}))


# --- PATH and names of folders ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "kinds", "state"),
    [
        ("/usr/bin:/bin", [], "ok"),
        ("/usr/bin:.:/bin", ["current"], "attention"),
        ("/usr/bin::/bin", ["current"], "attention"),  # an empty entry is the current folder too
        ("bin:/usr/bin", ["relative"], "attention"),
        ("/opt/my tools/bin:/usr/bin", ["blank"], "info"),
        (":bin:/opt/my tools", ["current", "relative", "blank"], "attention"),
    ],
)
def test_traps_in_path_are_named(tmp_path: Path, path: str, kinds: list[str], state: str) -> None:
    fact = with_variables(tmp_path, PATH=path).fact("path.blanks")
    assert ([trap["kind"] for trap in fact.value], fact.state) == (kinds, state)
    assert bool(fact.meaning) == bool(fact.action) == bool(kinds)


@pytest.mark.parametrize("prefix", ["/home/ada/my mpi", "/srv/mpi#1", "/srv/a:b"])
def test_nothing_can_be_built_into_a_folder_whose_name_breaks_make(tmp_path: Path, prefix: str) -> None:
    fact = hazards_of(box(tmp_path, {}, None, {"HOME": "/home/ada", "PATH": "/bin"}), prefix).fact("path.blanks")
    assert (fact.state, [trap["folder"] for trap in fact.value]) == ("problem", [prefix])
    assert "--prefix" in fact.action


def test_a_home_with_a_blank_is_trouble_for_both_folders(tmp_path: Path) -> None:
    fact = with_variables(tmp_path, HOME="/home/Ada L", PATH="/bin").fact("path.blanks")
    assert [trap["where"] for trap in fact.value] == ["storage.prefix", "storage.build"]


def test_a_real_folder_of_path_that_anybody_may_write_to_is_found(tmp_path: Path) -> None:
    for name, mode in (("open", 0o777), ("own", 0o755)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    environment = {"PATH": f"{tmp_path}/own:{tmp_path}/open:/usr/bin:/bin", "HOME": "/home/ada"}
    fact = hazards_of(RealHost(environment)).fact("path.blanks")
    assert (fact.state, [(trap["kind"], trap["folder"]) for trap in fact.value]) == (
        "attention", [("writable", f"{tmp_path}/open")],
    )  # fmt: skip
    assert (fact.action, "777" in fact.raw) == (f"chmod o-w {tmp_path}/open", True)


def test_folders_of_windows_are_the_other_facts(tmp_path: Path) -> None:
    machine = recorded("wsl2-ubuntu-22.04")
    assert [trap for trap in machine.value("path.blanks") if "/mnt/c" in trap["folder"]] == []


def test_a_box_whose_root_is_a_drive_of_its_host_has_no_folders_of_windows(tmp_path: Path) -> None:
    host = box(tmp_path, {"/proc/self/mountinfo": "1 0 0:9 / / rw - 9p none rw\n"}, None, {"PATH": "/usr/bin"})
    assert hazards.windows_folders(host) == []


# --- LD_LIBRARY_PATH --------------------------------------------------------------------------------


def test_an_unset_library_path_is_fine(tmp_path: Path) -> None:
    fact = with_variables(tmp_path).fact("environment.libraries")
    assert (fact.state, fact.value) == ("ok", [])


def test_folders_with_another_mpi_in_the_library_path_are_named_with_its_libraries(tmp_path: Path) -> None:
    files = {
        "/opt/old/lib/libmpi.so.40.20.3": "", "/opt/old/lib/libopen-pal.so": "", "/opt/old/lib/libmpi.a": "",
        "/opt/cuda/lib/libcudart.so": "",
    }  # fmt: skip
    value = "/opt/cuda/lib:/opt/old/lib:/gone"
    fact = hazards_of(box(tmp_path, files, None, {"LD_LIBRARY_PATH": value})).fact("environment.libraries")
    assert fact.value == [
        {"folder": "/opt/cuda/lib", "exists": True, "libraries": []},
        {"folder": "/opt/old/lib", "exists": True, "libraries": ["libmpi", "libopen-pal"]},
        {"folder": "/gone", "exists": False, "libraries": []},
    ]
    assert fact.state == "attention"
    assert "/opt/old/lib: libmpi, libopen-pal" in fact.meaning and "/gone" in fact.meaning
    assert fact.raw == f"LD_LIBRARY_PATH={value}"


def test_the_folder_of_the_installation_itself_is_no_other_mpi(tmp_path: Path) -> None:
    host = box(tmp_path, {"/srv/mpi/lib/libmpi.so": ""}, None, {"LD_LIBRARY_PATH": "/srv/mpi/lib/"})
    assert hazards_of(host, "/srv/mpi").fact("environment.libraries").state == "info"
    assert hazards_of(host, "/srv/other").fact("environment.libraries").state == "attention"


def test_an_empty_entry_of_the_library_path_is_the_current_folder(tmp_path: Path) -> None:
    fact = with_variables(tmp_path, LD_LIBRARY_PATH="/usr/lib:").fact("environment.libraries")
    assert (fact.state, [one["folder"] for one in fact.value]) == ("attention", ["/usr/lib", ""])


# --- variables --------------------------------------------------------------------------------------


def test_no_variable_is_fine_and_mca_parameters_are_another_fact(tmp_path: Path) -> None:
    fact = with_variables(tmp_path, OMPI_MCA_pml="ucx", PMIX_MCA_gds="hash", EDITOR="vi")
    assert (fact.value("environment.variables"), fact.fact("environment.variables").state) == ([], "ok")


@pytest.mark.parametrize(
    ("name", "value", "state"),
    [
        ("FI_PROVIDER", "tcp", "attention"),
        ("FI_EFA_USE_DEVICE_RDMA", "1", "attention"),
        ("FI_LOG_LEVEL", "warn", "info"),
        ("UCX_TLS", "tcp", "attention"),
        ("UCX_NET_DEVICES", "mlx5_0:1", "attention"),
        ("UCX_LOG_LEVEL", "info", "info"),
        ("OPAL_PREFIX", "/opt/moved", "attention"),
        ("OMPI_CC", "clang", "attention"),
        ("OMPI_ALLOW_RUN_AS_ROOT", "1", "info"),
        ("HWLOC_XMLFILE", "/tmp/other.xml", "attention"),
        ("LD_PRELOAD", "/usr/lib/libasan.so", "attention"),
        ("MPIEXEC_TIMEOUT", "60", "attention"),
        ("I_MPI_ROOT", "/opt/intel", "info"),
        ("OMPI_NEVER_HEARD_OF", "1", "info"),
    ],
)
def test_known_variables_are_told_with_what_they_do(tmp_path: Path, name: str, value: str, state: str) -> None:
    fact = with_variables(tmp_path, **{name: value}).fact("environment.variables")
    assert (fact.state, fact.value) == (state, [{"name": name, "value": value}])
    assert fact.raw == f"{name}={value}" and name in fact.meaning
    assert ("unset " + name in fact.action) == (state == "attention")


def test_what_may_be_a_secret_is_not_shown(tmp_path: Path) -> None:
    fact = with_variables(
        tmp_path, UCX_API_TOKEN="hunter2", FI_PROXY="http://ada:hunter2@proxy/", PMIX_AUTH_KEY="hunter2"
    ).fact("environment.variables")
    assert "hunter2" not in repr(fact)
    assert len(fact.value) == 3


def test_a_shell_inside_of_a_job_is_told_once_and_not_by_all_its_variables(tmp_path: Path) -> None:
    fact = with_variables(
        tmp_path, OMPI_UNIVERSE_SIZE="2", OMPI_COMM_WORLD_RANK="0", PMIX_RANK="0", PMIX_NAMESPACE="x", UCX_TLS="sm,self"
    ).fact("environment.variables")
    assert [one["name"] for one in fact.value] == ["OMPI_UNIVERSE_SIZE", "UCX_TLS"]
    assert fact.state == "attention" and "4.x refuses" in fact.meaning


@pytest.mark.parametrize(("threads", "told"), [("1", False), ("8", True), ("8,2", True), ("many", False), ("", False)])
def test_threads_of_openmp_are_multiplied_by_the_ranks(tmp_path: Path, threads: str, told: bool) -> None:
    fact = with_variables(tmp_path, OMP_NUM_THREADS=threads).fact("environment.variables")
    assert ("32 threads" in fact.meaning, fact.state) == (told, "info")


# --- language ---------------------------------------------------------------------------------------

INSTALLED = {"locale": {"output": ""}, "locale -a": {"output": "C\nC.utf8\nPOSIX\nde_DE.utf8\nen_US.utf8\n"}}


@pytest.mark.parametrize(
    ("environment", "name", "state", "installed"),
    [
        ({"LANG": "en_US.UTF-8"}, "en_US.UTF-8", "ok", True),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "fr_FR.UTF-8"}, "fr_FR.UTF-8", "info", False),
        ({"LANG": "en_US.UTF-8", "LC_ALL": ""}, "en_US.UTF-8", "ok", True),  # an empty one is none
        ({"LC_CTYPE": "C.UTF-8", "LANG": "C"}, "C.UTF-8", "ok", True),
        ({"LANG": "C"}, "C", "info", True),
        ({"LANG": "de_DE"}, "de_DE", "info", False),
    ],
)
def test_a_language_that_is_missing_or_knows_no_utf8_is_told(
    tmp_path: Path, environment: dict[str, str], name: str, state: str, installed: bool
) -> None:
    fact = hazards_of(box(tmp_path, {}, INSTALLED, environment)).fact("environment.locale")
    assert (fact.value["name"], fact.state, fact.value["installed"]) == (name, state, installed)
    assert bool(fact.action) == (state != "ok")


def test_no_language_at_all_is_c(tmp_path: Path) -> None:
    fact = with_variables(tmp_path).fact("environment.locale")
    assert (fact.value, fact.state, fact.action) == (None, "info", "export LC_ALL=C.UTF-8")


def test_where_nobody_lists_languages_one_is_not_called_missing(tmp_path: Path) -> None:
    fact = with_variables(tmp_path, LANG="xx_XX.UTF-8").fact("environment.locale")
    assert (fact.state, fact.value["installed"]) == ("ok", None)


# --- limits -----------------------------------------------------------------------------------------


def limits_file(files: str = "1024 524288", processes: str = "63000 63000") -> dict[str, str]:
    soft, hard = files.split()
    most, hardest = processes.split()
    text = (
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        f"Max processes             {most:<20} {hardest:<20} processes \n"
        f"Max open files            {soft:<20} {hard:<20} files     \n"
    )
    status = "Name:\tbash\nUid:\t1000\t1000\t1000\t1000\nThreads:\t90\n"
    return {"/proc/self/limits": text, "/proc/self/status": status, "/proc/77/status": status}


@pytest.mark.parametrize(
    ("files", "value", "state", "action"),
    [
        ("1024 524288", 1024, "ok", ""),
        ("unlimited unlimited", None, "ok", ""),
        ("256 4096", 256, "info", "ulimit -n 4096"),
        ("40 4096", 40, "attention", "ulimit -n 4096"),  # too few for two ranks on each of four CPUs
    ],
)
def test_a_low_limit_of_open_files_is_told_with_its_mend(
    tmp_path: Path, files: str, value: int | None, state: str, action: str
) -> None:
    fact = hazards_of(box(tmp_path, limits_file(files))).fact("environment.files")
    assert (fact.value, fact.state, fact.action) == (value, state, action)
    assert "Max open files" in fact.raw


def test_what_is_usual_is_too_little_for_a_host_of_many_cpus(tmp_path: Path) -> None:
    many = Probe(("cpu.usable",), lambda _survey: [make_fact("cpu.usable", 192, "192")])
    host = box(tmp_path, limits_file("1024 524288"))
    machine = survey_machine(context_of(host), Wishes(), None, (many, *limits.PROBES))
    fact = machine.fact("environment.files")
    assert (fact.state, fact.action) == ("attention", "ulimit -n 524288")
    assert "enough for 248 ranks" in fact.meaning and "Enough for this host" not in fact.meaning


def test_a_limit_that_cannot_be_raised_needs_an_administrator(tmp_path: Path) -> None:
    assert "limits.conf" in hazards_of(box(tmp_path, limits_file("64 64"))).fact("environment.files").action


@pytest.mark.parametrize(("most", "state"), [("63000 63000", "ok"), ("128 128", "ok"), ("120 120", "attention")])
def test_processes_that_run_already_count_against_their_limit(tmp_path: Path, most: str, state: str) -> None:
    fact = hazards_of(box(tmp_path, limits_file(processes=most))).fact("environment.processes")
    assert (fact.state, fact.value) == (state, int(most.split()[0]))


def test_the_control_group_may_allow_fewer_processes_than_the_limit(tmp_path: Path) -> None:
    files = {
        **limits_file(),
        "/proc/self/cgroup": "0::/\n",
        "/proc/self/mountinfo": "1 0 0:9 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
        "/sys/fs/cgroup/pids.max": "100\n",
        "/sys/fs/cgroup/pids.current": "90\n",
    }
    fact = hazards_of(box(tmp_path, files)).fact("environment.processes")
    assert (fact.state, fact.value, fact.read_from) == ("attention", 100, "/sys/fs/cgroup/pids.max")
    assert "--pids-limit" in fact.action


def test_a_real_limit_of_open_files_is_read(tmp_path: Path) -> None:
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))
from pathlib import Path
from mpiwizard.core.context import Context, Folders, Wishes
from mpiwizard.core.detect import limits
from mpiwizard.core.detect.survey import survey_machine
from mpiwizard.core.host import RealHost
folder = Path({str(tmp_path)!r})
context = Context(RealHost(), Folders(folder, folder, folder), offline=True)
print(survey_machine(context, Wishes(), None, limits.PROBES).value("environment.files"))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(limits.__file__).parents[3])}
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment)
    assert result.stdout == "200\n"


# --- schedulers -------------------------------------------------------------------------------------

PBS_FILE = "node7\nnode7\nnode9\n"
SGE_FILE = "node7 4 all.q@node7 UNDEFINED\nnode9 2 all.q@node9 UNDEFINED\n"


@pytest.mark.parametrize(
    ("environment", "job"),
    [
        ({"SLURM_JOB_ID": "42", "SLURM_NNODES": "2", "SLURM_NTASKS": "8"}, ("Slurm", "42", 2, 8)),
        ({"SLURM_JOBID": "42", "SLURM_JOB_NUM_NODES": "1"}, ("Slurm", "42", 1, None)),
        ({"PBS_JOBID": "7.server", "PBS_NODEFILE": "/var/spool/pbs/nodes"}, ("PBS", "7.server", 2, 3)),
        ({"PBS_JOBID": "7.server", "PBS_NODEFILE": "/gone"}, ("PBS", "7.server", None, None)),
        ({"LSB_JOBID": "9", "LSB_HOSTS": "a a b"}, ("LSF", "9", 2, 3)),
        ({"LSB_JOBID": "9", "LSB_MCPU_HOSTS": "a 16 b 16"}, ("LSF", "9", 2, 32)),
        ({"JOB_ID": "5", "PE_HOSTFILE": "/var/spool/sge/pe"}, ("Grid Engine", "5", 2, 6)),
        ({"JOB_ID": "5", "SGE_ROOT": "/opt/sge", "NSLOTS": "1"}, ("Grid Engine", "5", None, 1)),
        ({"FLUX_JOB_ID": "f1", "FLUX_JOB_NNODES": "3", "FLUX_JOB_SIZE": "12"}, ("Flux", "f1", 3, 12)),
        ({"KUBERNETES_SERVICE_HOST": "10.96.0.1", "HOSTNAME": "solver-0"}, ("Kubernetes", "solver-0", None, None)),
        ({"JOB_ID": "5"}, None),  # so does many a program of another kind
    ],
)
def test_the_job_of_a_scheduler_is_known_by_its_variables(
    tmp_path: Path, environment: dict[str, str], job: tuple[str, str, int | None, int | None] | None
) -> None:
    host = box(tmp_path, {"/var/spool/pbs/nodes": PBS_FILE, "/var/spool/sge/pe": SGE_FILE}, None, environment)
    fact = hazards_of(host).fact("environment.scheduler")
    assert fact.value == (job and dict(zip(("name", "job", "nodes", "tasks"), job, strict=True)))
    assert (fact.state == "attention") == (job is not None and job[0] != "Kubernetes")
    assert bool(fact.raw) == bool(fact.meaning) == (job is not None)


def test_a_shell_that_srun_started_is_told_apart(tmp_path: Path) -> None:
    meaning = with_variables(tmp_path, SLURM_JOB_ID="42", SLURM_STEP_ID="0").fact("environment.scheduler").meaning
    assert "salloc" in meaning


def test_a_job_with_fewer_tasks_than_cpus_leaves_fewer_slots(tmp_path: Path) -> None:
    for number, (tasks, told) in enumerate((("2", True), ("4", False))):
        variables = {"SLURM_JOB_ID": "42", "SLURM_NNODES": "1", "SLURM_NTASKS": tasks}
        fact = with_variables(tmp_path / str(number), **variables).fact("environment.scheduler")
        assert ("not enough slots" in fact.meaning) is told


def test_recorded_jobs_and_pods_are_known() -> None:
    assert recorded("slurm-job").fact("environment.scheduler").text == "Slurm job 4711, 2 hosts, 8 tasks"
    assert recorded("kubernetes").value("environment.scheduler")["name"] == "Kubernetes"
    assert recorded("bare-metal").value("environment.scheduler") is None


# --- files from the future --------------------------------------------------------------------------


def stat_box(folder: Path, ahead: int, files: dict[str, str] | None = None) -> RecordedHost:
    """A box whose `stat` says that /etc was changed so many seconds after now."""
    printed = {"output": f"{NOW - 9000:.0f} /home/ada\n{NOW + ahead:.0f} /etc\n"}
    kept = {"/home/ada/.profile": "", "/etc/passwd": "", **(files or {})}
    return box(folder, kept, {"stat -c %Y %n /home/ada /etc": printed}, {"HOME": "/home/ada"})


@pytest.mark.parametrize(
    ("ahead", "state"), [(-100, "ok"), (0, "ok"), (30, "ok"), (61, "attention"), (9000, "attention")]
)
def test_files_from_the_future_are_told(tmp_path: Path, ahead: int, state: str) -> None:
    fact = hazards_of(stat_box(tmp_path, ahead)).fact("storage.times")
    assert (fact.state, fact.value) == (state, ahead if state == "attention" else 0)
    assert ("/etc" in fact.text) == (state == "attention")


def test_under_wsl_the_mend_of_a_clock_that_is_behind_is_another(tmp_path: Path) -> None:
    layer = Probe(("platform.layer",), lambda _survey: [make_fact("platform.layer", "wsl2", "WSL2")])
    machine = survey_machine(context_of(stat_box(tmp_path, 700)), Wishes(), None, (layer, *times.PROBES))
    assert "wsl --shutdown" in machine.fact("storage.times").action


def test_a_real_file_of_a_run_that_lies_in_the_future_is_found(tmp_path: Path) -> None:
    run = tmp_path / "state" / "runs" / "20260101-120000-4.1.4"
    run.mkdir(parents=True)
    (run / "plan.json").write_text("{}")
    context = Context(RealHost(), Folders(tmp_path / "state", tmp_path, tmp_path), offline=True)
    assert survey_machine(context, Wishes(), None, times.PROBES).fact("storage.times").state == "ok"
    ahead = context.clock() + 3600
    os.utime(run / "plan.json", (ahead, ahead))
    fact = survey_machine(context, Wishes(), None, times.PROBES).fact("storage.times")
    assert (fact.state, "plan.json" in fact.text) == ("attention", True)
    assert fact.value == pytest.approx(3600, abs=60)


# --- all of them ------------------------------------------------------------------------------------

IDS = {fact_id for probe in PROBES if probe is not CPUS for fact_id in probe.ids}


@pytest.mark.parametrize("name", sorted(path.name for path in MACHINES.iterdir() if path.is_dir()))
def test_every_hazard_shows_what_was_read_and_what_it_would_break(name: str) -> None:
    machine = hazards_of(RecordedHost(MACHINES / name))
    found = [fact for fact in machine.facts if fact.id in IDS]
    assert {fact.id for fact in found} >= IDS - {"path.windows"}
    for fact in found:
        assert fact.see_yourself, fact.id
        assert fact.state != "unknown" or fact.text.startswith("not known: ")
        assert fact.state in ("unknown", "ok", "info") or (fact.meaning and fact.action), fact.id
        assert fact.raw or not fact.value, fact.id


texts = texts_with(
    "C", ".", "@", "utf8", "\n", "1024", "unlimited", "Max open files", "Max processes", " ", "777", "/", ":", "-1",
    "99999999999999999999", "Threads:\t", "Uid:\t0", "²", "=", "/opt/x", "\0",
)  # fmt: skip
PARSERS = (
    hazards.parse_modes, times.parse_times, language.parse_locales, language.plain_name,
    lambda text: limits.parse_limit(text, "Max open files"), lambda text: list(hazards.traps_in_names(text, ())),
    lambda text: variables.shown_value("UCX_TLS", text), variables.effect_of,
)  # fmt: skip


@pytest.mark.parametrize("parse", PARSERS)
@settings(max_examples=100)
@given(text=texts)
def test_no_text_makes_a_parser_fail(parse: object, text: str) -> None:
    parse(text)  # type: ignore[operator]


class Saying(RecordedHost):
    """A host of which every file and every command says the same."""

    def __init__(self, text: str, environment: dict[str, str]) -> None:
        self.text, self.environment = text, environment

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        return self.text


JOBS = (
    scheduler.slurm_job, scheduler.pbs_job, scheduler.lsf_job, scheduler.gridengine_job, scheduler.flux_job,
)  # fmt: skip
JOB_VARIABLES = (
    "SLURM_JOB_ID", "SLURM_NNODES", "SLURM_NTASKS", "PBS_JOBID", "PBS_NODEFILE", "LSB_JOBID", "LSB_MCPU_HOSTS",
    "JOB_ID", "PE_HOSTFILE", "FLUX_JOB_ID", "FLUX_JOB_SIZE",
)  # fmt: skip


@pytest.mark.parametrize("find", JOBS)
@settings(max_examples=100)
@given(text=texts, value=texts)
def test_no_variable_and_no_file_makes_the_search_for_a_job_fail(
    find: Callable[[Host, Mapping[str, str]], scheduler.Job | None], text: str, value: str
) -> None:
    environment = dict.fromkeys(JOB_VARIABLES, value)
    assert find(Saying(text, environment), environment) is None or value


@settings(max_examples=50)
@given(value=texts)
def test_values_are_shown_shortened_and_whole_facts_can_be_written(value: str) -> None:
    assert len(variables.shown_value("UCX_TLS", value)) <= 60
    assert isinstance(make_fact("environment.variables", [value], value), Fact)
