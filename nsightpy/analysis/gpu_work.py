"""All GPU operations of a report side by side: when each ran, was launched, and on which stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.launches import launch_starts
from nsightpy.frames import Frame, Ints, distinct

COMPUTE, COMMUNICATION, COPY, SET, GRAPH = range(5)
KINDS = ("compute", "communication", "copy", "memory set", "graph")
WORK_COLUMNS = ("start_ns", "end_ns", "pid", "device", "context", "stream", "correlation_id")
_MEMSET = "[CUDA memset]"


@dataclass(frozen=True, slots=True)
class GpuWork:
    """GPU operations, one row each: kernels by start, then memory operations, then graphs.

    Times in ns; `launch` is the start of the launch call, NO_TIME where none was recorded.
    A stream is known by process, context and id, a place is a device as one process sees it.
    `by_stream` are the rows by stream, then start; stream s owns bounds[s]:bounds[s + 1] of them.
    """

    start: Ints
    end: Ints
    launch: Ints
    kind: NDArray[np.int8]
    place: NDArray[np.int32]
    places: tuple[tuple[int, int], ...]
    stream: NDArray[np.int32]
    streams: tuple[tuple[int, int, int], ...]
    by_stream: Ints
    bounds: Ints

    def __len__(self) -> int:
        return len(self.start)

    def reached(self, times: Ints) -> Ints:
        """The largest value so far on each stream, of values in the order of `by_stream`."""
        found = np.empty(len(times), dtype=np.int64)
        for low, high in pairwise(self.bounds.tolist()):
            np.maximum.accumulate(times[low:high], out=found[low:high])
        return found

    @property
    def previous(self) -> Ints:
        """The row of the operation before each one on its stream; -1 for a stream's first."""
        rows = np.full(len(self), -1, dtype=np.int64)
        order = self.by_stream
        rows[order[1:]] = order[:-1]
        rows[order[self.bounds[:-1]]] = -1
        return rows


def gpu_work(
    kernels: Frame,
    communication: NDArray[np.bool_],
    operations: Frame,
    graphs: Frame,
    calls: Frame,
) -> GpuWork:
    """The work of frames with WORK_COLUMNS (and the memory operations' names), and its launches.

    `communication` marks the kernels that communicate; `calls` have start_ns, pid and
    correlation_id of launch calls.
    """
    parts = (kernels, operations, graphs)
    joined = (name for name in WORK_COLUMNS if name != "correlation_id")
    columns = {name: _joined([part.ints(name) for part in parts]) for name in joined}
    kind = np.full(len(columns["pid"]), GRAPH, dtype=np.int8)
    kind[: kernels.rows] = np.where(communication, COMMUNICATION, COMPUTE)
    sets = operations.labels("operation").equals([_MEMSET])
    kind[kernels.rows : kernels.rows + operations.rows] = np.where(sets, SET, COPY)
    place, places = _codes((columns["pid"], columns["device"]))
    stream, streams = _codes((columns["pid"], columns["context"], columns["stream"]))
    return GpuWork(
        columns["start_ns"],
        columns["end_ns"],
        np.concatenate([launch_starts(part, calls) for part in parts]),
        kind,
        place,
        tuple((pid, device) for pid, device in places),
        stream,
        tuple((pid, context, number) for pid, context, number in streams),
        _by_stream(stream, len(streams), columns["start_ns"]),
        np.concatenate([[0], np.cumsum(np.bincount(stream, minlength=len(streams)))]),
    )


def _joined(parts: Sequence[Ints]) -> Ints:
    """One column of several; a column that holds one value is carried as that value."""
    filled = [part for part in parts if len(part)]
    if len(filled) == 1:
        return filled[0]
    steady = all(part.strides == (0,) for part in filled)
    if filled and steady and len({int(part[0]) for part in filled}) == 1:
        return np.broadcast_to(filled[0][0], sum(map(len, filled)))
    return np.concatenate(parts)


def _codes(columns: Sequence[Ints]) -> tuple[NDArray[np.int32], tuple[tuple[int, ...], ...]]:
    """A small number for each combination of values that occurs, and the combinations."""
    codes: NDArray[np.int32] = np.broadcast_to(np.int32(0), len(columns[0]))
    keys: list[tuple[int, ...]] = [()]
    for column in columns:
        values, place = _distinct(column)
        if len(keys) == 1 or len(values) <= 1:
            codes = place if len(keys) == 1 else codes
            keys = [(*key, value) for key in keys for value in values.tolist()]
            continue
        pairs, codes = distinct(codes.astype(np.int64) * len(values) + place)
        found = (divmod(pair, len(values)) for pair in pairs.tolist())
        keys = [(*keys[key], int(values[value])) for key, value in found]
    return codes, tuple(keys)


def _distinct(column: Ints) -> tuple[Ints, NDArray[np.int32]]:
    if len(column) and column.strides == (0,):
        return column[:1], np.broadcast_to(np.int32(0), len(column))
    return distinct(column)


def _by_stream(stream: NDArray[np.int32], streams: int, start: Ints) -> Ints:
    """Rows by stream, then start, then row."""
    by_time = np.argsort(start, kind="stable")
    if streams <= 1:
        return by_time
    # numpy sorts 16-bit integers by radix
    small = stream.astype(np.uint16 if streams < 1 << 16 else np.int32)
    return by_time[np.argsort(small[by_time], kind="stable")]
