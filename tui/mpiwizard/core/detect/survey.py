"""How detection goes: all probes at the same time, each with a deadline, and what happens when one fails."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic

from msgspec.structs import replace

from mpiwizard.core.context import Context, Wishes
from mpiwizard.core.detect import (
    cpu,
    development,
    fabric,
    hazards,
    hostname,
    hybrid,
    installations,
    interfaces,
    kernel,
    language,
    libraries,
    limits,
    loader,
    memory,
    microarchitecture,
    module_files,
    network,
    parameters,
    platform,
    rights,
    routes,
    scheduler,
    shell_mpi,
    silent,
    single_copy,
    slots,
    storage,
    system,
    times,
    tools,
    variables,
)
from mpiwizard.core.detect.facts import Probe, Survey, labels, printable, unknown_fact
from mpiwizard.core.detect.headline import headline
from mpiwizard.core.detect.model import Fact, Machine, check_fact
from mpiwizard.core.frontend import Frontend
from mpiwizard.core.host import Host
from mpiwizard.core.i18n import _
from mpiwizard.core.recordings import RememberingHost

PROBES: tuple[Probe, ...] = (
    *platform.PROBES,
    *system.PROBES,
    *kernel.PROBES,
    *rights.PROBES,
    *single_copy.PROBES,
    *cpu.PROBES,
    *microarchitecture.PROBES,
    *hybrid.PROBES,
    *slots.PROBES,
    *memory.PROBES,
    *interfaces.PROBES,
    *routes.PROBES,
    *network.PROBES,
    *hostname.PROBES,
    *fabric.PROBES,
    *libraries.PROBES,
    *tools.PROBES,
    *development.PROBES,
    *module_files.PROBES,
    *installations.PROBES,
    *shell_mpi.PROBES,
    *parameters.PROBES,
    *hazards.PROBES,
    *storage.PROBES,
    *silent.PROBES,
    *times.PROBES,
    *loader.PROBES,
    *variables.PROBES,
    *language.PROBES,
    *limits.PROBES,
    *scheduler.PROBES,
)


def survey_machine(
    context: Context,
    wishes: Wishes,
    listener: Frontend | None,
    probes: tuple[Probe, ...] = PROBES,
    host: Host | None = None,
) -> Machine:
    """The machine, as `detect` describes it. `host`, if given, is asked instead of the context's."""
    started = monotonic()
    survey = Survey(host or RememberingHost(context.host), context.folders, wishes, context.clock(), Machine(()))
    if points := silent.silent_mounts(survey):
        survey = replace(survey, host=RememberingHost(survey.host, points), silent=points)
    facts: list[Fact] = []
    for fact in _Gathering(context, survey, probes):
        facts.append(fact)
        if listener is not None:
            listener.fact(fact)
    machine = Machine(tuple(in_order(facts)))
    return Machine(machine.facts, printable(headline(machine)), monotonic() - started)


def in_order(facts: list[Fact]) -> list[Fact]:
    """Facts as they are shown; those of no known name last."""
    position = {fact_id: number for number, fact_id in enumerate(labels())}
    return sorted(facts, key=lambda fact: position.get(fact.id, len(position)))


class _Gathering:
    """Runs probes in threads of their own and hands out their facts as they come.

    A thread that waits for a dead drive or for a program that does not end cannot be ended from here:
    it is left behind, and what it says later is not heard.
    """

    def __init__(self, context: Context, survey: Survey, probes: tuple[Probe, ...]) -> None:
        self._context, self._survey = context, survey
        self._waiting = list(probes)
        self._deadlines: dict[int, float] = {}  # by the number of a probe that is running
        self._probes = dict(enumerate(probes))
        self._answers: SimpleQueue[tuple[int, Fact | Exception | None]] = SimpleQueue()
        self._told: dict[str, Fact] = {}
        self._open = {fact_id for probe in probes for fact_id in probe.ids}  # whose probe has not ended

    def __iter__(self) -> Iterator[Fact]:
        self._start_ready()
        while self._deadlines:
            patience = min(self._deadlines.values()) - monotonic()
            try:
                number, answer = self._answers.get(timeout=max(patience, 0))
            except Empty:
                yield from self._give_up_late()
            else:
                if number in self._deadlines:
                    yield from self._hear(number, answer)
            self._start_ready()
        if self._waiting:
            raise RuntimeError(f"probes wait for each other: {[probe.ids for probe in self._waiting]}")

    def _start_ready(self) -> None:
        for number, probe in self._probes.items():
            if probe in self._waiting and self._open.isdisjoint(probe.needs):
                self._waiting.remove(probe)
                self._deadlines[number] = monotonic() + self._context.patience
                needed = Machine(tuple(self._told[fact_id] for fact_id in probe.needs if fact_id in self._told))
                survey = replace(self._survey, now=self._context.clock(), found=needed)
                try:
                    Thread(target=self._read, args=(number, probe, survey), daemon=True).start()
                except RuntimeError as error:  # no more threads are allowed here
                    self._answers.put((number, error))

    def _read(self, number: int, probe: Probe, survey: Survey) -> None:
        try:
            for fact in probe.read(survey):
                self._answers.put((number, check_fact(fact)))
        except Exception as error:
            self._answers.put((number, error))
        else:
            self._answers.put((number, None))

    def _hear(self, number: int, answer: Fact | Exception | None) -> Iterator[Fact]:
        if isinstance(answer, Fact):
            self._told[answer.id] = answer
            yield answer
        elif answer is None:
            self._end(number)
        else:
            reason = _("reading it failed, {error}").format(error=f"{type(answer).__name__}: {answer}")
            yield from self._unknown(number, reason)

    def _give_up_late(self) -> Iterator[Fact]:
        now = monotonic()
        for number in [number for number, deadline in self._deadlines.items() if deadline <= now]:
            yield from self._unknown(number, _("timed out after {seconds:g} s").format(seconds=self._context.patience))

    def _unknown(self, number: int, reason: str) -> Iterator[Fact]:
        """What a probe did not come to, with the reason."""
        for fact_id in self._probes[number].ids:
            if fact_id not in self._told:
                self._told[fact_id] = unknown_fact(fact_id, reason)
                yield self._told[fact_id]
        self._end(number)

    def _end(self, number: int) -> None:
        del self._deadlines[number]
        self._open.difference_update(self._probes[number].ids)
