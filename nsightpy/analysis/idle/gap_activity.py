"""What the launching thread did in one idle interval, for people."""

from __future__ import annotations

from nsightpy.analysis.idle.host_activity import HostEvents, described
from nsightpy.analysis.idle.idle_gaps import IdleGaps
from nsightpy.analysis.intervals import Spans, union
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
