"""Which sources of Open MPI this box can reach; they are asked while everything else is read."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

from mpiwizard.core.context import Context, Wishes
from mpiwizard.core.detect.facts import Survey, make_fact, unknown_fact
from mpiwizard.core.detect.model import Fact
from mpiwizard.core.format import size
from mpiwizard.core.i18n import _
from mpiwizard.core.sources.model import Availability

PATIENCE = 60.0  # seconds; each source has deadlines of its own, this one is for what nobody thought of
KINDS = ("release", "distro", "archive")
CLAIMS = {"release": (12, 13, 14), "distro": (52,), "archive": (14,)}


class SourceInquiry:
    """Asks the sources in a thread from its making on; `facts` waits for the answer.

    On a recorded box nothing is asked: the network here would answer for another machine.
    """

    ids = (*(f"source.{kind}" for kind in KINDS), "sources.any")

    def __init__(self, context: Context, wishes: Wishes) -> None:
        self._context, self._wishes = context, wishes
        self._answer: tuple[Availability, ...] | None = None
        self._error: Exception | None = None
        self._thread = Thread(target=self._ask, name="sources", daemon=True)
        if context.host.is_real:
            self._thread.start()

    def _ask(self) -> None:
        from mpiwizard.core.sources import probe

        try:
            self._answer = probe(self._context, self._wishes)
        except Exception as error:
            self._error = error

    def facts(self, survey: Survey) -> Iterator[Fact]:
        """One fact for each kind of source, and whether there is any. Raises what the inquiry raised."""
        if not self._context.host.is_real:
            for fact_id in self.ids:
                yield unknown_fact(fact_id, _("a recorded box is not asked"))
            return
        self._thread.join(PATIENCE)
        if self._error is not None:
            raise self._error
        if self._answer is None:
            for fact_id in self.ids:
                yield unknown_fact(fact_id, _("no answer in time"))
            return
        asked = [one for one in self._answer if one.kind != "archive" or self._wishes.archive]
        yield from source_facts(tuple(asked), offline=self._context.offline)


def source_facts(answer: tuple[Availability, ...], offline: bool = False) -> Iterator[Fact]:
    """What the sources answered, as facts. Offline, silence is no surprise."""
    by_kind = {availability.kind: availability for availability in answer}
    for kind in KINDS:
        availability = by_kind.get(kind)
        if availability is None:
            yield make_fact(f"source.{kind}", None, _("none named"), claims=CLAIMS[kind])
        else:
            yield _source_fact(availability, offline)
    reachable = [availability.kind for availability in answer if availability.reachable]
    yield make_fact(
        "sources.any",
        bool(reachable),
        ", ".join(reachable) or _("none within reach"),
        "ok" if reachable else "problem",
        see_yourself="mpiwizard detect",
        meaning="" if reachable else _("There is nothing to build from."),
        action=""
        if reachable
        else _("Fetch an archive of Open MPI elsewhere and name it with --archive FILE, or set HTTPS_PROXY."),
        rests_on=tuple(f"source.{kind}" for kind in KINDS),
    )


def _source_fact(availability: Availability, offline: bool) -> Fact:
    fact_id = f"source.{availability.kind}"
    if not availability.reachable:
        return make_fact(
            fact_id,
            None,
            _("not asked") if offline else _("not within reach"),
            "info" if offline else "attention",
            meaning=availability.reason,
            action=_("Behind a proxy, set HTTPS_PROXY; with a mirror at hand, give --mirror URL.")
            if availability.kind == "release" and not offline
            else "",
            claims=CLAIMS[availability.kind],
        )
    length = size(availability.size) if availability.size else ""
    return make_fact(
        fact_id,
        {
            "release": availability.release,
            "file": availability.file,
            "size": availability.size,
            "sha256": availability.sha256,
        },
        ", ".join(filter(None, (f"Open MPI {availability.release}", availability.file, length))),
        "ok",
        read_from=availability.detail,
        claims=CLAIMS[availability.kind],
    )
