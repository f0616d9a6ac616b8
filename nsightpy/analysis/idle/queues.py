"""What the host gave the GPU to do: how long queues were, and where launching set the pace.

Queue length of a stream: +1 when the launching call begins, -1 when the operation begins to run.
A stretch is launch-bound when many kernels in a row run shorter than their launching call.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.gpu_work import COMMUNICATION, COMPUTE, GpuWork
from nsightpy.analysis.intervals import NOTHING, Concurrency, Spans, concurrency, union
from nsightpy.analysis.launches import NO_TIME
from nsightpy.frames import Ints

STRETCH = 20
PAUSE_NS = 50_000


@dataclass(frozen=True, slots=True)
class StreamQueue:
    """How many operations of one stream waited to run, from its first launch to its last end.

    `length`: over time; `mean`: over that window, whose length is window_ns; `peak_ns`: when it was
    longest, first; empty_ns: for how long nothing waited; `bound`: its launch-bound stretches.
    """

    place: tuple[int, int]
    stream: tuple[int, int, int]
    operations: int
    window_ns: int
    length: Concurrency
    mean: float
    peak_ns: int
    empty_ns: int
    bound: LaunchBound


@dataclass(frozen=True, slots=True)
class LaunchBound:
    """Launch-bound stretches: their time, and how many kernels ran in them."""

    stretches: Spans
    kernels: int


def queue_length(work: GpuWork, stream: int) -> Concurrency:
    """How many operations of a stream were launched and had not begun, over time."""
    rows = _rows_of(work, stream)
    return concurrency(work.launch[rows], work.start[rows])


def launch_bound(work: GpuWork, place: int, call_ns: Ints, least: int = STRETCH) -> LaunchBound:
    """Runs of `least` or more kernels on one stream that were shorter than their launching calls.

    `call_ns` is how long the call took that launched each operation, 0 where it is not known. A
    stretch lasts from the first launch to the last end of its kernels, and ends where the host
    paused between launches for more than 50 us.
    """
    bound = LaunchBound(NOTHING, 0)
    # every stream belongs to one place, that of its operations
    owners = work.place[work.by_stream[work.bounds[:-1]]] if len(work.streams) else work.place
    for stream in np.flatnonzero(owners == place).tolist():
        rows = _rows_of(work, stream)
        of_stream = _bound_among(work, rows[work.place[rows] == place], call_ns, least)
        bound = LaunchBound(
            bound.stretches | of_stream.stretches, bound.kernels + of_stream.kernels
        )
    return bound


def stream_queues(work: GpuWork, call_ns: Ints) -> list[StreamQueue]:
    """The queue of every stream with launched operations, in the order of the streams."""
    queues = []
    for number, stream in enumerate(work.streams):
        rows = _rows_of(work, number)
        if not len(rows):
            continue
        length = queue_length(work, number)
        low, high = int(work.launch[rows].min()), int(work.end[rows].max())
        lasted = np.diff(length.times)
        waited = length.counts[:-1]
        peak = int(length.times[np.argmax(length.counts)]) if len(length.times) else low
        queues.append(
            StreamQueue(
                work.places[int(work.place[rows[0]])],
                stream,
                len(rows),
                high - low,
                length,
                float((waited * lasted).sum() / (high - low)) if high > low else 0.0,
                peak,
                high - low - int(lasted[waited > 0].sum()),
                _bound_among(work, rows, call_ns, STRETCH),
            )
        )
    return queues


def longest_in(length: Concurrency, low: int, high: int, parts: int) -> tuple[Ints, Ints]:
    """The begins of so many equal parts of a stretch of time, and the longest queue in each."""
    begins = low + np.arange(parts, dtype=np.int64) * (high - low) // parts
    if not len(length.times):
        return begins, np.zeros_like(begins)
    ends = np.append(begins[1:], high)
    first = np.searchsorted(length.times, begins, side="right") - 1
    after = np.searchsorted(length.times, ends, side="left")
    longest = np.where(first >= 0, length.counts[np.maximum(first, 0)], 0)
    some = np.flatnonzero(after > first + 1)
    if len(some):
        edges = np.column_stack([first[some] + 1, after[some]]).ravel()
        within = np.maximum.reduceat(np.append(length.counts, 0), edges)[::2]
        longest[some] = np.maximum(longest[some], within)
    return begins, longest


def _bound_among(work: GpuWork, rows: Ints, call_ns: Ints, least: int) -> LaunchBound:
    """The launch-bound stretches among the operations of one stream, in its order."""
    rows = rows[work.kind[rows] <= max(COMPUTE, COMMUNICATION)]
    short = (work.end[rows] - work.start[rows]) < call_ns[rows]
    goes_on = _goes_on(work.launch[rows], call_ns[rows]) & short[1:] & short[:-1]
    first = np.flatnonzero(short & np.concatenate([[True], ~goes_on])[: len(rows)])
    last = np.flatnonzero(short & np.concatenate([~goes_on, [True]])[: len(rows)])
    long = last - first + 1 >= least
    first, last = first[long], last[long]
    stretches = union(work.launch[rows[first]], work.end[rows[last]])
    return LaunchBound(stretches, int((last - first + 1).sum()))


def _goes_on(launch: Ints, call_ns: Ints) -> NDArray[np.bool_]:
    """Whether the host went on launching after each operation but the last."""
    pause: NDArray[np.bool_] = launch[1:] - (launch + call_ns)[:-1] <= PAUSE_NS
    return pause


def _rows_of(work: GpuWork, stream: int) -> Ints:
    """The launched operations of a stream, in its order."""
    rows = work.by_stream[work.bounds[stream] : work.bounds[stream + 1]]
    launched: Ints = rows[work.launch[rows] != NO_TIME]
    return launched
