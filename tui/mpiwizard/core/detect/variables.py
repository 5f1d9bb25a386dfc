"""Variables of the person's environment that change what Open MPI and the libraries below it do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from mpiwizard.core.detect.facts import Probe, Survey, make_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.i18n import _, ngettext

# Those of MCA parameters are mpi.settings.
_OURS = re.compile(
    r"(?!(?:OMPI|PMIX|PRTE)_MCA_)"
    r"(?:(?:OMPI|OPAL|ORTE|PMIX|PRTE|PMI|UCX|FI|RDMAV|HWLOC|HYDRA|I_MPI|MPICH|MPI|MV2|NCCL|KMP|OMP)_\w+"
    r"|MPIEXEC_TIMEOUT|LD_PRELOAD|LD_AUDIT)"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE|_KEY\b|AUTH|COOKIE|JWT", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"://[^/\s@]+@")
_INSIDE = ("OMPI_UNIVERSE_SIZE", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")  # what mpirun sets for each rank
_OF_RANK = re.compile(  # what it sets beside
    r"OMPI_(?:COMM_WORLD|WORLD|UNIVERSE|APP_CTX|NUM_APP|FIRST_RANKS|FILE_LOC|LIBDIR|TOOL|COMMAND|ARGV|VERSION)\w*"
    r"|(?:PMIX|PRTE|PMI|HYDRA|ORTE)_\w+|OPAL_USER_PARAMS_GIVEN"
)
_CLEARED = ("OMPI_", "OPAL_", "PMIX_", "PRTE_")  # what mpiwizard takes away from jobs of its own (core/installation.py)
_LONGEST = 60  # characters of a value that are shown


class Effect(Struct, frozen=True):
    """What a variable does, and whether one has to look at it: `state` is attention or info."""

    name: str  # a regular expression for the whole name
    state: str
    meaning: str


def effects() -> tuple[Effect, ...]:
    """Known variables; the first that fits counts.

    OMPI_*, OPAL_PREFIX: tried on 4.1.4 and 5.0.11; UCX_*, FI_*: the manuals of UCX and libfabric (fi_efa(7)),
    HWLOC_*: hwloc's manual.
    """
    return (
        Effect("OMPI_ALLOW_RUN_AS_ROOT(_CONFIRM)?", "info", _("mpirun starts programs as root without asking.")),
        Effect("OMPI_(CC|CXX|FC|F77|CPPFLAGS|CFLAGS|CXXFLAGS|FCFLAGS|LDFLAGS|LIBS)", "attention",
               _("mpicc and its like take another compiler, or other options, than Open MPI was built with.")),
        Effect("OPAL_(PREFIX|LIBDIR|DESTDIR)|PMIX_PREFIX|PMIX_INSTALL_PREFIX|PRTE_PREFIX", "attention",
               _("It tells every Open MPI that it lies there; one that lies elsewhere looks for its parts in vain.")),
        Effect("FI_PROVIDER", "attention",
               _("Every program that uses libfabric gets this provider only; better name it to Open MPI alone.")),
        Effect("FI_EFA_USE_DEVICE_RDMA", "attention",
               _("libfabric decides by the device; where it has no RDMA read, 1 makes the start fail.")),
        Effect("FI_\\w+|RDMAV_\\w+", "info", _("It changes libfabric, or the RDMA library, in every program.")),
        Effect("UCX_TLS", "attention",
               _("UCX uses these transports only; without self and sm, ranks of one host find no way to each other.")),
        Effect("UCX_NET_DEVICES", "attention",
               _("UCX uses these devices only; a name that is not on this box leaves it without a network.")),
        Effect("UCX_\\w+", "info", _("It changes UCX in every program.")),
        Effect("HWLOC_(XMLFILE|SYNTHETIC|FSROOT|CPUID_PATH)", "attention",
               _("hwloc takes the box for another one, so slots and binding are those of a foreign box.")),
        Effect("HWLOC_\\w+", "info", _("It changes what hwloc sees of the box.")),
        Effect("LD_PRELOAD|LD_AUDIT", "attention",
               _("A foreign library comes before all others, in each rank as well.")),
        Effect("MPIEXEC_TIMEOUT", "attention", _("mpirun ends every job after so many seconds.")),
        Effect("(OMP|KMP)_\\w+", "info", ""),
        Effect("(I_MPI|MPICH|MV2|HYDRA|NCCL)_\\w+", "info", _("It is meant for another library than Open MPI.")),
        Effect("MPI_\\w+", "info", _("Open MPI reads none of these; builds of programs may find another MPI by them.")),
    )  # fmt: skip


def effect_of(name: str) -> Effect | None:
    return next((effect for effect in effects() if re.fullmatch(effect.name, name)), None)


def shown_value(name: str, value: str) -> str:
    """A value as it may be shown: not what may be a secret."""
    if _SECRET.search(name) or _SECRET_VALUE.search(value):
        return _("(not shown)")
    return value if len(value) <= _LONGEST else value[: _LONGEST - 1] + "…"


def relevant(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of interest, with the values that may be shown; those of an mpirun around us are one."""
    inside = next((name for name in _INSIDE if name in environment), None)
    return {
        name: shown_value(name, value)
        for name, value in sorted(environment.items())
        if _OURS.fullmatch(name) and (inside is None or name == inside or not _OF_RANK.fullmatch(name))
    }


