"""What kept the streams of a device waiting, as HTA says it.

A gap on a stream (HolisticTraceAnalysis, but with the running maximum of previous ends) is host
wait when the launch call began after the previous end, else kernel wait when it is shorter than
30 us, else other. Sums over a device's streams can exceed its window.
https://hta.readthedocs.io/en/latest/source/features/idle_time_breakdown.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.idle.gpu_work import GpuWork
from nsightpy.analysis.intervals import Spans, measure_before

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
    place, until = work.place[order][1:], np.maximum(previous, start)
    waits = {}
    for number, window in windows.items():
        rows = np.flatnonzero(within & (place == number))
        lost = measure_before(window, until[rows]) - measure_before(window, previous[rows])
        on_host, on_kernel = int(lost[host[rows]].sum()), int(lost[kernel[rows]].sum())
        waits[number] = StreamWaits(on_host, on_kernel, int(lost.sum()) - on_host - on_kernel)
    return waits
