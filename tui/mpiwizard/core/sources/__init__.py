"""Where Open MPI's source comes from: the official release, the distribution, or a local archive."""

from __future__ import annotations

from mpiwizard.core.context import Context, Wishes
from mpiwizard.core.sources.model import Availability

KINDS = ("release", "distro", "archive")


def probe(context: Context, wishes: Wishes) -> tuple[Availability, ...]:
    """What each source offers here, asked at the same time; the deadlines add up to half a minute at most.

    Only an archive that the person gave raises (WizardError): it can be mended by typing it again.
    """
    from concurrent.futures import ThreadPoolExecutor

    from mpiwizard.core.sources import archive, distro, release

    given = archive.probe(context, wishes)  # first: a wrong path must not wait for the network
    asked = (release.probe, distro.probe)
    with ThreadPoolExecutor(len(asked)) as pool:
        futures = [pool.submit(ask, context, wishes) for ask in asked]
        return (*(future.result() for future in futures), given)
