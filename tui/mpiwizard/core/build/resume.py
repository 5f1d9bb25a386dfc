"""What an interrupted run goes on with: which steps count as done, which are repeated, and why."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from mpiwizard.core.build.makefiles import count_compilations
from mpiwizard.core.build.model import RunState, StepState
from mpiwizard.core.configure.model import Plan, Step
from mpiwizard.core.i18n import _

KEEP, AGAIN, CLEAN, CONTINUE, FIRST = "keep", "again", "clean", "continue", "first"


class Decision(Struct, frozen=True):
    """What happens to one step. `action`: keep, first, again, clean (build folder made anew) or continue."""

    step: str
    action: str
    why: str


def decide(run: RunState) -> tuple[Decision, ...]:
    """One decision per step, in order. Once a step is repeated, all that rest on it are too."""
    decisions = []
    repeat_because = ""
    for step, state in zip(run.plan.steps, run.steps, strict=True):
        decision = _decide(run.plan, step, state, repeat_because)
        if decision.action not in (KEEP, CONTINUE, FIRST) and not repeat_because:
            repeat_because = _("{step} is done again").format(step=step.id)
        decisions.append(decision)
    return tuple(decisions)


def _decide(plan: Plan, step: Step, state: StepState, repeat_because: str) -> Decision:
    if state.state == "waiting":
        return Decision(step.id, FIRST, "")
    if repeat_because:
        return Decision(step.id, CLEAN if step.safe_again == "clean" else AGAIN, repeat_because)
    if state.state == "done":
        if missing := _missing_product(plan, step.id):
            return Decision(step.id, _redo(step), _("{path} is gone").format(path=missing))
        return Decision(step.id, KEEP, state.detail)
    if step.safe_again == "continue":
        return Decision(step.id, CONTINUE, _continues(plan))
    return Decision(step.id, _redo(step), _("it did not finish"))


def _redo(step: Step) -> str:
    return {"clean": CLEAN, "continue": CONTINUE}.get(step.safe_again, AGAIN)


def _continues(plan: Plan) -> str:
    compiled, total = compiled_so_far(Path(plan.build_folder)), count_compilations(Path(plan.build_folder))
    return _("{compiled:,} of {total:,} files are compiled").format(compiled=compiled, total=total)


def _missing_product(plan: Plan, step: str) -> str:
    """The product of a finished step that is not there any more; empty when all is well."""
    products = {
        "unpack": [f"{plan.source_folder}/configure"],
        "configure": [f"{plan.build_folder}/config.status", f"{plan.build_folder}/Makefile"],
        "install": [f"{plan.prefix}/bin/mpicc", f"{plan.prefix}/bin/mpirun"],
    }
    return next((path for path in products.get(step, ()) if not Path(path).exists()), "")


def compiled_so_far(build_folder: Path) -> int:
    """The number of finished compilations in a build folder.

    libtool writes `x.lo` after its objects are whole; a plain `x.o` without one counts by itself.
    """
    finished = 0
    for folder, names in _folders(build_folder):
        if folder.name == ".libs":
            continue
        finished += sum(
            name.endswith(".lo") or (name.endswith(".o") and f"{name[:-2]}.lo" not in names) for name in names
        )
    return finished


def _folders(top: Path) -> Iterator[tuple[Path, frozenset[str]]]:
    import os

    for folder, _below, names in os.walk(top):
        yield Path(folder), frozenset(names)


def remove_torn(build_folder: Path) -> tuple[str, ...]:
    """Remove objects and libraries that a killed compiler left unfinished; their paths.

    make trusts a time stamp, and a torn object is younger than its source. Torn is: empty, or an ELF
    file shorter than its own header says.
    """
    removed = []
    for folder, names in _folders(build_folder):
        for name in names:
            if not name.endswith((".o", ".lo", ".la", ".a", ".so")):
                continue
            path = folder / name
            if not path.is_symlink() and _is_torn(path):
                path.unlink(missing_ok=True)
                removed.append(str(path))
                if folder.name == ".libs":
                    (folder.parent / name).with_suffix(".lo").unlink(missing_ok=True)
    return tuple(sorted(removed))


def _is_torn(path: Path) -> bool:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            header = file.read(64)
    except OSError:
        return False
    if size == 0:
        return True
    if header[:4] != b"\x7fELF":
        return False
    return size < elf_extent(header)


def elf_extent(header: bytes) -> int:
    """The size an ELF file must have at least: the end of its section header table, from its header.

    Offsets are those of the System V ABI, chapter 4: e_shoff, e_shentsize, e_shnum.
    """
    order = "<" if header[5:6] == b"\x01" else ">"
    wide = header[4:5] == b"\x02"
    form, at, counts_at = ("Q", 40, 58) if wide else ("I", 32, 46)
    if len(header) < counts_at + 4:
        return counts_at + 4
    (offset,) = struct.unpack_from(order + form, header, at)
    entry, count = struct.unpack_from(order + "HH", header, counts_at)
    return int(offset) + int(entry) * int(count) if offset else len(header)
