"""What the host did while a device had no compute to run: launch, wait, or something else."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.causes import ComputeGaps
from nsightpy.analysis.intervals import (
    NOTHING,
    Spans,
    measure_before,
    overlap_total,
    spans_of,
    union,
)
from nsightpy.frames import Frame, Ints, Labels

_NUMBER = re.compile(r"\d+")
LEAST_COVERED = 0.5
MOST_LASTED = 0.9


@dataclass(frozen=True, slots=True)
class Starvation:
    """The time in which a device did nothing since the host gave it nothing, in ns; disjoint parts.

    after_sync: a synchronising call was in
    progress when the device ran dry; without it the host had launched ahead by as long as the call
    took, so at most that much of each gap counts, from its begin, launch latency included.
    elsewhere: all the rest that is launch-starved, the host was busy with something else. `waited`
    is the part of synchronising calls in which the device was idle; `sync_call` the one that cost
    most. `range_name` covers most of elsewhere, if any does; `call_share` of elsewhere was in long
    API calls, most of it in `call_name`.
    """

    after_sync_ns: int
    elsewhere_ns: int
    waited_ns: int
    syncs: int
    sync_call: str = ""
    range_name: str = ""
    range_share: float = 0.0
    call_name: str = ""
    call_share: float = 0.0


def starvation(
    gaps: ComputeGaps,
    window: Spans,
    idle: Spans,
    launching: Spans,
    syncs: Frame,
    ranges: Frame | None = None,
    long: Frame | None = None,
    apart: Spans = NOTHING,
) -> Starvation:
    """Divide the starved part of a device's gaps inside a window.

    `idle` is when the device did nothing at all, `launching` its launch-bound stretches; `syncs`,
    `ranges` and `long` are the process's synchronising calls, NVTX ranges and long API calls
    (start_ns, end_ns, name; the first with tid). `apart` is time inside long launching calls,
    which counts as such.
    """
    dry = idle & window
    starved = gaps.starved & dry
    waits = spans_of(syncs)
    drained, until = _drained(gaps, syncs)
    opened = gaps.opened[drained]
    after_sync = ((union(opened, until) & dry) - launching) - apart
    elsewhere = (starved - launching) - after_sync
    name, share = ("", 0.0) if ranges is None else covering_range(elsewhere, ranges, window)
    return Starvation(
        after_sync.total,
        elsewhere.total,
        overlap_total(waits & window, idle),
        counted(opened, until, after_sync),
        _costliest(syncs, opened, measure_before(after_sync, until), after_sync),
        name,
        share,
        *(("", 0.0) if long is None else _inside_calls(elsewhere, long)),
    )


def _inside_calls(time: Spans, calls: Frame) -> tuple[str, float]:
    """The API function that took the most of a set of time, and the share of all of them."""
    start, end = calls.ints("start_ns"), calls.ints("end_ns")
    covered = measure_before(time, end) - measure_before(time, start)
    if not time.total or not covered.any():
        return "", 0.0
    names = calls.labels("name")
    by_name = np.bincount(names.codes, weights=covered, minlength=len(names.values))
    share = overlap_total(union(start, end), time) / time.total
    return names.values[int(np.argmax(by_name))], share


def _drained(gaps: ComputeGaps, syncs: Frame) -> tuple[NDArray[np.bool_], Ints]:
    """The gaps that opened while a synchronising call was in progress, and how far it counts.

    A call that still goes on when the next kernel is launched is another thread's, and held nobody
    up who launches.
    """
    longest = np.zeros(len(gaps.opened), dtype=np.int64)
    threads = syncs.ints("tid")
    for thread in np.unique(threads).tolist():
        own = threads == thread
        waits = union(syncs.ints("start_ns")[own], syncs.ints("end_ns")[own])
        at = np.searchsorted(waits.starts, gaps.opened, side="right") - 1
        rows = np.flatnonzero((gaps.launched > gaps.opened) & (at >= 0))
        begin, end = waits.starts[at[rows]], waits.ends[at[rows]]
        held = (gaps.opened[rows] <= end) & (end <= gaps.launched[rows])
        rows, length = rows[held], (end - begin)[held]
        longest[rows] = np.maximum(longest[rows], length)
    drained = longest > 0
    # what it waited for through its stream or an event would have kept it waiting anyway
    ends = np.where(gaps.producer < 0, gaps.closed, gaps.launched)[drained]
    return drained, np.minimum(ends, gaps.opened[drained] + longest[drained])


def _costliest(syncs: Frame, opened: Ints, before_end: Ints, lost: Spans) -> str:
    """The name of the calls that were in progress at the begin of most of the time lost."""
    cost = before_end - measure_before(lost, opened)
    if not cost.any() or "name" not in syncs:
        return ""
    order = np.argsort(syncs.ints("start_ns"), kind="stable")
    at = np.searchsorted(syncs.ints("start_ns")[order], opened, side="right") - 1
    names = syncs.labels("name")
    costs = np.bincount(names.codes[order[at]], weights=cost, minlength=len(names.values))
    return names.values[int(np.argmax(costs))]


def covering_range(time: Spans, ranges: Frame, window: Spans) -> tuple[str, float]:
    """The shortest kind of range that covers at least half of a set of time, if any.

    Ranges that cover most of the whole window tell nothing.
    """
    if not time.total or not ranges.rows:
        return "", 0.0
    start, end = ranges.ints("start_ns"), ranges.ints("end_ns")
    names = ranges.labels("name")
    # ranges that differ in a number only, step 1 and step 2, are of one kind, step *
    names = Labels(names.codes, tuple(_NUMBER.sub("*", name) for name in names.values)).merged()
    covered = (measure_before(time, end) - measure_before(time, start)).astype(np.float64)
    count = len(names.values)
    by_name = np.bincount(names.codes, weights=covered, minlength=count)
    lasted = np.bincount(names.codes, weights=(end - start).astype(np.float64), minlength=count)
    tells = (by_name >= LEAST_COVERED * time.total) & (lasted <= MOST_LASTED * window.total)
    enough = np.flatnonzero(tells)
    if not len(enough):
        return "", 0.0
    best = int(enough[np.argmin(lasted[enough])])
    return names.values[best], min(float(by_name[best]) / time.total, 1.0)


def counted(starts: Ints, ends: Ints, window: Spans) -> int:
    """How many intervals share a moment with a window."""
    return int(np.count_nonzero(measure_before(window, ends) > measure_before(window, starts)))
