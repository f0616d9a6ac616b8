"""Idle intervals of a device, each divided by what the thread did that launched what came next.

An idle interval is time of a window in which the device did nothing at all. It ends with an
operation; the thread that launched it is looked at (../../docs/numbers.md, "Idle intervals"):

- in the launching call itself; in calls that allocate, load code or wait; outside of CUDA;
- after the call: launched, and not begun.

What that means is the cause (`gap_causes`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.gap_causes import LONG_CALL_NS, IdleGaps
from nsightpy.analysis.idle.gpu_work import Rows
from nsightpy.analysis.idle.host_calls import ALLOCATION, COPY, MODULE, WAIT, kinds_of_calls
from nsightpy.analysis.idle.idle_time import NO_ROW, IdleTime
from nsightpy.analysis.intervals import Spans, consecutive, measure_inside, union
from nsightpy.analysis.launches import NO_TIME
from nsightpy.frames import Frame, Ints, distinct

# Short allocations are looked at where they take this part of a window or more.
LEAST_ALLOCATING = 0.03


@dataclass(frozen=True, slots=True)
class Launches:
    """The launching call of each row of a GpuWork: times in ns (NO_TIME: not recorded), thread.

    `first` marks the first launch of each kernel in its process; `stages` is the cause that long
    calls count for which copy between host and device (TO_DEVICE, TO_HOST), -1 for others;
    `staged` marks those that copy pageable memory, whose calls count however short they are,
    `blocks` those that copy to it from the device, whose calls return when that is done. What
    `migrates` no call launched: it begins when a page is touched, by the thread that launches next.
    """

    start: Ints
    end: Ints
    thread: Ints
    first: NDArray[np.bool_]
    stages: NDArray[np.int8]
    staged: NDArray[np.bool_]
    blocks: NDArray[np.bool_]
    migrates: NDArray[np.bool_]


def idle_gaps(idle: IdleTime, window: Spans, launches: Launches, calls: Frame) -> IdleGaps:
    """The idle intervals of one place inside a window.

    `calls` are the process's blocking and long API calls: start_ns, end_ns, tid, name, by start.
    """
    calls = _counted(calls, window)
    opened, closed, before, after = idle.inside(window)
    start = _at(launches.start, after, NO_TIME)
    known = start != NO_TIME
    thread = _at(launches.thread, after, -1)
    thread[~known] = -1
    begun = np.clip(start, opened, closed)
    done = np.clip(_at(launches.end, after, NO_TIME), opened, closed)
    in_calls = tuple(np.zeros(len(opened), dtype=np.int64) for _ in range(4))
    for gaps, mine in _by_thread(thread, calls):
        low, high, launched = (
            times if len(gaps) == len(times) else times[gaps] for times in (opened, begun, start)
        )
        parts = (*_inside_calls(mine, low, high), _held(mine, low, launched))
        for whole, part in zip(in_calls, parts, strict=True):
            some = np.flatnonzero(part)
            whole[gaps[some]] = part[some]
    waiting, allocating, loading, held = in_calls
    _hold_by_copies(held, launches, before, thread, opened, start)
    in_call, queued, outside = done - begun, closed - done, begun - opened
    for part in in_calls[:3]:
        outside -= part
    for part in (in_call, queued, outside):
        part[~known] = 0
    stages = launches.stages[after]
    stages[~known] = -1
    return IdleGaps(
        opened,
        closed,
        before,
        after,
        thread,
        in_call,
        queued,
        waiting,
        allocating,
        loading,
        outside,
        held,
        stages=stages,
        staged=launches.staged[after],
        first=known & launches.first[after],
        migrates=launches.migrates[after] & (after != NO_ROW),
    )


def _hold_by_copies(
    held: Ints, launches: Launches, before: Rows, thread: Ints, opened: Ints, launched: Ints
) -> None:
    """Enter the calls, however short, that wait for the copy after which an interval opens."""
    rows = np.flatnonzero((held == 0) & launches.blocks[before] & (before != NO_ROW))
    copy = before[rows]
    begun, done = launches.start[copy], launches.end[copy]
    holds = (launches.thread[copy] == thread[rows]) & (begun != NO_TIME)
    holds &= (opened[rows] <= done) & (done <= launched[rows])
    held[rows[holds]] = (done - begun)[holds]


def _at(values: Ints, rows: Rows, missing: int) -> Ints:
    """The values of some rows; `missing` for no row."""
    picked = values[rows]
    picked[rows == NO_ROW] = missing
    return picked


def _counted(calls: Frame, window: Spans) -> Frame:
    """The calls without short allocations, unless those add up to a material part of a window."""
    length = calls.ints("end_ns") - calls.ints("start_ns")
    short = (kinds_of_calls(calls.labels("name")) == ALLOCATION) & (length < LONG_CALL_NS)
    short &= ~_frees(calls)
    if int(length[short].sum()) >= LEAST_ALLOCATING * window.total:
        return calls
    return calls.take(~short)


def _frees(calls: Frame) -> NDArray[np.bool_]:
    """Mask of the calls that free memory, which waits for the device."""
    return calls.labels("name").where(lambda name: "Free" in name and "Async" not in name)


def _by_thread(thread: Ints, calls: Frame) -> list[tuple[Ints, Frame]]:
    """For each thread: its intervals, and its calls."""
    made = calls.ints("tid")
    return [
        (np.flatnonzero(thread == tid), calls.take(made == tid))
        for tid in distinct(thread)[0].tolist()
        if tid >= 0
    ]


def _inside_calls(calls: Frame, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """How much of each interval lies in calls that wait, allocate and load code; disjoint."""
    kinds = kinds_of_calls(calls.labels("name"))
    start, end = calls.ints("start_ns"), calls.ints("end_ns")
    loading, allocating, waiting, copying = (
        union(start[kinds == kind], end[kinds == kind]) for kind in (MODULE, ALLOCATION, WAIT, COPY)
    )
    allocating = allocating - loading
    waiting = (waiting | copying) - loading - allocating
    first, second, third = (
        measure_inside(spans, low, high) for spans in (waiting, allocating, loading)
    )
    return first, second, third


def _held(calls: Frame, opened: Ints, launched: Ints) -> Ints:
    """How long the blocking call took that was in progress when each interval opened, in ns.

    0 where there was none, or where it went on after the next launch had begun.
    """
    kinds = kinds_of_calls(calls.labels("name"))
    start, end = calls.ints("start_ns"), calls.ints("end_ns")
    # other allocations wait for nothing, unless they take long
    allocation = (kinds == ALLOCATION) & (_frees(calls) | (end - start >= LONG_CALL_NS))
    blocking = (kinds == WAIT) | (kinds == COPY) | allocation
    waits = union(start[blocking], end[blocking])
    low = np.searchsorted(opened, waits.starts, side="left")
    counts = np.searchsorted(opened, waits.ends, side="right") - low
    wait = np.repeat(np.arange(len(waits)), counts)
    rows = consecutive(low, counts)
    over = waits.ends[wait] <= launched[rows]
    held = np.zeros(len(opened), dtype=np.int64)
    held[rows[over]] = (waits.ends - waits.starts)[wait[over]]
    return held
