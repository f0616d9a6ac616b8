"""Values of decoded events as columns: whole numbers, ids and texts."""

from __future__ import annotations

import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np

from nsightpy.frames import Ints, Labels

_LARGEST = 2**63
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
    made = [None if isinstance(value, bool) else _whole(value) for value in values]
    numbers = [missing if number is None else number for number in made]
    return np.asarray(numbers, dtype=np.int64), made.count(None)


def ids(values: Sequence[object], missing: int = 0) -> tuple[Ints, int]:
    """Ids of processes and threads, and how many are no numbers; texts without one, as of merged
    traces, keep apart."""
    numbers, lost = integers(values, missing)
    if not lost:
        return numbers, 0
    return integers([_code(v) if isinstance(v, str) else v for v in values], missing)[0], lost


def _code(text: str) -> int | str:
    return text if _NUMBERED.fullmatch(text) else zlib.crc32(text.encode("utf-8", "replace"))


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
