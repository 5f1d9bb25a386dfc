"""A trial: two values of one parameter, measured turn by turn on this machine.

A value whose run crashes or hangs twice loses the trial, and nothing more.
"""

from __future__ import annotations

from statistics import median

from msgspec import Struct

from mpiwizard.core.detect.model import Machine
from mpiwizard.core.format import message_size, percent
from mpiwizard.core.frontend import Frontend
from mpiwizard.core.i18n import _
from mpiwizard.core.installation import Installation
from mpiwizard.core.probes import Probes
from mpiwizard.core.tune.model import Trial
from mpiwizard.core.tune.statistics import geometric_mean, median_interval, paired_gains

PAIRS = 15  # two wild ones on each side do not yet decide
CERTAINTY = 0.99  # of a line that is written: a needless one costs more than a missed one
SMALLEST_GAIN = 0.02  # a smaller one is not worth a line in a file
SMALLEST, LARGEST = 16 << 10, 4 << 20  # bytes; smaller messages do not take this path
RANKS = 2


class Candidate(Struct, frozen=True):
    """A parameter worth a trial: what `on` and `off` mean, and the parameters that both runs share.

    `usual` is the value Open MPI takes by itself on a machine that allows it.
    """

    id: str
    label: str
    parameter: str
    on: str
    off: str
    usual: str
    shared: dict[str, str]


def single_copy(installation: Installation) -> Candidate:
    """Cross-memory attach between the ranks of one machine, against two copies through shared memory."""
    if installation.major < 5:
        name, off, layer = "btl_vader_single_copy_mechanism", "none", "self,vader"
    else:
        name, off, layer = "smsc", "^cma", "self,sm"
    return Candidate(
        id="single-copy",
        label=_("Single copy by cross-memory attach (CMA)"),
        parameter=name,
        on="cma",
        off=off,
        usual="cma",
        shared={"pml": "ob1", "btl": layer},
    )


def try_out(candidate: Candidate, probes: Probes, machine: Machine, listener: Frontend, pairs: int = PAIRS) -> Trial:
    """Measure both values in turn and keep the one that is better beyond doubt, or neither."""
    before: list[float] = []
    after: list[float] = []
    turns = [(candidate.off, before), (candidate.on, after)]
    for turn in range(-1, pairs):  # the first turn only warms up
        listener.note(_("{label}: turn {turn} of {all}").format(label=candidate.label, turn=turn + 1, all=pairs))
        for value, samples in turns if turn % 2 else reversed(turns):
            rate, failure = _rate(candidate, value, probes)
            if failure:  # once can be the machine's fault; a setting for every job is not decided by one run
                rate, failure = _rate(candidate, value, probes)
            if failure:
                return _lost(candidate, value, failure)
            if turn >= 0:
                samples.append(rate)
    return _judge(candidate, before, after, _method(probes, machine, pairs))


def refused(candidate: Candidate, reason: str) -> Trial:
    """The trial of a value that the machine does not allow: nothing to measure, the other is taken."""
    return _unmeasured(
        candidate, candidate.off, True, _("Not measured: {reason}. It is switched off.").format(reason=reason)
    )


def _lost(candidate: Candidate, value: str, failure: str) -> Trial:
    """A value that fails loses to the other one; when even the plain way fails, nothing is decided."""
    verdict = _("With {name} = {value} the run {failure}").format(
        name=candidate.parameter, value=value, failure=failure
    )
    if value == candidate.on:
        return _unmeasured(candidate, candidate.off, True, _("{what}. It is switched off.").format(what=verdict))
    return _unmeasured(candidate, candidate.usual, False, _("{what}. Nothing is changed.").format(what=verdict))


def _unmeasured(candidate: Candidate, value: str, kept: bool, verdict: str) -> Trial:
    return Trial(
        candidate.id, candidate.label, f"{candidate.parameter} = {value}", metric="bandwidth", unit="MB/s",
        before=0.0, after=0.0, gain=0.0, interval=None, kept=kept, verdict=verdict, method="",
    )  # fmt: skip


def _rate(candidate: Candidate, value: str, probes: Probes) -> tuple[float, str]:
    """Mean ping-pong rate over the sizes of the trial in MB/s, and why there is none."""
    program = [
        str(probes.folder / "bench"), "--only", "latency", "--min", str(SMALLEST), "--max", str(LARGEST),
        "--repeats", "3", "--milliseconds", "3",
    ]  # fmt: skip
    run = probes.run(RANKS, program, {**candidate.shared, candidate.parameter: value})
    rates = [record["size"] / median(record["samples"]) for record in run.records if record.get("samples")]
    if run.failure or not rates:
        return 0.0, run.failure or _("printed no result")
    return geometric_mean(rates), ""


def _judge(candidate: Candidate, before: list[float], after: list[float], method: str) -> Trial:
    """The better value when that is certain and worth a line; else the usual one, left alone."""
    value, gains = candidate.on, paired_gains(before, after)
    certain = median_interval(gains, CERTAINTY)
    if certain and certain[1] < 0:
        value, before, after = candidate.off, after, before
        gains = paired_gains(before, after)
        certain = median_interval(gains, CERTAINTY)
    gain, interval = median(gains), median_interval(gains)
    kept = certain is not None and certain[0] > 0 and gain >= SMALLEST_GAIN
    if kept:
        verdict = _("Kept: large messages move faster with it, by {gain} ({low} to {high}).")
    else:
        verdict = _("Left to Open MPI: {gain} ({low} to {high}) is too little or too uncertain.")
    low, high = interval or (min(gains), max(gains))
    return Trial(
        candidate.id, candidate.label, f"{candidate.parameter} = {value}", metric="bandwidth", unit="MB/s",
        before=median(before), after=median(after), gain=gain, interval=interval, kept=kept,
        verdict=verdict.format(gain=percent(gain), low=percent(low), high=percent(high)), method=method,
        samples_before=tuple(before), samples_after=tuple(after),
    )  # fmt: skip


def _method(probes: Probes, machine: Machine, pairs: int) -> str:
    """How the trial was measured, and what on this machine may blur it."""
    method = _(
        "{pairs} turns of two runs on {ranks} ranks, the order swapped each turn. A run is the geometric mean "
        "of message size over half a round trip, {smallest} to {largest} bytes. The gain is the median of the "
        "turns; its 95 % interval comes from order statistics (sign test), which assume no distribution. "
        "A setting is kept when its {certainty:.0f} % interval is above zero and the gain at least {least}."
    ).format(
        certainty=100 * CERTAINTY, least=percent(SMALLEST_GAIN).lstrip("+"), pairs=pairs, ranks=RANKS,
        smallest=message_size(SMALLEST), largest=message_size(LARGEST),
    )  # fmt: skip
    if probes.cores < RANKS:
        method += " " + _("Both ranks share one processor here, so the scheduler weighs more than the copy.")
    if load := (probes.host.read("/proc/loadavg") or "").partition(" ")[0]:
        method += " " + _("Load at the end: {load} on {cores} usable processors.").format(
            load=load, cores=machine.value("cpu.usable", probes.cores)
        )
    return method
