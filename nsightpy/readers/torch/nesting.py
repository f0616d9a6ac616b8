"""Which operator is called by which: the innermost one that is open on its thread when it begins.

An operator is open at s when start <= s < end. Of equal starts the longer one is the caller, of
equal spans the earlier in the file (the order of torch's own key_averages).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.frames import Ints, distinct

ROOT = -1


@dataclass(frozen=True, slots=True)
class Callers:
    """For each row the row of its caller (ROOT: none) and how many callers are above it."""

    parent: Ints
    depth: Ints


def callers(start: Ints, end: Ints, thread: Ints) -> Callers:
    """The callers of operators, given in the order of the file; times in ns."""
    parent = np.full(len(start), ROOT, dtype=np.int64)
    depth = np.zeros(len(start), dtype=np.int64)
    _, code = distinct(thread)
    rows = np.lexsort((-end, start, code))
    edges = np.flatnonzero(np.diff(code[rows])) + 1
    for mine in np.split(rows, edges):
        if len(mine):
            above, levels = _of_thread(start[mine], end[mine])
            parent[mine] = np.where(above == ROOT, ROOT, mine[above])
            depth[mine] = levels
    return Callers(parent, depth)


def _of_thread(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Caller (a row) and depth of one thread's operators, by start, the longer first."""
    holds = end > start
    begun: Ints = np.cumsum(holds) - holds
    ended = np.searchsorted(np.sort(end[holds]), start, side="right")
    depth = begun - ended
    above = np.full(len(start), ROOT, dtype=np.int64)
    holders = np.flatnonzero(holds)
    by_depth = holders[np.argsort(depth[holders], kind="stable")]
    deepest = int(depth.max(initial=0))
    edges = np.searchsorted(depth[by_depth], np.arange(deepest + 2))
    order = np.argsort(depth, kind="stable")
    levels = np.searchsorted(depth[order], np.arange(deepest + 2))
    for level in range(1, deepest + 1):
        upper = by_depth[edges[level - 1] : edges[level]]
        rows = order[levels[level] : levels[level + 1]]
        above[rows] = upper[np.searchsorted(upper, rows) - 1]
    crossing = (above != ROOT) & (end[above] < end)
    return _stacked(start, end) if crossing.any() else (above, depth)


def _stacked(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The same where operators end after their callers did (times of whole microseconds)."""
    ends = end.tolist()
    open_rows: list[int] = []
    above: list[int] = []
    depth: list[int] = []
    for row, begins in enumerate(start.tolist()):
        while open_rows and ends[open_rows[-1]] <= begins:
            open_rows.pop()
        caller = open_rows[-1] if open_rows else ROOT
        above.append(caller)
        depth.append(depth[caller] + 1 if open_rows else 0)
        open_rows.append(row)
    return np.asarray(above, dtype=np.int64), np.asarray(depth, dtype=np.int64)
