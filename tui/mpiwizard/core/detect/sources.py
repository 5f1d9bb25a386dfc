"""Which sources of Open MPI this box can reach: the only facts for which the network is asked.

They are no part of `detect`, which sends nothing anywhere; who is about to choose asks for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from queue import Empty, SimpleQueue
from threading import Thread

from msgspec.structs import replace

from mpiwizard.core.context import Context, Wishes
from mpiwizard.core.detect.facts import make_fact, unknown_fact
from mpiwizard.core.detect.model import Fact, Machine
from mpiwizard.core.format import size
from mpiwizard.core.frontend import Frontend
from mpiwizard.core.i18n import _
from mpiwizard.core.sources.model import Availability

PATIENCE = 60.0  # seconds; each source has deadlines of its own, this one is for what nobody thought of
KINDS = ("release", "distro", "archive")
CLAIMS = {"release": (12, 13, 14), "distro": (52,), "archive": (14,)}
IDS = (*(f"source.{kind}" for kind in KINDS), "sources.any")


def with_sources(machine: Machine, context: Context, wishes: Wishes, listener: Frontend | None) -> Machine:
    """The machine with what its sources answered in place of what they answered before."""
    facts = list(_facts(context, wishes))
    if listener is not None:
        for fact in facts:
            listener.fact(fact)
    kept = tuple(fact for fact in machine.facts if fact.id not in IDS)
    return replace(machine, facts=(*kept, *facts))


def _facts(context: Context, wishes: Wishes) -> Iterator[Fact]:
    if not context.host.is_real:  # the network here would answer for another machine
        for fact_id in IDS:
            yield unknown_fact(fact_id, _("a recorded box is not asked"))
        return
    answers: SimpleQueue[tuple[Availability, ...] | Exception] = SimpleQueue()
    Thread(target=_ask, args=(context, wishes, answers), name="sources", daemon=True).start()
    try:
        answer = answers.get(timeout=PATIENCE)
    except Empty:
        for fact_id in IDS:
            yield unknown_fact(fact_id, _("no answer in time"))
        return
    if isinstance(answer, Exception):
        raise answer
    asked = [one for one in answer if one.kind != "archive" or wishes.archive]
    yield from source_facts(tuple(asked), offline=context.offline)


def _ask(context: Context, wishes: Wishes, answers: SimpleQueue[tuple[Availability, ...] | Exception]) -> None:
    from mpiwizard.core.sources import probe

    try:
        answers.put(probe(context, wishes))
    except Exception as error:
        answers.put(error)


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
        see_yourself="mpiwizard plan",
        meaning="" if reachable else _("There is nothing to build from."),
        action="" if reachable else _without_sources(offline),
        rests_on=tuple(f"source.{kind}" for kind in KINDS),
    )


def _without_sources(offline: bool) -> str:
    if offline:
        return _("Leave out --offline, or name an archive of Open MPI with --archive FILE.")
    return _("Fetch an archive of Open MPI elsewhere and name it with --archive FILE, or set HTTPS_PROXY.")


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
