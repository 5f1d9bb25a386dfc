"""The interval of a gain keeps its promise, whatever the measurements look like."""

from __future__ import annotations

import random
from statistics import median

import pytest

from mpiwizard.core.tune.statistics import geometric_mean, median_interval, paired_gains


def test_gains_are_taken_pair_by_pair() -> None:
    assert paired_gains([10.0, 20.0], [12.0, 15.0]) == pytest.approx([0.2, -0.25])


def test_wild_values_on_either_side_do_not_move_the_interval_far() -> None:
    values = [0.1, 0.11, 0.12, 0.13, 0.14, 0.15, 0.16, 0.17, 0.18]
    assert median_interval([-9.0, *values[1:-1], 90.0]) == (0.11, 0.17)


def test_more_certainty_takes_a_wider_interval() -> None:
    values = [float(number) for number in range(15)]
    assert median_interval(values) == (3, 11)
    assert median_interval(values, 0.99) == (2, 12)
    assert median_interval(values[:7], 0.99) is None


def test_too_few_pairs_have_no_interval() -> None:
    assert median_interval([1, 2, 3, 4, 5]) is None
    assert median_interval([]) is None


@pytest.mark.parametrize(("count", "below"), [(6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (15, 3), (20, 5)])
def test_the_interval_follows_the_binomial_table(count: int, below: int) -> None:
    """Conover, Practical Nonparametric Statistics, table of the binomial distribution with p = 0.5."""
    assert median_interval(list(range(count))) == (below, count - 1 - below)


@pytest.mark.parametrize("draw", ["gauss", "expovariate", "betavariate"])
def test_the_interval_covers_the_median_of_any_distribution(draw: str) -> None:
    generator = random.Random(20)
    draws = {
        "gauss": lambda: generator.gauss(0, 1),
        "expovariate": lambda: generator.expovariate(1),
        "betavariate": lambda: generator.betavariate(0.5, 0.5),
    }
    true_median = median(draws[draw]() for _ in range(200_000))
    covered = 0
    for _ in range(1000):
        low, high = median_interval([draws[draw]() for _ in range(12)]) or (0, 0)
        covered += low <= true_median <= high
    assert covered >= 940


def test_the_geometric_mean_weighs_factors_alike() -> None:
    assert geometric_mean([1, 100]) == pytest.approx(10)
