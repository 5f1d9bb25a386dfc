"""Stage 1, detect: a host becomes a machine, fact by fact, each with its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiwizard.core.context import Context, Wishes
    from mpiwizard.core.detect.model import Machine
    from mpiwizard.core.frontend import Frontend


def detect(context: Context, wishes: Wishes, listener: Frontend | None = None) -> Machine:
    """Everything that is known of the box, in a fixed order.

    The listener hears of each fact as it is found, in that order and in the calling thread. Takes
    under a second, plus the time the sources need to answer. Nothing that is read here can make it
    fail: what cannot be read is a fact of state unknown, with the reason. Raises WizardError only when
    the person named an archive that cannot be used.
    """
    from mpiwizard.core.detect.survey import survey_machine

    return survey_machine(context, wishes, listener)
