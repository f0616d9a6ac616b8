"""Which rows of a table can be counted: those whose times and sizes are possible."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Frame
from nsightpy.readers.nsys.columns import NO_END

# What is further away is no time: 73 years in ns, so that differences fit int64 (and no size).
GREATEST_TIME = 2**61
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
    if not reasons:
        return kept, ""
    if len(reasons) == 1:
        return kept, f"{reasons[0][0]:,} rows of {{table}} have {reasons[0][1]} and are"
    parts = ", ".join(f"{reason}: {count:,}" for count, reason in reasons)
    lost = frame.rows - int(np.count_nonzero(kept))
    return kept, f"{lost:,} rows of {{table}} cannot be counted ({parts}) and are"
