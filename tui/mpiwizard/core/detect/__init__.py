"""Stage 1, detect: a host becomes a machine, fact by fact, each with its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiwizard.core.context import Context, Wishes
    from mpiwizard.core.detect.model import Machine
    from mpiwizard.core.frontend import Frontend


def detect(context: Context, wishes: Wishes, listener: Frontend | None = None) -> Machine:
    """Everything that is known of the box, in a fixed order; the network is not used.

    The listener hears of each fact as it is found, in the calling thread. Takes under a second; a probe
    that is not done when the context's patience ends is given up. Nothing that is read here can make it
    fail: what cannot be read is a fact of state unknown, with the reason.
    """
    from mpiwizard.core.detect.survey import survey_machine

    return survey_machine(context, wishes, listener)


def ask_sources(
    machine: Machine, context: Context, wishes: Wishes, listener: Frontend | None = None
) -> Machine:
    """The machine with one fact for each kind of source; the network is used unless the context is offline.

    Raises WizardError when the person named an archive that cannot be used.
    """
    from mpiwizard.core.detect.sources import with_sources

    return with_sources(machine, context, wishes, listener)
