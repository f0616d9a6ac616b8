"""Why a device was idle: per stream as HTA says it, and per device what kept compute away.

Per stream (HolisticTraceAnalysis, but with the running maximum of previous ends): a gap is host
wait when the launch call began after the previous end, else kernel wait when it is shorter than
30 us, else other. Sums over a device's streams can exceed its window.
https://hta.readthedocs.io/en/latest/source/features/idle_time_breakdown.html

Per device: each interval without compute ends with a compute kernel. It is launch-starved until
that kernel's launch call begins. The rest is blocking when the operation that the kernel waits
for (the one before it on its stream, or one it waits for through events) ends after both the
gap's opening and the launch, else dependency-stalled. What follows the last compute kernel, and
gaps before kernels without a recorded launch, stay unattributed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.gpu_work import COMPUTE, GpuWork, Rows
from nsightpy.analysis.intervals import Spans, measure_before, overlap_total, union
from nsightpy.analysis.launches import NO_TIME
from nsightpy.frames import Ints

KERNEL_WAIT_NS = 30_000


@dataclass(frozen=True, slots=True)
class StreamWaits:
    """Gaps on the streams of one device inside a window, in ns, added over the streams."""

    host_wait_ns: int = 0
    kernel_wait_ns: int = 0
    other_wait_ns: int = 0

    @property
    def total_ns(self) -> int:
        return self.host_wait_ns + self.kernel_wait_ns + self.other_wait_ns


@dataclass(frozen=True, slots=True)
class IdleCauses:
    """What kept compute away from one device inside a window, in ns.

    The three causes, the tail after the last compute kernel and the gaps before kernels without a
    recorded launch add up to the time without compute.
    """

    launch_starved_ns: int
    blocking_ns: int
    dependency_stalled_ns: int
    tail_ns: int
    unlaunched_ns: int

    @property
    def unattributed_ns(self) -> int:
        return self.tail_ns + self.unlaunched_ns

    @property
    def compute_absent_ns(self) -> int:
        attributed = self.launch_starved_ns + self.blocking_ns + self.dependency_stalled_ns
        return attributed + self.unattributed_ns


@dataclass(frozen=True, slots=True)
class ComputeGaps:
    """The intervals without compute on one device, as [opened, closed) in ns.

    `launched` divides each at the launch of the kernel that closes it; `row` is that kernel's and
    `producer` that of the operation it waited for in the rest, -1 for none. A kernel without a
    recorded launch has `launched` NO_TIME. `tail` is the interval after the last compute kernel.
    """

    opened: Ints
    closed: Ints
    launched: Ints
    row: Rows
    producer: Rows
    tail: Spans

    @property
    def starved(self) -> Spans:
        """When the device had no compute and the next kernel's launch had not begun."""
        known = self.launched != NO_TIME
        return union(self.opened[known], self.launched[known])


def stream_waits(work: GpuWork, windows: Mapping[int, Spans]) -> dict[int, StreamWaits]:
    """Idle time of the streams of each place (number -> window), HTA's way."""
    order = work.by_stream
    start, launch = work.start[order][1:], work.launch[order][1:]
    previous = work.reached(work.end[order])[:-1]
    host, short = launch > previous, start - previous < KERNEL_WAIT_NS
    kernel = short & ~host
    # from one stream to the next there is no gap
    within = np.ones(len(start), dtype=np.bool_)
    within[work.bounds[1:-1] - 1] = False
    rows_of = _by_place(work.place[order][1:], len(work.places))
    waits = {}
    for number, window in windows.items():
        rows = rows_of(number)
        lost = _inside(previous[rows], start[rows], window) * within[rows]
        on_host, on_kernel = int(lost[host[rows]].sum()), int(lost[kernel[rows]].sum())
        waits[number] = StreamWaits(on_host, on_kernel, int(lost.sum()) - on_host - on_kernel)
    return waits


