"""All GPU operations of a report side by side: when each ran, was launched, and on which stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.launches import NO_TIME, call_rows, of_calls
from nsightpy.frames import Frame, Ints, distinct, is_constant

COMPUTE, COMMUNICATION, COPY, SET, GRAPH = range(5)
KINDS = ("compute", "communication", "copy", "memory set", "graph")
WORK_COLUMNS = ("start_ns", "end_ns", "pid", "device", "context", "stream", "correlation_id")
_MEMSET = "[CUDA memset]"

Rows: TypeAlias = NDArray[np.int32]
Codes: TypeAlias = "NDArray[np.uint16] | NDArray[np.int32]"


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
    place: Codes
    places: tuple[tuple[int, int], ...]
    stream: Codes
    streams: tuple[tuple[int, int, int], ...]

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def by_stream(self) -> Ints:
        return _by_stream(self.stream, len(self.streams), self.start)

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
    start, end = (
        np.concatenate([part.ints(name) for part in parts]) for name in ("start_ns", "end_ns")
    )
    keys = [Frame({name: part[name] for name in ("pid", "correlation_id")}) for part in parts]
    call = call_rows(Frame.concatenate(keys), calls)
    place, places = numbered(parts, ("pid", "device"))
    stream, streams = numbered(parts, ("pid", "context", "stream"))
    return GpuWork(
        start,
        end,
        of_calls(calls.ints("start_ns"), call, NO_TIME),
        call,
        _kinds(communication, parts.operations, parts.graphs.rows),
        place,
        tuple((pid, device) for pid, device in places),
        stream,
        tuple((pid, context, number) for pid, context, number in streams),
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


def numbered(parts: Sequence[Frame], names: Sequence[str]) -> tuple[Codes, list[tuple[int, ...]]]:
    """A small number for each combination of values that occurs, and the combinations, sorted."""
    coded = [_coded([part.ints(name) for name in names]) for part in parts]
    keys = sorted({key for _, part_keys in coded for key in part_keys})
    numbers = {key: number for number, key in enumerate(keys)}
    small = np.uint16 if len(keys) < 1 << 16 else np.int32
    tables = (
        np.asarray([numbers[key] for key in part_keys], dtype=small) for _, part_keys in coded
    )
    numbered_parts = [table[codes] for table, (codes, _) in zip(tables, coded, strict=True)]
    return np.concatenate(numbered_parts), keys


def _coded(columns: Sequence[Ints]) -> tuple[NDArray[np.int32], list[tuple[int, ...]]]:
    """The same for columns of one frame, in no order."""
    codes: NDArray[np.int32] = np.zeros(len(columns[0]), dtype=np.int32)
    keys: list[tuple[int, ...]] = [()]
    for column in columns:
        if is_constant(column):
            keys = [(*key, int(column[0])) for key in keys]
            continue
        values, place = distinct(column)
        if len(keys) == 1:
            codes, keys = place, [(*keys[0], value) for value in values.tolist()]
            continue
        pairs, codes = distinct(codes.astype(np.int64) * max(len(values), 1) + place)
        split = (divmod(pair, len(values)) for pair in pairs.tolist())
        keys = [(*keys[key], int(values[value])) for key, value in split]
    return codes, keys


def _by_stream(stream: Codes, streams: int, start: Ints) -> Ints:
    """Rows by stream, then start, then row."""
    by_time = np.argsort(start, kind="stable")
    # numpy sorts 16-bit integers by radix
    return by_time[np.argsort(stream[by_time], kind="stable")] if streams > 1 else by_time
