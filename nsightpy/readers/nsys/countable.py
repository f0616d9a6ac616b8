"""Which rows of a table can be counted: those whose times and sizes are possible."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Frame, Ints
from nsightpy.readers.limits import GREATEST_TIME, summable
from nsightpy.readers.nsys.columns import NO_END

CHECKED = ("start_ns", "end_ns", "bytes")


def countable_rows(frame: Frame) -> tuple[NDArray[np.bool_], str]:
    """The rows with a time and a size that can be, and why others are left out."""
    kept = np.ones(frame.rows, dtype=np.bool_)
    reasons = []
    given = {name: frame.ints(name) for name in CHECKED if name in frame}
    for name, values in given.items():
        ended = values != NO_END
        possible = (values >= -GREATEST_TIME) & (values <= GREATEST_TIME)
        if name == "end_ns" and (count := int(np.count_nonzero(kept & ~ended))):
            reasons.append((count, "no end"))
        kept &= ended
        if count := int(np.count_nonzero(kept & ~possible)):
            reasons.append((count, f"no possible {name.removesuffix('_ns')}"))
        elif name != "end_ns" and (count := int(np.count_nonzero(~ended))):
            reasons.append((count, f"no {name.removesuffix('_ns')}"))
        kept &= possible
    if {"start_ns", "end_ns"} <= given.keys():
        backwards = kept & (given["end_ns"] < given["start_ns"])
        if count := int(np.count_nonzero(backwards)):
            reasons.append((count, "an end before their start"))
            kept &= ~backwards
        reasons += _beyond(kept, given["end_ns"], given["start_ns"], "length")
    if "bytes" in given:
        negative = kept & (given["bytes"] < 0)
        if count := int(np.count_nonzero(negative)):
            reasons.append((count, "a size below 0"))
            kept &= ~negative
        reasons += _beyond(kept, given["bytes"], 0, "size")
    if not reasons:
        return kept, ""
    if len(reasons) == 1:
        return kept, f"{reasons[0][0]:,} rows of {{table}} have {reasons[0][1]} and are"
    parts = ", ".join(f"{reason}: {count:,}" for count, reason in reasons)
    lost = frame.rows - int(np.count_nonzero(kept))
    return kept, f"{lost:,} rows of {{table}} cannot be counted ({parts}) and are"


def _beyond(
    kept: NDArray[np.bool_], high: Ints, low: Ints | int, what: str
) -> list[tuple[int, str]]:
    """Leave out the rows whose lengths are so great that sums would overflow, and say so."""
    lengths = np.where(kept, high - low, 0)
    fine = summable(lengths)
    if fine is None:
        return []
    lost = int(np.count_nonzero(kept & ~fine))
    kept &= fine
    return [(lost, f"no possible {what}")] if lost else []
