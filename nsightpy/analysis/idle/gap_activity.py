"""What the launching thread did in idle intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nsightpy.analysis.idle.gap_causes import HOST_GAP_NS, IdleGaps
from nsightpy.analysis.idle.host_activity import (
    HostEvents,
    compiled_share,
    compiling,
    described,
    ins_and_outs,
    most_in,
)
from nsightpy.analysis.idle.host_calls import OTHER, kinds_of_calls
from nsightpy.analysis.idle.idle_time import NO_ROW
from nsightpy.analysis.intervals import NOTHING, Spans, measure_inside, spans_of, union
from nsightpy.frames import Frame, Ints, distinct
from nsightpy.units import format_time

_PARTS = (
    ("elsewhere", "waiting for another device"),
    ("outside", "outside CUDA"),
    ("waiting", "in blocking calls"),
    ("allocating", "allocating"),
    ("loading", "loading code"),
    ("in_call", "in the launching call"),
    ("queued", "launched, not begun"),
)
LEAST_PART = 0.05


def with_host(gaps: IdleGaps, events: HostEvents) -> IdleGaps:
    """The intervals with what the launching threads did outside of CUDA: MPI, compiling, files."""
    if not any(map(len, _outside(events).values())) and not events.samples.rows:
        return gaps
    parts: dict[str, Any] = {name: np.zeros_like(gaps.outside) for name in _outside(events)}
    for tid in distinct(gaps.thread[gaps.thread >= 0])[0].tolist():
        mine, thread = np.flatnonzero(gaps.thread == tid), events.of_thread(tid)
        low, high, left = gaps.opened[mine], gaps.closed[mine], gaps.outside[mine]
        before = NOTHING
        for name, spans in _outside(thread).items():
            time = measure_inside(spans - before, low, high)
            if name == "compiling":
                time = np.maximum(time, _sampled_compiling(events, thread, low, high, left))
            parts[name][mine] = np.minimum(time, left)
            left, before = left - parts[name][mine], before | spans
    return replace(gaps, **parts)


def _sampled_compiling(
    events: HostEvents, thread: HostEvents, low: Ints, high: Ints, left: Ints
) -> Ints:
    """The part of what is left of intervals in which CPU samples were taken in compilers, in ns.

    Those of the thread, or where it slept those of its process.
    """
    time = np.zeros_like(left)
    long = np.flatnonzero(left >= HOST_GAP_NS)
    own, every = (
        compiled_share(samples, low[long], high[long])
        for samples in (thread.samples, events.samples)
    )
    time[long] = left[long] * np.where(np.isnan(own), np.nan_to_num(every), own)
    return time


def _outside(events: HostEvents) -> dict[str, Spans]:
    """What takes time outside of CUDA, the first first where several are true."""
    return {
        "mpi": spans_of(events.mpi_calls),
        "compiling": compiling(events.ranges),
        "in_out": ins_and_outs(events.os_calls),
    }


def others(calls: Frame) -> Frame:
    """The calls that launch, copy, allocate and wait for nothing: cudaGetDeviceProperties."""
    return calls.take(kinds_of_calls(calls.labels("name")) == OTHER)


def activity(
    gaps: IdleGaps, row: int, window: Spans, events: HostEvents | None, calls: Frame
) -> str:
    """What the launching thread did in one interval, for people; `calls` are `others`."""
    tid, least = int(gaps.thread[row]), LEAST_PART * int(gaps.length[row])
    if gaps.after[row] == NO_ROW:
        return "nothing more was launched"
    if tid < 0:
        return "not known: the next launch was not recorded"
    time = union(gaps.opened[row : row + 1], gaps.closed[row : row + 1])
    name, share = most_in(time, calls.at(tid=tid))
    parts = [
        f"{format_time(lasted)} {f'in {name}' if part == 'outside' and share > 0.5 else what}"
        for part, what in _PARTS
        if (lasted := int(np.broadcast_to(getattr(gaps, part), len(gaps))[row])) > least
    ]
    said = "" if events is None else described(time, events.of_thread(tid), window)
    if said:
        parts.append(said)
    return "; ".join(parts)