def _by_place(place: NDArray[Any], places: int) -> Callable[[int], Ints | slice]:
    """The rows of each place; their order is found once, not once for each."""
    if places == 1:
        return lambda _: slice(None)
    order = np.argsort(place, kind="stable")
    edges = np.searchsorted(place[order], np.arange(places + 1))
    return lambda number: order[edges[number] : edges[number + 1]]


def compute_gaps(
    work: GpuWork, place: int, window: Spans, previous: Rows, awaited: Rows | None
) -> ComputeGaps:
    """The intervals without compute on one place, from the window's begin to its end at least.

    `previous` is the row before each operation on its stream, `awaited` the row that it waited
    for through events; None where waits are not followed.
    """
    begin, end = (int(window.starts[0]), int(window.ends[-1])) if len(window) else (0, 0)
    row, opened, closed, last = _without_compute(work, place, begin)
    launched = work.launch[row]
    known = launched != NO_TIME
    np.clip(launched, opened, closed, out=launched, where=known)
    producer = _producers(
        work, row, launched if known.all() else np.where(known, launched, closed), previous, awaited
    )
    producer[~known] = -1
    tail = Spans.of(last, end)
    return ComputeGaps(opened, closed, launched, row, producer, tail)


def _without_compute(work: GpuWork, place: int, begin: int) -> tuple[Rows, Ints, Ints, int]:
    """The kernels that end time without compute, from when to when, and when the last one ended."""
    mine = work.kind == COMPUTE
    rows = np.flatnonzero(mine if len(work.places) == 1 else mine & (work.place == place))
    opens = np.empty(len(rows) + 1, dtype=np.int64)
    opens[0] = begin
    np.maximum.accumulate(work.end[rows], out=opens[1:])
    start = work.start[rows]
    heads = np.flatnonzero(start > opens[:-1])
    return rows[heads].astype(np.int32), opens[heads], start[heads], int(opens[-1])


def _producers(
    work: GpuWork, row: Rows, launched: Ints, previous: Rows, awaited: Rows | None
) -> Rows:
    """The operation that each kernel still waited for after its launch; -1 for none."""
    producer = previous[row]
    ended = work.end[producer]
    producer[(ended <= launched) | (producer < 0)] = -1
    if awaited is None:
        return producer
    other = awaited[row]
    until = np.where(producer >= 0, ended, launched)
    later = (other >= 0) & (work.end[other] > until)
    producer[later] = other[later]
    return producer


def idle_causes(work: GpuWork, gaps: ComputeGaps, window: Spans) -> IdleCauses:
    """The causes of a device's time without compute inside a window; parts add up exactly."""
    known = gaps.launched != NO_TIME
    divided = gaps.launched if known.all() else np.where(known, gaps.launched, gaps.opened)
    rest = _within(divided, gaps.closed, window)
    blocked = gaps.producer >= 0
    return IdleCauses(
        launch_starved_ns=int(_within(gaps.opened, divided, window).sum()),
        blocking_ns=int(rest[blocked].sum()),
        dependency_stalled_ns=int(rest[known & ~blocked].sum()),
        tail_ns=overlap_total(gaps.tail, window),
        unlaunched_ns=int(rest[~known].sum()),
    )


def _within(low: Ints, high: Ints, window: Spans) -> Ints:
    """The same for disjoint intervals in order, most of which are often inside."""
    if len(window) and len(low) and window.starts[0] <= low[0] and high[-1] <= window.ends[0]:
        return high - low
    return _inside(low, high, window)


def _inside(low: Ints, high: Ints, window: Spans) -> Ints:
    """The length of each interval inside the window, in ns; 0 where it ends before it begins."""
    if len(window) == 1:
        inside: Ints = np.minimum(high, window.ends[0]) - np.maximum(low, window.starts[0])
        np.maximum(inside, 0, out=inside)
        return inside
    return measure_before(window, np.maximum(low, high)) - measure_before(window, low)
