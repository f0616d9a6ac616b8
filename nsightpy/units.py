"""Units: parsing what users type and formatting what they read. Time is ns, size is bytes."""

import math
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, Overflow

from nsightpy.errors import UsageError

_PREFIXES = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("K", 1e3))
TIME_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE | re.ASCII)
_MOST_BYTES = 2.0**62
_TIME = re.compile(r"\s*([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*(ns|us|µs|ms|s|min)?\s*")
# Two such are less than 2^63 ns apart.
_LATEST_NS = 2**62 - 1
# A product below the first is right to far less than the second.
_FEW_BITS, _NEAR_TIE = 2.0**36, 1e-4
_ALL_WHOLE = 2.0**52  # floats from here on have no fraction
_ROUNDS_UP = 0.9995
_BYTE_STEPS = (("B", 1), ("KB", 10**3), ("MB", 10**6), ("GB", 10**9), ("TB", 10**12))


def parse_time_ns(time: str | int) -> int:
    """Nanoseconds of 1500, "1500", "1.5us", "20 ms", "3s"; exact, no float in between.

    A fraction of a nanosecond is cut off. Raises UsageError when the text is no time, or one
    that no report can hold.
    """
    try:
        text = time if isinstance(time, str) else str(Decimal(int(time)))
        match = _TIME.fullmatch(text)
        if match is None:
            raise InvalidOperation
        value = Decimal(match[1]) * TIME_UNITS[match[2] or "ns"]
    except (InvalidOperation, Overflow, OverflowError, ValueError):
        units = ", ".join(unit for unit in TIME_UNITS if unit.isascii())
        raise UsageError(
            f"{time!r} is not a time: give nanoseconds, or a number with a unit ({units})"
        ) from None
    if abs(value) > _LATEST_NS:
        raise UsageError(f"{text[:40]!r} is beyond every report: at most 2^62 ns, 146 years")
    return int(value)


def time_unit_for(values_ns: Iterable[float | None]) -> tuple[str, int]:
    """The one unit (name, ns per unit) in which a column of times reads best: by its largest."""
    largest = max((abs(v) for v in values_ns if v is not None), default=0)
    for name in ("s", "ms", "us"):
        if largest >= TIME_UNITS[name]:
            return name, TIME_UNITS[name]
    return "ns", 1


def format_time(ns: float | None) -> str:
    """A single time with three significant digits and its own unit: 1.23 ms."""
    if ns is None:
        return "-"
    # what would be printed as 1000 of the smaller unit is 1.00 of the larger one
    name, scale = time_unit_for([ns / _ROUNDS_UP])
    return f"{significant(ns / scale)} {name}"


def format_span(ns: int) -> str:
    """How far apart two moments are, as people would say: 12 s, 80 minutes, 3 days."""
    for word, size, least in (("days", 86_400, 2), ("hours", 3_600, 2), ("minutes", 60, 2)):
        if ns >= least * size * 10**9:
            return f"{ns / (size * 10**9):,.0f} {word}"
    return format_time(ns)


def parse_size(text: str) -> int | None:
    """The bytes that a size means (`50G`, `1.5 MiB`, `800`; powers of 1024); None for no size."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    return int(min(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "), _MOST_BYTES))


def format_bytes(size: float | None) -> str:
    """A size in decimal units (MB = 10^6 bytes, as nsys): 45.6 MB."""
    if size is None:
        return "-"
    reached = (step for step in reversed(_BYTE_STEPS) if abs(size) >= _ROUNDS_UP * step[1])
    name, scale = next(reached, _BYTE_STEPS[0])
    if scale == 1 and float(size).is_integer():
        return f"{size:.0f} B"
    return f"{significant(size / scale)} {name}"


def format_count(value: int | None) -> str:
    """A count with thousands separators, for people only."""
    return "-" if value is None else f"{value:,}"


def listed(names: Iterable[str], most: int = 12, mark: str = ", ") -> str:
    """Names in a sentence: the first dozen, then how many more there are."""
    known = list(names)
    more = f" and {len(known) - most:,} more" if len(known) > most else ""
    return mark.join(known[:most]) + more


def group_text(names: Sequence[object]) -> str:
    """Ranks in short: numbers as 0-3,8, then other names."""
    numbers = sorted({name for name in names if isinstance(name, int)})
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[1]}" for run in runs]
    return ",".join([*shown, *sorted(str(name) for name in names if not isinstance(name, int))])


def counted(count: int, one: str, many: str = "") -> str:
    """A number of things: 1 run, 2,300 runs; `many` where it is not `one` with an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def significant(value: float, digits: int = 3) -> str:
    """A number with that many significant digits, never in exponent form."""
    if value == 0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return f"{value:.{max(digits - 1 - exponent, 0)}f}"


def prefix_for(value: float) -> tuple[str, float]:
    """The prefix that a rate is given with, and its size: T and 1e12; none below a thousand."""
    return next((step for step in _PREFIXES if abs(value) >= step[1]), ("", 1.0))


def format_rate(value: float, unit: str) -> str:
    """A rate with three digits and a prefix: 28.4 TFLOP/s."""
    prefix, size = prefix_for(value)
    return f"{significant(value / size)} {prefix}{unit}"


def share_text(part: float, whole: float) -> str:
    """A part of a whole in per cent."""
    value = 100 * part / whole if whole else 0.0
    if 0 < value < 0.1:
        return f"{significant(value, 1)} %"
    if 99.5 <= value < 100:  # never 100 % of what is less
        return f"{min(value, 99.9):.1f} %"
    return f"{value:.0f} %" if value >= 9.5 or not value else f"{value:.1f} %"


def percent(part: float | None, whole: float | None) -> float | None:
    """100 x part / whole; None when either is missing or the whole is zero."""
    if part is None or not whole:
        return None
    return 100.0 * part / whole


def round_half_up(value: float, digits: int) -> float:
    """Round the exact binary value, ties away from zero, as SQLite's `round` and so nsys does."""
    if not abs(value) < _ALL_WHOLE:
        return value
    scale = 10.0**digits
    scaled = abs(value) * scale
    whole = math.floor(scaled)
    above = scaled - whole
    # as exact as decimals where the product's own error is no matter
    if scaled < _FEW_BITS and abs(above - 0.5) > _NEAR_TIE:
        return math.copysign((whole + (above > 0.5)) / scale, value)
    step = Decimal(1).scaleb(-digits)
    return float(Decimal(value).quantize(step, ROUND_HALF_UP))
