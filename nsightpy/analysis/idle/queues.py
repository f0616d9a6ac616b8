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
class LaunchBound:
    """The launch-bound stretches of one device: their time, and how many kernels ran in them."""

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
    starts, ends, kernels = [], [], 0
    for stream in range(len(work.streams)):
        rows = _rows_of(work, stream)
        kernel = work.kind[rows] <= max(COMPUTE, COMMUNICATION)
        rows = rows[kernel if len(work.places) == 1 else kernel & (work.place[rows] == place)]
        short = (work.end[rows] - work.start[rows]) < call_ns[rows]
        goes_on = _goes_on(work.launch[rows], call_ns[rows]) & short[1:] & short[:-1]
        first = np.flatnonzero(short & np.concatenate([[True], ~goes_on])[: len(rows)])
        last = np.flatnonzero(short & np.concatenate([~goes_on, [True]])[: len(rows)])
        long = last - first + 1 >= least
        if not long.any():
            continue
        first, last = first[long], last[long]
        kernels += int((last - first + 1).sum())
        starts.append(work.launch[rows[first]])
        ends.append(work.end[rows[last]])
    if not starts:
        return LaunchBound(NOTHING, 0)
    return LaunchBound(union(np.concatenate(starts), np.concatenate(ends)), kernels)


def _goes_on(launch: Ints, call_ns: Ints) -> NDArray[np.bool_]:
    """Whether the host went on launching after each operation but the last."""
    pause: NDArray[np.bool_] = launch[1:] - (launch + call_ns)[:-1] <= PAUSE_NS
    return pause


def _rows_of(work: GpuWork, stream: int) -> Ints:
    """The launched operations of a stream, in its order."""
    rows = work.by_stream[work.bounds[stream] : work.bounds[stream + 1]]
    launched: Ints = rows[work.launch[rows] != NO_TIME]
    return launched
