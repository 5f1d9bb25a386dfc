"""How much better one setting is than another, and how sure that is, without assuming a distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence


def paired_gains(before: Sequence[float], after: Sequence[float]) -> list[float]:
    """Gains of `after` over `before`, pair by pair, as shares: 0.25 is 25 % more. All values positive."""
    return [new / old - 1 for old, new in zip(before, after, strict=True)]


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float] | None:
    """A distribution-free confidence interval of the median: two of the sorted values.

    The number of values below the true median is binomial with one half, whatever the distribution
    (the sign test; David and Nagaraja, Order Statistics, 3rd edition, section 7.1). The interval is the
    narrowest symmetric one that covers with at least `confidence`; None when there are too few values.
    """
    count = len(values)
    below = -1  # how many values lie outside on each side
    outside = 0.0  # probability that the median lies outside, on one side
    while below + 1 < count / 2:
        outside += math.comb(count, below + 1) / 2**count
        if 2 * outside > 1 - confidence:
            break
        below += 1
    if below < 0:
        return None
    ordered = sorted(values)
    return ordered[below], ordered[count - 1 - below]


def geometric_mean(values: Sequence[float]) -> float:
    """The mean that gives every size of message the same weight. All values must be positive."""
    return math.exp(sum(map(math.log, values)) / len(values))
