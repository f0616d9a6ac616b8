"""What the launching thread did in idle intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsightpy.analysis.idle.gap_causes import IdleGaps
from nsightpy.analysis.idle.host_activity import HostEvents, compiling, described, most_in
from nsightpy.analysis.idle.host_calls import OTHER, kinds_of_calls
from nsightpy.analysis.intervals import Spans, measure_inside, union
from nsightpy.frames import Frame, distinct
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


def with_host(gaps: IdleGaps, events: HostEvents) -> IdleGaps:
    """The intervals with what the launching threads did outside of CUDA: MPI, compilation."""
    if not events.mpi_calls.rows and not len(compiling(events.ranges)):
        return gaps
    mpi, compiled = np.zeros_like(gaps.outside), np.zeros_like(gaps.outside)
    for tid in distinct(gaps.thread[gaps.thread >= 0])[0].tolist():
        mine, thread = np.flatnonzero(gaps.thread == tid), events.of_thread(tid)
        low, high, left = gaps.opened[mine], gaps.closed[mine], gaps.outside[mine]
        calls = union(thread.mpi_calls.ints("start_ns"), thread.mpi_calls.ints("end_ns"))
        mpi[mine] = np.minimum(measure_inside(calls, low, high), left)
        compiles = compiling(thread.ranges) - calls
        compiled[mine] = np.minimum(measure_inside(compiles, low, high), left - mpi[mine])
    return replace(gaps, mpi=mpi, compiling=compiled)


def others(calls: Frame) -> Frame:
    """The calls that launch, copy, allocate and wait for nothing: cudaGetDeviceProperties."""
    return calls.take(kinds_of_calls(calls.labels("name")) == OTHER)


def activity(
    gaps: IdleGaps, row: int, window: Spans, events: HostEvents | None, calls: Frame
) -> str:
    """What the launching thread did in one interval, for people; `calls` are `others`."""
    tid, length = int(gaps.thread[row]), int(gaps.length[row])
    if tid < 0:
        return "not known: the next launch was not recorded"
    time = union(gaps.opened[row : row + 1], gaps.closed[row : row + 1])
    name, share = most_in(time, calls.at(tid=tid))
    parts = [
        f"{format_time(lasted)} {f'in {name}' if part == 'outside' and share > 0.5 else what}"
        for part, what in _PARTS
        if (lasted := int(getattr(gaps, part)[row])) >= LEAST_PART * length
    ]
    said = "" if events is None else described(time, events.of_thread(tid), window)
    if said:
        parts.append(said)
    return "; ".join(parts)
