"""What kept the streams of a device waiting, as HTA says it.

A gap on a stream (HolisticTraceAnalysis, but with the running maximum of previous ends) is host
wait when the launch call began after the previous end, else kernel wait when it is shorter than
30 us, else other. Sums over a device's streams can exceed its window.
https://hta.readthedocs.io/en/latest/source/features/idle_time_breakdown.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.gpu_work import GpuWork
from nsightpy.analysis.intervals import Spans, measure_before
from nsightpy.frames import Ints

KERNEL_WAIT_NS = 30_000


@dataclass(frozen=True, slots=True)
class StreamWaits:
    """Gaps on the streams of one device inside a window, in ns, added over the streams."""

    host_wait_ns: int = 0
    kernel_wait_ns: int = 0
    other_wait_ns: int = 0


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


def _inside(low: Ints, high: Ints, window: Spans) -> Ints:
    """The length of each interval inside the window, in ns; 0 where it ends before it begins."""
    if len(window) == 1:
        inside: Ints = np.minimum(high, window.ends[0]) - np.maximum(low, window.starts[0])
        np.maximum(inside, 0, out=inside)
        return inside
    return measure_before(window, np.maximum(low, high)) - measure_before(window, low)
