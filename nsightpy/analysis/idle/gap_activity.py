"""What the launching thread did in idle intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.host_activity import HostEvents, described
from nsightpy.analysis.idle.idle_gaps import HOST_GAP_NS, IdleGaps
from nsightpy.analysis.intervals import Spans, measure_before, union
from nsightpy.units import format_time

_PARTS = (
    ("outside", "outside CUDA"),
    ("waiting", "in blocking calls"),
    ("allocating", "allocating"),
    ("loading", "loading code"),
    ("in_call", "in the launching call"),
    ("queued", "launched, not begun"),
)
LEAST_PART = 0.05


def outside_in(gaps: IdleGaps, rows: NDArray[np.bool_], calls: Spans) -> dict[str, int]:
    """How much of some intervals' time outside of CUDA lies in host calls, by its cause; in ns."""
    spent = measure_before(calls, gaps.closed[rows]) - measure_before(calls, gaps.opened[rows])
    spent = np.minimum(spent, gaps.outside[rows])
    long, drained = gaps.outside[rows] >= HOST_GAP_NS, gaps.drained[rows]
    of_cause = {
        "host-gap": long,
        "sync-drain": ~long & drained,
        "launch-bound": ~long & ~drained,
    }
    return {cause: int(spent[mine].sum()) for cause, mine in of_cause.items()}


def activity(gaps: IdleGaps, row: int, window: Spans, events: HostEvents | None) -> str:
    """What the launching thread did in one interval, for people."""
    tid, length = int(gaps.thread[row]), int(gaps.length[row])
    if tid < 0:
        return "not known: the next launch was not recorded"
    parts = [
        f"{format_time(lasted)} {what}"
        for name, what in _PARTS
        if (lasted := int(getattr(gaps, name)[row])) >= LEAST_PART * length
    ]
    time = union(gaps.opened[row : row + 1], gaps.closed[row : row + 1])
    said = "" if events is None else described(time, events.of_thread(tid), window)
    if said:
        parts.append(said)
    return "; ".join(parts)
