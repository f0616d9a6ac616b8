"""Which operator is called by which: the innermost one that is open on its thread when it begins.

An operator is open at s when start <= s < end. Of equal starts the longer one is the caller, of
equal spans the earlier in the file (the order of torch's own key_averages).
"""

from __future__ import annotations

import numpy as np

from nsightpy.frames import Ints

ROOT = -1
_NEVER = 2**63


def callers(start: Ints, end: Ints, thread: Ints) -> tuple[Ints, Ints]:
    """For each operator the row of its caller (ROOT: none), and how many callers are above it.

    Operators are given in the order of the file.
    """
    parent, depth = np.empty(len(start), dtype=np.int64), np.empty(len(start), dtype=np.int64)
    by_thread = np.lexsort((-end, start, thread))
    for rows in np.split(by_thread, np.flatnonzero(np.diff(thread[by_thread])) + 1):
        above, depth[rows] = _of_thread(start[rows].tolist(), end[rows].tolist())
        parent[rows] = np.append(rows, ROOT)[above]
    return parent, depth


def _of_thread(starts: list[int], ends: list[int]) -> tuple[list[int], list[int]]:
    """Caller (a row) and depth of one thread's operators, by start, the longer first."""
    above, depth, open_rows = [], [], [ROOT]
    ends.append(_NEVER)  # of ROOT, the last one
    for row, start in enumerate(starts):
        while ends[open_rows[-1]] <= start:
            open_rows.pop()
        above.append(open_rows[-1])
        depth.append(len(open_rows) - 1)
        open_rows.append(row)
    return above, depth
