"""Numbers as a person reads them: times, sizes and measured quantities, written the same way everywhere."""

from __future__ import annotations

import math

_LARGER = {  # unit -> (how many of it make one of the next, the next)
    "µs": (1000.0, "ms"),
    "ms": (1000.0, "s"),
    "MB/s": (1000.0, "GB/s"),
}


def duration(seconds: float) -> str:
    """A span of time: `190 ms`, `4.2 s`, `42 s`, `3 min 10 s`, `1 h 5 min`."""
    if seconds < 0.9995:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(whole / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def clock(seconds: float) -> str:
    """A span of time in columns: `3:10`, `1:02:03`."""
    minutes, rest = divmod(max(int(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def size(count: float) -> str:
    """Bytes of a file or a disk in decimal units: `812 B`, `6.9 MB`, `120 GB`."""
    return _scaled(count, 1000, ("B", "kB", "MB", "GB", "TB", "PB"))


def memory(count: float) -> str:
    """Bytes of memory in binary units: `64 MiB`, `15.5 GiB`."""
    return _scaled(count, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))


def message_size(count: int) -> str:
    """A message's size on the axis of a curve: `8`, `4k`, `4M` bytes, in powers of 1024."""
    for factor, letter in ((1 << 20, "M"), (1 << 10, "k")):
        if count >= factor and count % factor == 0:
            return f"{count // factor}{letter}"
    return str(count)


def quantity(value: float | None, unit: str, spread: tuple[float, float] | None = None) -> str:
    """A measured value with its unit, and `±` half the distance from smallest to largest sample.

    The value is rounded to the digit in which the spread begins, as `19.4 GB/s ±0.8`; without a spread
    it has three significant digits, two below one. Where samples lie so wide apart that a `±` would
    pretend, smallest and largest are named, as `0.43 µs (0.41–18)`. A dash when there is no value.
    """
    if value is None:
        return "–"
    low, high = spread or (value, value)
    while unit in _LARGER and abs(value) >= _LARGER[unit][0]:
        factor, unit = _LARGER[unit]
        value, low, high = value / factor, low / factor, high / factor
    half = (high - low) / 2
    if half > abs(value) / 2:
        middle, least, most = (f"{number:.{_decimals(number, 2)}f}" for number in (value, low, high))
        return f"{middle} {unit} ({least}–{most})"
    decimals = _decimals(half, 1) if half else _decimals(value, 3 if abs(value) >= 1 else 2)
    text = f"{value:.{decimals}f} {unit}".rstrip()
    return f"{text} ±{half:.{decimals}f}" if half and round(half, decimals) else text


def percent(share: float) -> str:
    """A gain or a loss: `+38 %`, `−3.1 %`."""
    value = 100 * share
    sign = "−" if value < 0 else "+"
    return f"{sign}{abs(value):.{0 if abs(value) >= 9.95 else 1}f} %"


def _decimals(value: float, significant: int) -> int:
    """Digits behind the point that show `value` with so many significant ones, at most four."""
    if not value or not math.isfinite(value):
        return 0
    return min(max(significant - 1 - math.floor(math.log10(abs(value))), 0), 4)


def _scaled(count: float, step: int, units: tuple[str, ...]) -> str:
    place = 0
    while place + 1 < len(units) and abs(count) >= step - 0.5:
        count, place = count / step, place + 1
    whole = place == 0 or abs(count) >= 99.95 or float(count).is_integer()
    return f"{count:.{0 if whole else 1}f} {units[place]}"
