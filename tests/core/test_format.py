"""Numbers are written the same way everywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiwizard.core.format import clock, duration, memory, message_size, percent, quantity, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.19, "190 ms"),
        (4.2, "4.2 s"),
        (59.6, "1 min"),
        (190, "3 min 10 s"),
        (3900, "1 h 5 min"),
        (7200, "2 h"),
    ],
)
def test_a_duration_names_its_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_clock_stands_in_columns() -> None:
    assert (clock(2), clock(190), clock(3723)) == ("0:02", "3:10", "1:02:03")


@pytest.mark.parametrize(
    ("count", "text"), [(812, "812 B"), (6916772, "6.9 MB"), (120e9, "120 GB"), (999_999, "1.0 MB")]
)
def test_a_size_on_disk_is_decimal(count: float, text: str) -> None:
    assert size(count) == text


def test_memory_is_binary() -> None:
    assert (memory(64 << 20), memory(16_642_998_272)) == ("64 MiB", "15.5 GiB")


def test_a_message_size_is_short() -> None:
    assert [message_size(count) for count in (0, 8, 4096, 4 << 20)] == ["0", "8", "4k", "4M"]


def test_a_quantity_is_rounded_to_where_its_spread_begins() -> None:
    assert quantity(19.44, "GB/s", (18.6, 20.2)) == "19.4 GB/s ±0.8"
    assert quantity(134.6, "ms", (131, 139)) == "135 ms ±4"


def test_samples_far_apart_are_told_by_their_ends() -> None:
    assert quantity(0.43, "µs", (0.411, 18.2)) == "0.43 µs (0.41–18)"
    assert quantity(6030.0, "MB/s", (2000.0, 10000.0)) == "6.0 GB/s (2.0–10)"


def test_a_quantity_without_spread_has_few_digits() -> None:
    assert quantity(0.3612, "µs") == "0.36 µs"
    assert quantity(12512, "MB/s") == "12.5 GB/s"
    assert quantity(1180.0, "ms") == "1.18 s"


def test_a_quantity_that_was_not_measured_is_a_dash() -> None:
    assert quantity(None, "µs") == "–"


def test_a_gain_has_a_sign() -> None:
    assert (percent(0.384), percent(-0.031)) == ("+38 %", "−3.1 %")


@given(st.floats(min_value=0, max_value=1e15))
def test_every_number_can_be_written(value: float) -> None:
    written = [write(value) for write in (duration, clock, size, memory)]
    for text in [*written, quantity(value, "µs", (0, value))]:
        assert text and "e+" not in text and "nan" not in text
