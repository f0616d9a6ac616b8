"""Figures for people: a unit in each cell, shares in per cent; column names as they are said."""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from nsightpy.output.escape import printable
from nsightpy.results import Field, Value
from nsightpy.units import format_bytes, format_rate, format_time, significant, time_unit_for

ABSENT = "-"
NO_NAME = "(no name)"
_MOMENT_DECIMALS = {"s": 6, "ms": 3, "us": 3, "ns": 0}
LEAST = 0.01  # of rates and shares in per cent: less is not worth its own digits


def cells(field: Field, values: Sequence[Value]) -> tuple[tuple[str, ...], str]:
    """A column's cells, and the unit that all of them share; "" where each has its own or none."""
    if field.kind != "moment":
        return tuple(cell(field, value) for value in values), ""
    unit, scale = time_unit_for(v for v in values if isinstance(v, int | float))
    digits = _MOMENT_DECIMALS[unit]
    texts = (ABSENT if v is None else f"{float(v) / scale:,.{digits}f}" for v in values)
    return tuple(texts), unit


def cell(field: Field, value: Value) -> str:
    """One value as people read it, its unit behind it where the heading cannot say it."""
    if field.is_text and value is not None:
        text = printable(Path(str(value)).name if field.name == "report" else str(value))
        nothing = NO_NAME if field.kind == "name" else ABSENT if field.own else text
        return text if text.strip() else nothing
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return printable(value)
    if field.kind == "id":
        return str(value)
    sign = "+" if value > 0 and "delta" in field.name else ""
    return sign + _figure(field, value)


def percent_text(share: float) -> str:
    """A part of one in per cent, without the sign: 42.0, 0.25, 0."""
    shown = 100 * share
    if 0 < shown < LEAST:
        return f"< {LEAST}"
    return f"{shown:.1f}" if shown == 0 or abs(shown) >= 10 else significant(shown, 2)


def _figure(field: Field, value: float) -> str:
    """A number in its unit; of rates near nothing, no digits."""

    def time(ns: float) -> str:
        return f"{ns:.0f} ns" if abs(ns) < 1000 and float(ns).is_integer() else format_time(ns)

    def rate(value: float) -> str:
        least = f"< {LEAST}" if 0 < value < LEAST else significant(value)
        return f"{value:,.0f}" if value >= 1000 else least

    writers: dict[str, Callable[[float], str]] = {
        "time": time,
        "moment": time,
        "share": percent_text,
        "bytes": format_bytes,
        "bytes/s": lambda value: f"{format_bytes(value)}/s",
        "MB": lambda value: format_bytes(1e6 * value) if value else "< 1 KB",
        "GB/s": rate,
        "MB/s": rate,
        "flops": lambda value: format_rate(value, "FLOP"),
        "flops/s": lambda value: format_rate(value, "FLOP/s"),
        "flops/byte": significant,
        "%": lambda value: f"{value:.1f}",
        "ratio": lambda value: f"{value:.2f}" if abs(value) >= 0.1 else significant(value, 2),
    }
    if field.kind in writers:
        return writers[field.kind](value)
    decimals = 0 if isinstance(value, int) else 1 if field.decimals is None else field.decimals
    return f"{value:,.{decimals}f}"


_ENDS = (
    (r"_gb_per_s$", " GB/s"),
    (r"flops_per_s$", "FLOP/s"),
    (r"_per_s$", "/s"),
    (r"_share$", " %"),
    (r"_med$", " median"),
    (r"^gpu_", "GPU "),
)
_UNIT = re.compile(r" \((?:ns|MB)\)$")


def heading(field: Field) -> str:
    """What stands above a column: its own words, or its name without unit and underscores."""
    name = field.name
    if field.heading:
        return field.heading
    if " " in name or not name.islower():
        text = _UNIT.sub("", name)
        return text.lower() if text in ("Avg", "Min", "Max", "Name", "Operation", "Count") else text
    words = re.sub(r"_(?:ns|bytes|pct)$", "", name)
    for end, said in _ENDS:
        words = re.sub(end, said, words)
    return words.replace("_", " ")


# Causes of idle time; one that is not here is the id of its finding.
_WORDS = {
    "queued": "launched, not begun",
    "unknown": "not known",
    "exposed-communication": "exposed-communication (MPI)",
}


def cause_words(cause: str) -> str:
    """A cause as people read it, also behind `idle: ` in a part of a compared unit."""
    start, idle, name = cause.rpartition("idle: ")
    return start + idle + _WORDS.get(name, name)
