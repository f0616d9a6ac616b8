"""What the host did while a device had no compute to run: launch, wait, or something else."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.causes import ComputeGaps
from nsightpy.analysis.intervals import Spans, measure_before, overlap_total, union
from nsightpy.analysis.launches import NO_TIME
from nsightpy.frames import Frame, Ints, Labels

_NUMBER = re.compile(r"\d+")
LEAST_COVERED = 0.5
MOST_LASTED = 0.9


@dataclass(frozen=True, slots=True)
class Starvation:
    """The launch-starved time in which a device did nothing at all, in ns; parts are disjoint.

    launching: inside launch-bound stretches. after_sync: a synchronising call was in progress when
    the device ran dry, so nothing could be launched ahead. elsewhere: all the rest, the host was
    busy with something else. `waited` is the part of synchronising calls in which the device was
    idle: only that waiting cost GPU time. `range_name` covers most of elsewhere, if any does.
    """

    launching_ns: int
    after_sync_ns: int
    elsewhere_ns: int
    waited_ns: int
    syncs: int
    range_name: str = ""
    range_share: float = 0.0


def starvation(
    gaps: ComputeGaps,
    window: Spans,
    idle: Spans,
    launching: Spans,
    syncs: Frame,
    ranges: Frame | None = None,
) -> Starvation:
    """Divide the launch-starved part of a device's gaps inside a window.

    `idle` is when the device did nothing at all, `launching` its launch-bound stretches, `syncs`
    and `ranges` are the process's synchronising calls and NVTX ranges (start_ns, end_ns, name).
    """
    drained = _drained(gaps, syncs)
    known = gaps.launched != NO_TIME
    waits = union(syncs.ints("start_ns"), syncs.ints("end_ns"))
    dry = idle & window
    after_sync = union(gaps.opened[drained], gaps.launched[drained]) & dry
    rest = union(gaps.opened[known & ~drained], gaps.launched[known & ~drained]) & dry
    launching_ns = overlap_total(launching, rest) + overlap_total(launching, after_sync)
    elsewhere = rest - launching
    after_sync = after_sync - launching
    name, share = ("", 0.0) if ranges is None else covering_range(elsewhere, ranges, window)
    return Starvation(
        launching_ns,
        after_sync.total,
        elsewhere.total,
        overlap_total(waits & window, idle),
        counted(gaps.opened[drained], gaps.launched[drained], after_sync),
        name,
        share,
    )


def _drained(gaps: ComputeGaps, syncs: Frame) -> NDArray[np.bool_]:
    """The gaps that opened while a synchronising call was in progress."""
    known: NDArray[np.bool_] = gaps.launched != NO_TIME
    if not syncs.rows:
        return np.zeros(len(known), dtype=np.bool_)
    waits = union(syncs.ints("start_ns"), syncs.ints("end_ns"))
    if not len(waits):
        return np.zeros(len(known), dtype=np.bool_)
    at = np.searchsorted(waits.starts, gaps.opened, side="right") - 1
    inside = (at >= 0) & (gaps.opened <= waits.ends[np.maximum(at, 0)])
    return known & inside & (gaps.launched > gaps.opened)


def covering_range(time: Spans, ranges: Frame, window: Spans) -> tuple[str, float]:
    """The shortest kind of range that covers at least half of a set of time, if any.

    Ranges that cover most of the whole window tell nothing.
    """
    if not time.total or not ranges.rows:
        return "", 0.0
    start, end = ranges.ints("start_ns"), ranges.ints("end_ns")
    names = ranges.labels("name")
    # ranges that differ in a number only, step 1 and step 2, are of one kind
    names = Labels(names.codes, tuple(_NUMBER.sub("#", name) for name in names.values)).merged()
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
