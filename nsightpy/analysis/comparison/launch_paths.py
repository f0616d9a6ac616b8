"""Where in a program kernels are launched: the ranges or operators around the launching call."""

from __future__ import annotations

from collections import Counter

import numpy as np

from nsightpy.analysis.nvtx.nesting import ROOT
from nsightpy.analysis.nvtx.projection import thread_key
from nsightpy.analysis.nvtx.ranges import plain_name
from nsightpy.frames import Frame, Ints

MOST_LEVELS = 8
SEPARATOR = " / "


def innermost(ranges: Frame, parent: Ints, thread: Ints, launched: Ints) -> Ints:
    """The row of the innermost range that is open on a thread at each moment; -1 for none.

    ranges: start_ns, end_ns, pid, tid, nested by `parent`; `thread` as `thread_key` has it.
    """
    holder = np.full(len(launched), ROOT, dtype=np.int64)
    if not ranges.rows:
        return holder
    key = thread_key(ranges)
    order = np.lexsort((-ranges.ints("end_ns"), ranges.ints("start_ns"), key))
    keys, starts, ends = key[order], ranges.ints("start_ns")[order], ranges.ints("end_ns")
    for number in np.unique(thread).tolist():
        low, high = np.searchsorted(keys, [number, number + 1])
        rows = np.flatnonzero(thread == number)
        if low == high:
            continue
        place = low + np.searchsorted(starts[low:high], launched[rows], side="right") - 1
        inside = place >= low
        candidate = np.where(inside, order[np.maximum(place, low)], ROOT)
        for _ in range(64):
            over = (candidate != ROOT) & (ends[candidate] < launched[rows])
            if not over.any():
                break
            candidate[over] = parent[candidate[over]]
        holder[rows] = candidate
    return holder


def path_of(ranges: Frame, parent: Ints, row: int) -> str:
    """The names from the outermost range down to one, without what numbers its instances."""
    names: list[str] = []
    values = ranges.labels("name")
    while row != ROOT and len(names) < MOST_LEVELS:
        names.append(plain_name(values[row]))
        row = int(parent[row])
    return SEPARATOR.join(reversed(names))


def most_frequent(names: list[str], paths: list[str]) -> dict[str, str]:
    """The path that each name is launched in most often."""
    paths_by_name: dict[str, Counter[str]] = {}
    for name, path in zip(names, paths, strict=True):
        paths_by_name.setdefault(name, Counter())[path] += 1
    return {
        name: max(sorted(counts), key=counts.__getitem__) for name, counts in paths_by_name.items()
    }
