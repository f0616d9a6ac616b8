"""Units: parsing what users type and formatting what they read. Time is ns, size is bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from nsightpy.errors import UsageError

TIME_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
_TIME = re.compile(r"\s*([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*(ns|us|µs|ms|s|min)?\s*")
_BYTE_STEPS = (("B", 1), ("KB", 10**3), ("MB", 10**6), ("GB", 10**9), ("TB", 10**12))


def parse_time_ns(text: str) -> int:
    """Nanoseconds of "1500", "1.5us", "20 ms", "3s"; exact, no float in between.

    Raises UsageError when the text is no time.
    """
    match = _TIME.fullmatch(text)
    try:
        if match is None:
            raise InvalidOperation
        value = Decimal(match[1]) * TIME_UNITS[match[2] or "ns"]
    except InvalidOperation:
        units = ", ".join(unit for unit in TIME_UNITS if unit.isascii())
        raise UsageError(
            f"{text!r} is not a time: give nanoseconds, or a number with a unit ({units})"
        ) from None
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
    name, scale = time_unit_for([ns])
    return f"{significant(ns / scale)} {name}"


def format_bytes(size: float | None) -> str:
    """A size in decimal units (MB = 10^6 bytes, as nsys): 45.6 MB."""
    if size is None:
        return "-"
    name, scale = next(
        (step for step in reversed(_BYTE_STEPS) if abs(size) >= step[1]), _BYTE_STEPS[0]
    )
    return f"{significant(size / scale)} {name}"


def format_count(value: int | None) -> str:
    """A count with thousands separators, for people only."""
    return "-" if value is None else f"{value:,}"


def significant(value: float, digits: int = 3) -> str:
    """A number with that many significant digits, never in exponent form."""
    if value == 0:
        return "0"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:.{max(digits - whole, 0)}f}"


def percent(part: float | None, whole: float | None) -> float | None:
    """100 x part / whole; None when either is missing or the whole is zero."""
    if part is None or not whole:
        return None
    return 100.0 * part / whole


def round_half_up(value: float, digits: int) -> float:
    """Round the exact binary value, ties away from zero, as SQLite's `round` and so nsys does."""
    rounded = round(value, digits)
    scale = 10**digits
    if (doubled := value * scale * 2) == int(doubled) and int(doubled) % 2:
        up = (abs(int(doubled)) + 1) // 2 / scale
        exact = Decimal(value) * scale * 2 == int(doubled)
        return (up if value > 0 else -up) if exact else rounded
    return rounded