def read_variables(survey: Survey) -> Iterator[Fact]:
    variables = relevant(survey.host.environment)
    see = (
        "env | grep -E '^(OMPI|OPAL|ORTE|PMIX?|PRTE|UCX|FI|RDMAV|HWLOC|HYDRA|I_MPI|MPI|MPICH|MV2|NCCL|KMP|OMP)_"
        "|^(MPIEXEC_TIMEOUT|LD_PRELOAD|LD_AUDIT)=' | grep -v _MCA_"
    )
    if not variables:
        yield make_fact("environment.variables", [], _("none"), "ok", read_from=_("environment"), see_yourself=see)
        return
    inside = next((name for name in _INSIDE if name in variables), None)
    known = {name: effect_of(name) for name in variables if name != inside}
    heavy = [name for name, effect in known.items() if effect is not None and effect.state == "attention"]
    others = [name for name, effect in known.items() if effect is None]
    meanings = [] if inside is None else [_inside(inside)]
    meanings += [f"{name}: {effect.meaning}" for name, effect in known.items() if effect is not None and effect.meaning]
    meanings += _threads(variables, survey.found.value("cpu.usable"))
    if others:
        meanings.append(_("What these do is not known here: {names}.").format(names=", ".join(others)))
    to_unset = [*heavy, *([inside] if inside else [])]
    yield make_fact(
        "environment.variables",
        [{"name": name, "value": value} for name, value in variables.items()],
        _variables_text(list(variables), to_unset),
        "attention" if to_unset else "info",
        read_from=_("environment"),
        raw="\n".join(f"{name}={value}" for name, value in variables.items()),
        see_yourself=see,
        meaning=" ".join(meanings),
        action=_action(heavy, inside),
    )


def _variables_text(names: list[str], first: list[str]) -> str:
    """The names, those to look at first."""
    ordered = [*first, *(name for name in names if name not in first)]
    text = ", ".join(ordered[:3])
    more = len(ordered) - 3
    if more > 0:
        text += " " + ngettext("and {count} more", "and {count} more", more).format(count=more)
    return text


def _inside(name: str) -> str:
    """Tried: 4.1.4 refuses by OMPI_UNIVERSE_SIZE, with `does not support recursive calls`; 5.0.11 starts the job."""
    started = _("{name}: this shell was started as a rank of a job.").format(name=name)
    if name == "OMPI_UNIVERSE_SIZE":
        return started + " " + _("An mpirun of Open MPI 4.x refuses to start in it; one of 5.x does start.")
    return started + " " + _("A program of MPI that is started here without mpirun may take part in that job.")


def _threads(variables: Mapping[str, str], usable: int | None) -> list[str]:
    """What OMP_NUM_THREADS makes of ranks."""
    number = variables.get("OMP_NUM_THREADS", "").partition(",")[0]
    if not (number.isascii() and number.isdigit() and len(number) < 6 and int(number) > 1 and usable):
        return []
    count = int(number) * usable
    return [
        _(
            "OMP_NUM_THREADS: each rank starts {number} threads where it uses OpenMP; a rank on each of {usable} CPUs "
            "makes {count} threads."
        ).format(number=number, usable=usable, count=count)
    ]


def _action(heavy: list[str], inside: str | None) -> str:
    sentences = []
    if inside or any(name.startswith(_CLEARED) for name in heavy):
        sentences.append(_("mpiwizard leaves out OMPI_*, OPAL_*, PMIX_* and PRTE_* for the jobs that it starts."))
    if inside:
        sentences.append(_("Start yours in a shell outside of that job."))
    if heavy:
        sentences.append(_("To go on without: unset {names}").format(names=" ".join(heavy)))
    return " ".join(sentences)


PROBES = (Probe(("environment.variables",), read_variables, ("cpu.usable",)),)
