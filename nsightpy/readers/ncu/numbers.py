"""Numbers and units as ncu prints them: any locale, any prefix, always back to base units.

Base units: ns, byte, hz, and rates and counts of these. Prefixes are powers of 1000, as ncu's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite

_TIMES = {
    **dict.fromkeys(("nsecond", "ns"), 1.0),
    **dict.fromkeys(("usecond", "us"), 1e3),
    **dict.fromkeys(("msecond", "ms"), 1e6),
    **dict.fromkeys(("second", "s"), 1e9),
}
_PREFIXES = {"K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_COUNTED = ("byte", "hz", "inst", "sector", "cycle", "request", "warp", "thread", "block", "op")
_GROUPED = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_GERMAN = re.compile(
    r"-?(?:\d{1,3}(?:\.\d{3})+,\d+|\d+,(?!\d{3}\b)\d+|0,\d+|\d{1,3}(?:\.\d{3}){2,})"
)
_WITH_INSTANCES = re.compile(r"\s*\(.*\)\s*$")
MISSING = ("", "n/a", "nan", "-nan", "inf", "-inf", "no data")


def base_unit(unit: str) -> tuple[str, float]:
    """The base unit of a printed unit, and by what to multiply: "Gbyte/second" is byte/s, 1e9."""
    whole, slash, per = unit.partition("/")
    if not slash:
        if whole in _TIMES:
            return "ns", _TIMES[whole]
        return _counted(whole)
    name, factor = _counted(whole)
    if per in _TIMES:
        factor *= _TIMES["second"] / _TIMES[per]
        return ("hz" if name == "cycle" else f"{name}/s"), factor
    below, divisor = _counted(per)
    return f"{name}/{below}", factor / divisor


def _counted(word: str) -> tuple[str, float]:
    if word.lower() in ("hz", "khz", "mhz", "ghz") and word != "hz":
        return "hz", _PREFIXES.get(word[0], 1.0) if len(word) == 3 else 1.0
    if word[:1] in _PREFIXES and word[1:] in _COUNTED:
        return word[1:], _PREFIXES[word[0]]
    return word, 1.0


def is_german(cells: Iterable[str]) -> bool:
    """Whether these cells were printed with comma decimals: some cannot be read otherwise."""
    german = False
    for cell in cells:
        text = _WITH_INSTANCES.sub("", cell)
        if _GERMAN.fullmatch(text):
            german = True
        elif _GROUPED.fullmatch(text) and ("." in text or text.count(",") > 1):
            return False
    return german


def number(cell: str, *, german: bool = False) -> float | None:
    """The number in a cell; None for a text and for what ncu prints where it has no value.

    Of an instanced value, "7 (3; 4)", the aggregate.
    """
    text = _WITH_INSTANCES.sub("", cell).strip()
    if text.lower() in MISSING:
        return None
    text = text.replace(".", "").replace(",", ".") if german else text.replace(",", "")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None
