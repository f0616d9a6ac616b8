"""How many operations the host had given each stream to do, and what kept streams waiting.

Queue length of a stream: +1 when the launching call begins, -1 when the operation begins to run.

A gap on a stream (HolisticTraceAnalysis, but with the running maximum of previous ends) is host
wait when the launch call began after the previous end, else kernel wait when it is shorter than
30 us, else other. Sums over a device's streams can exceed its window.
https://hta.readthedocs.io/en/latest/source/features/idle_time_breakdown.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.intervals import Spans, concurrency, measure_before
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.work_graph.launched_work import LaunchedWork

KERNEL_WAIT_NS = 30_000


@dataclass(frozen=True, slots=True)
class StreamQueue:
    """How many operations of one stream waited to run, from its first launch to its last end.

    `stream` is its id, `number` its place in the work's streams. `longest` is the longest queue,
    `mean` is over that window, whose length is window_ns; `peak_ns`: when it was longest, first;
    empty_ns: for how long nothing waited.
    """

    place: tuple[int, int]
    stream: int
    number: int
    operations: int
    window_ns: int
    longest: int
    mean: float
    peak_ns: int
    empty_ns: int


def stream_queues(work: LaunchedWork, counted: NDArray[np.bool_]) -> list[StreamQueue]:
    """The queue of every stream with launched operations among those that are counted."""
    queues = []
    known = counted & (work.launch != NO_TIME)
    for number, stream in enumerate(work.streams):
        rows = work.by_stream[work.bounds[number] : work.bounds[number + 1]]
        rows = rows[known[rows]]
        if not len(rows):
            continue
        length = concurrency(work.launch[rows], work.start[rows])
        low, high = int(work.launch[rows].min()), int(work.end[rows].max())
        lasted = np.diff(length.times)
        waited = length.counts[:-1]
        peak = int(length.times[np.argmax(length.counts)]) if len(length.times) else low
        queues.append(
            StreamQueue(
                work.places[int(work.place[rows[0]])],
                stream[-1],
                number,
                len(rows),
                high - low,
                length.peak,
                float((waited * lasted).sum() / (high - low)) if high > low else 0.0,
                peak,
                high - low - int(lasted[waited > 0].sum()),
            )
        )
    return queues


@dataclass(frozen=True, slots=True)
class StreamWaits:
    """Gaps on the streams of one device inside a window, in ns, added over the streams."""

    host_wait_ns: int = 0
    kernel_wait_ns: int = 0
    other_wait_ns: int = 0


def stream_waits(work: LaunchedWork, windows: Mapping[int, Spans]) -> dict[int, StreamWaits]:
    """Idle time of the streams of each place (number -> window), HTA's way."""
    order = work.by_stream
    start, launch = work.start[order][1:], work.launch[order][1:]
    previous = work.reached(work.end[order])[:-1]
    host, short = launch > previous, start - previous < KERNEL_WAIT_NS
    kernel = short & ~host
    # from one stream to the next there is no gap
    within = np.ones(len(start), dtype=np.bool_)
    within[work.bounds[1:-1] - 1] = False
    place, until = work.place[order][1:], np.maximum(previous, start)
    waits = {}
    for number, window in windows.items():
        rows = np.flatnonzero(within & (place == number))
        lost = measure_before(window, until[rows]) - measure_before(window, previous[rows])
        on_host, on_kernel = int(lost[host[rows]].sum()), int(lost[kernel[rows]].sum())
        waits[number] = StreamWaits(on_host, on_kernel, int(lost.sum()) - on_host - on_kernel)
    return waits
