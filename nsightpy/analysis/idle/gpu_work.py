"""All GPU operations of a report side by side: when each ran, was launched, and on which stream."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import rows_by_group
from nsightpy.analysis.launches import NO_TIME, call_rows, of_calls
from nsightpy.frames import Frame, Ints, distinct_pairs

COMPUTE, COMMUNICATION, COPY, SET, GRAPH = range(5)
KINDS = ("compute", "communication", "copy", "memory set", "graph")
WORK_COLUMNS = ("start_ns", "end_ns", "pid", "device", "context", "stream", "correlation_id")
STREAM = ("pid", "context", "stream")
_MEMSET = "[CUDA memset]"

Rows: TypeAlias = NDArray[np.int32]


class Work(NamedTuple):
    """All GPU work of some places, with WORK_COLUMNS, names and operations."""

    kernels: Frame
    operations: Frame
    graphs: Frame


@dataclass(frozen=True)
class GpuWork:
    """GPU operations, one row each: kernels by start, then memory operations, then graphs.

    Times in ns; `launch` is the start of the launch call, NO_TIME where none was recorded, and
    `call` its row among the calls, NO_LAUNCH for none.
    A stream is known by process, context and id, a place is a device as one process sees it.
    `by_stream` are the rows by stream, then start; stream s owns bounds[s]:bounds[s + 1] of them.
    """

    start: Ints
    end: Ints
    launch: Ints
    call: Rows
    kind: NDArray[np.int8]
    place: Rows
    places: tuple[tuple[int, int], ...]
    stream: Rows
    streams: tuple[tuple[int, int, int], ...]

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def by_stream(self) -> Ints:
        by_time = np.argsort(self.start, kind="stable")
        return by_time[rows_by_group(self.stream[by_time])]

    @cached_property
    def bounds(self) -> Ints:
        counts = np.bincount(self.stream, minlength=len(self.streams))
        return np.concatenate([[0], np.cumsum(counts)])

    def reached(self, times: Ints) -> Ints:
        """The largest value so far on each stream, of values in the order of `by_stream`."""
        largest = np.empty(len(times), dtype=np.int64)
        for low, high in pairwise(self.bounds.tolist()):
            np.maximum.accumulate(times[low:high], out=largest[low:high])
        return largest

    @cached_property
    def pid(self) -> Ints:
        """The process of each operation."""
        return np.asarray([pid for pid, _ in self.places], dtype=np.int64)[self.place]

    @property
    def previous(self) -> Rows:
        """The row of the operation before each one on its stream; -1 for a stream's first."""
        rows = np.full(len(self), -1, dtype=np.int32)
        order = self.by_stream
        rows[order[1:]] = order[:-1]
        rows[order[self.bounds[:-1]]] = -1
        return rows


def gpu_work(parts: Work, communication: NDArray[np.bool_], calls: Frame) -> GpuWork:
    """The work of some frames, and its launches.

    `communication` marks the kernels that communicate; `calls` have start_ns, pid and
    correlation_id of launch calls.
    """
    every = Frame.concatenate([part.select(WORK_COLUMNS) for part in parts])
    call = call_rows(every, calls)
    places, place = distinct_pairs(every.ints("pid"), every.ints("device"))
    streams, stream = numbered_streams(every)
    return GpuWork(
        every.ints("start_ns"),
        every.ints("end_ns"),
        of_calls(calls.ints("start_ns"), call, NO_TIME),
        call,
        _kinds(communication, parts.operations, parts.graphs.rows),
        place,
        tuple(places),
        stream,
        tuple(streams),
    )


def _kinds(communication: NDArray[np.bool_], operations: Frame, graphs: int) -> NDArray[np.int8]:
    sets = operations.labels("operation").equals([_MEMSET])
    kernels, memory = len(communication), len(sets)
    kind = np.full(kernels + memory + graphs, COMPUTE, dtype=np.int8)
    kind[:kernels][communication] = COMMUNICATION
    kind[kernels : kernels + memory] = COPY
    kind[kernels : kernels + memory][sets] = SET
    kind[kernels + memory :] = GRAPH
    return kind


def numbered_streams(rows: Frame) -> tuple[list[tuple[int, int, int]], Rows]:
    """The streams (process, context, id) of some rows, sorted, and for each row its place there."""
    contexts, context = distinct_pairs(rows.ints("pid"), rows.ints("context"))
    streams, codes = distinct_pairs(context.astype(np.int64), rows.ints("stream"))
    return [(*contexts[place], number) for place, number in streams], codes
