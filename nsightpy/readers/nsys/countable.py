"""Which rows of a table can be counted: those whose times and sizes are possible."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Frame, Ints
from nsightpy.readers.limits import GREATEST_TIME, summable
from nsightpy.readers.nsys.columns import NO_END

CHECKED = ("start_ns", "end_ns", "bytes")


def countable_rows(frame: Frame) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """The rows with a time and a size that can be, and how many lack what."""
    kept = np.ones(frame.rows, dtype=np.bool_)
    lacks: dict[str, int] = {}

    def leave_out(rows: NDArray[np.bool_], lack: str) -> None:
        if lost := int(np.count_nonzero(kept & rows)):
            lacks[lack] = lost
            kept[rows] = False

    def leave_out_beyond(lengths: Ints, lack: str) -> None:
        fine = summable(np.where(kept, lengths, 0))
        if fine is not None:
            leave_out(~fine, lack)

    given = {name: frame.ints(name) for name in CHECKED if name in frame}
    for name, values in given.items():
        what = name.removesuffix("_ns")
        leave_out(values == NO_END, f"no {what}")
        leave_out((values < -GREATEST_TIME) | (values > GREATEST_TIME), f"no possible {what}")
    if {"start_ns", "end_ns"} <= given.keys():
        leave_out(given["end_ns"] < given["start_ns"], "an end before their start")
        leave_out_beyond(given["end_ns"] - given["start_ns"], "no possible length")
    if "bytes" in given:
        leave_out(given["bytes"] < 0, "a size below 0")
        leave_out_beyond(given["bytes"], "no possible size")
    return kept, lacks
