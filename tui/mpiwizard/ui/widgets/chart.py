"""A curve as text: one column per point, height on a logarithmic scale, legible without colour."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

from mpiwizard.core.format import message_size, quantity

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def curve_chart(
    points: Sequence[tuple[int, float]],
    unit: str,
    width: int,
    height: int,
    band: tuple[float, float] | None = None,
) -> str:
    """`height` lines of at most `width` cells: bars over message sizes in bytes, values in `unit`.

    `band` is the range somebody expects; it is dotted where no bar covers it. Values of zero or less
    are left out, since a logarithm has no place for them.
    """
    points = [(size, value) for size, value in points if value > 0]
    if not points or height < 3:
        return ""
    values = [value for _size, value in points]
    low, high = log10(min(values)), log10(max(values))
    low, high = (low - 0.1, high + 0.1) if high - low < 0.2 else (low - 0.05 * (high - low), high)
    labels = [quantity(10**high, unit), quantity(10**low, unit)]
    margin = max(map(len, labels)) + 1
    column = max(min((width - margin) // len(points), 4), 1)
    bars = [(log10(value) - low) / (high - low) for value in values]
    lines = []
    for row in range(height - 1):
        bottom = 1 - (row + 1) / (height - 1)
        label = labels[0] if row == 0 else labels[1] if row == height - 2 else ""
        inside = band is not None and _in_band(band, low + (high - low) * (bottom + 0.5 / (height - 1)))
        cells = "".join(
            _cell(bar, bottom, height - 1, inside) * (column - (column > 1)) + " " * (column > 1) for bar in bars
        )
        lines.append(f"{label:>{margin - 1}} {cells}".rstrip())
    return "\n".join([*lines, " " * margin + _axis([size for size, _value in points], column)])


def _cell(bar: float, bottom: float, rows: int, inside: bool) -> str:
    filled = max(0, min(8, round((bar - bottom) * rows * 8)))
    return "·" if inside and not filled else _EIGHTHS[filled]


def _in_band(band: tuple[float, float], value: float) -> bool:
    return band[0] > 0 and log10(band[0]) <= value <= log10(band[1])


def _axis(sizes: Sequence[int], column: int) -> str:
    """Sizes below the bars, as many as have room."""
    line = ""
    for place, size in enumerate(sizes):
        label = message_size(size)
        if len(line) <= place * column and (place == 0 or place * column - len(line) >= 1 or not line):
            line = line.ljust(place * column) + label
    return line
