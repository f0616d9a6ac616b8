"""Values of decoded events as columns: whole numbers, ids, texts, and exact times in ns.

Times are microseconds since 1970 as whole numbers; since 1970 with three decimals, which need more
digits than a float64 has (read as text); since `baseTimeNanoseconds`, small enough for a float64.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import numpy as np

from nsightpy.frames import Floats, Ints, Labels
from nsightpy.readers.limits import NO_TIME

_LARGEST = 2**63
# Below, float64 numbers lie closer together than 0.001: each is one number of three decimals.
_EXACT_US = 2.0**43
_LATEST_US = 9_000_000_000_000_000
# A number, or what is numbered: "stream 7".
_NUMBERED = re.compile(r"[^\d-]*(-?\d{1,18})\s*")


def whole(value: object, missing: int = 0) -> int:
    """A value as an int64: the number that ends a text ("stream 7"), the 64 bits of an address."""
    number = _whole(value)
    return missing if number is None else number


def _whole(value: object) -> int | None:
    if isinstance(value, str):
        match = _NUMBERED.fullmatch(value)
        return int(match[1]) if match else None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _LARGEST else None
    if not isinstance(value, int) or not -_LARGEST <= value < 2 * _LARGEST:
        return None
    return (value + _LARGEST) % (2 * _LARGEST) - _LARGEST


def integers(values: Sequence[object], missing: int = 0) -> tuple[Ints, int]:
    """A column of whole numbers, and how many values are none."""
    if {*map(type, values)} <= {int}:
        with suppress(OverflowError):
            return np.fromiter(values, np.int64, len(values)), 0
    wholes = [None if isinstance(value, bool) else _whole(value) for value in values]
    numbers = [missing if number is None else number for number in wholes]
    return np.asarray(numbers, dtype=np.int64), wholes.count(None)


def labels(values: Iterable[object]) -> Labels:
    """A column of texts, pieces of JSON, or nothing."""
    codes: defaultdict[object, int] = defaultdict()
    codes.default_factory = codes.__len__
    rows = np.fromiter(map(codes.__getitem__, values), np.int32)
    return Labels(rows, tuple(map(text_of, codes))).merged()


def text_of(value: object) -> str:
    """A text, or the one spelling of a piece of JSON, however the file is laid out."""
    if not isinstance(value, bytes):
        return "" if value is None else str(value)
    text = value.decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        held = json.loads(text) if text else ""
        return held if isinstance(held, str) else json.dumps(held, ensure_ascii=False)
    return text


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
