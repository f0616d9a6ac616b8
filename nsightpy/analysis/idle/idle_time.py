"""When the devices of some GPU work did nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.idle.gpu_work import GpuWork, Rows
from nsightpy.analysis.intervals import Spans
from nsightpy.frames import Ints

NO_ROW = -1
# Before every time there is; its negative is after it.
NEVER = -(2**62)


@dataclass(frozen=True, slots=True)
class IdleTime:
    """When a place was idle, from before its first operation until after its last one.

    `before` and `after` are the rows of the GpuWork around each interval, -1 for none.
    """

    spans: Spans
    before: Rows
    after: Rows

    def inside(self, window: Spans) -> tuple[Ints, Ints, Rows, Rows]:
        """The part in a window: [opened, closed), and the rows before and after."""
        inside = self.spans & window
        if len(window) == 1:
            low = int(np.searchsorted(self.spans.ends, window.starts[0], side="right"))
            before, after = (rows[low : low + len(inside)] for rows in (self.before, self.after))
        else:
            at = np.searchsorted(self.spans.starts, inside.starts, side="right") - 1
            before, after = self.before[at], self.after[at]
        return inside.starts, inside.ends, before, after


def idle_time(work: GpuWork, place: int) -> IdleTime:
    """All the time in which a place did nothing."""
    if len(work.places) == 1:
        order = np.argsort(work.start, kind="stable").astype(np.int32)
    else:
        rows = np.flatnonzero(work.place == place)
        order = rows[np.argsort(work.start[rows], kind="stable")].astype(np.int32)
    start, end = work.start[order], work.end[order]
    # what takes no time ends no interval
    solid = bool((end > start).all())
    reach = np.maximum.accumulate(end if solid else np.where(end > start, end, NEVER))
    past = np.concatenate([[NEVER], reach[:-1]])
    # the operations that ended last so far; of several at once the last row
    longest = np.flatnonzero(reach > past)
    last = order[longest]
    ties = np.flatnonzero(end == past)
    np.maximum.at(last, np.searchsorted(longest, ties) - 1, order[ties])
    heads = np.flatnonzero(start[longest] > past[longest])
    first = longest[heads]
    idle = Spans(np.append(past[first], reach[-1]), np.append(start[first], -NEVER))
    after = order[first if solid else np.searchsorted(start, start[first])]
    after = np.append(after, np.int32(NO_ROW))
    before = np.append(np.int32(NO_ROW), last)[np.append(heads, len(last))]
    return IdleTime(idle, before, after)
