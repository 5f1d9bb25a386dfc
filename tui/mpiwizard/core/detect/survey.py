"""The order of detection: which probe comes when, and what happens when one of them fails."""

from __future__ import annotations

from time import monotonic

from mpiwizard.core.context import Context, Wishes
from mpiwizard.core.detect import cpu, installations, kernel, memory, network, platform, storage, system, tools
from mpiwizard.core.detect.facts import Probe, Survey, unknown_fact
from mpiwizard.core.detect.headline import headline
from mpiwizard.core.detect.model import Fact, Machine, check_fact
from mpiwizard.core.detect.sources import SourceInquiry
from mpiwizard.core.errors import WizardError
from mpiwizard.core.frontend import Frontend
from mpiwizard.core.i18n import _

PROBES: tuple[Probe, ...] = (
    *platform.PROBES,
    *system.PROBES,
    *kernel.PROBES,
    *cpu.PROBES,
    *memory.PROBES,
    *network.PROBES,
    *tools.PROBES,
    *installations.PROBES,
    *storage.PROBES,
)


def survey_machine(
    context: Context, wishes: Wishes, listener: Frontend | None, probes: tuple[Probe, ...] = PROBES
) -> Machine:
    """The machine, as `detect` describes it; `probes` are run in their order, the sources last."""
    started = monotonic()
    inquiry = SourceInquiry(context, wishes)  # overlaps with all that follows
    facts: list[Fact] = []
    for probe in (*probes, Probe(inquiry.ids, inquiry.facts)):
        survey = Survey(context.host, context.folders, wishes, context.clock(), Machine(tuple(facts)))
        for fact in read_safely(probe, survey):
            facts.append(fact)
            if listener is not None:
                listener.fact(fact)
    machine = Machine(tuple(facts))
    return Machine(machine.facts, headline(machine), monotonic() - started)


def read_safely(probe: Probe, survey: Survey) -> list[Fact]:
    """The facts of a probe. If it fails, those it did not come to are unknown, and the reason is told.

    A WizardError goes through: it is about what the person typed, such as a wrong archive.
    """
    facts: list[Fact] = []
    try:
        for fact in probe.read(survey):
            facts.append(check_fact(fact))
    except WizardError:
        raise
    except Exception as error:
        reason = _("reading it failed, {error}").format(error=f"{type(error).__name__}: {error}")
        told = {fact.id for fact in facts}
        facts += [unknown_fact(fact_id, reason) for fact_id in probe.ids if fact_id not in told]
    return facts
