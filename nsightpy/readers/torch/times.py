"""Timestamps of traces as int64 ns, exact in all three ages of the format.

Microseconds since 1970 as whole numbers; since 1970 with three decimals, which need more digits
than a float64 has (read as text); since `baseTimeNanoseconds`, small enough for a float64.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import numpy as np

from nsightpy.frames import Floats, Ints

NO_TIME = -(2**63)
# Below, float64 numbers lie closer together than 0.001: each is one number of three decimals.
_EXACT_US = 2.0**43
_LATEST_US = 9_000_000_000_000_000


class InexactTimesError(Exception):
    """Times that lost digits on their way through a float64: they must be read as text."""


def nanoseconds(values: list[Any]) -> Ints:
    """Microseconds as ns; NO_TIME for what is no time.

    Raises InexactTimesError for numbers that have to be read as text.
    """
    if values and isinstance(values[0], msgspec.Raw):
        return np.asarray([_exact(bytes(value)) for value in values], dtype=np.int64)
    try:
        numbers = np.fromiter(values, np.float64, len(values))
    except (TypeError, ValueError, OverflowError):
        raise InexactTimesError from None
    if not np.abs(numbers).max(initial=0) < _EXACT_US:
        raise InexactTimesError
    return _from_floats(numbers)


def _from_floats(numbers: Floats) -> Ints:
    """The ns of microseconds whose decimal text had three decimals.

    From 2**42 us on (51 days after the base) the product alone is wrong by 1 ns for one in four:
    the right one is the whole number that divided by 1000 gives the same float64 again.
    """
    times: Floats = np.rint(numbers * 1000)
    for step in (1.0, -1.0):
        wrong = np.flatnonzero(times / 1000 != numbers)
        better = wrong[(times[wrong] + step) / 1000 == numbers[wrong]]
        times[better] += step
    return times.astype(np.int64)


def _exact(text: bytes) -> int:
    """The ns of one decimal text in microseconds, halves rounded to even."""
    whole, _, decimals = text.partition(b".")
    if len(whole) < 17 and len(decimals) <= 3 and whole.isdigit() and (decimals or b"0").isdigit():
        us = int(whole)
        return us * 1000 + int(decimals.ljust(3, b"0")) if us < _LATEST_US else NO_TIME
    try:
        time = Decimal(text.decode("ascii").strip('" '))
        return int((time * 1000).to_integral_value()) if abs(time) < _LATEST_US else NO_TIME
    except (InvalidOperation, ValueError):
        return NO_TIME
