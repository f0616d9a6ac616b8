"""All GPU operations side by side and the calls that launched them, and the frames of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import rows_by_group
from nsightpy.analysis.intervals import Spans, union
from nsightpy.analysis.launches import NO_TIME, api_calls, launch_rows, launch_starts, of_calls
from nsightpy.analysis.memory.copies import PAGEABLE, UNIFIED, host_memory, large
from nsightpy.analysis.work_graph.host_chain import (
    CALL_COLUMNS,
    COPY as COPIES,
    FREES,
    OTHER,
    HostChain,
    Rows,
    host_chain,
)
from nsightpy.frames import Frame, Ints, Labels, constant, distinct, distinct_pairs

COMPUTE, COMMUNICATION, COPY, SET, GRAPH = range(5)
WORK_COLUMNS = ("start_ns", "end_ns", "pid", "device", "context", "stream", "correlation_id")
EVENT_COLUMNS = ("pid", "context", "stream", "correlation_id", "event_sync_id")
SYNCHRONIZATION_COLUMNS = ("start_ns", "kind", *EVENT_COLUMNS)
_MEMSET = "[CUDA memset]"

Mask = NDArray[np.bool_]


class Work(NamedTuple):
    """All GPU work of some places, with WORK_COLUMNS, names and operations."""

    kernels: Frame
    operations: Frame
    graphs: Frame


@dataclass(frozen=True)
class WorkFrames:
    """What a `report` (path) contributes to the graph, small enough to travel.

    The memory operations of the work have bytes and memory kinds; `communication` marks kernels;
    `calls` are runtime, driver and MPI calls (CALL_COLUMNS) by start. The stretch from `low` to
    `high` (ns) is number `block` of all; a whole report has none (NO_TIME).
    """

    work: Work
    communication: Mask
    calls: Frame
    synchronizations: Frame
    events: Frame
    report: str = ""
    block: int = 0
    low: int = NO_TIME
    high: int = NO_TIME

    @property
    def frames(self) -> tuple[Frame, ...]:
        """All of them."""
        return (*self.work, self.calls, self.synchronizations, self.events)

    def pids(self) -> Ints:
        """The processes, in order."""
        return distinct(np.concatenate([frame.ints("pid") for frame in self.frames]))[0]

    def between(self, low: int, high: int) -> WorkFrames:
        """What ran in a stretch of time (ns), what each device began next, and their calls."""
        start, pid, device = (
            np.concatenate([frame.ints(name) for frame in self.work])
            for name in ("start_ns", "pid", "device")
        )
        after = start >= high
        places, place = distinct_pairs(pid[after], device[after])
        following = np.full(len(places), np.iinfo(np.int64).max)
        np.minimum.at(following, place, start[after])
        end = int(following.max(initial=high))
        kept = [(f.ints("end_ns") > low) & (f.ints("start_ns") <= end) for f in self.work]
        work = Work(*(frame.take(mask) for frame, mask in zip(self.work, kept, strict=True)))
        launched = np.concatenate([launch_starts(frame, self.calls) for frame in work])
        launched = launched[launched != NO_TIME]
        first = launched.min(initial=low)
        last = launched.max(initial=first)
        called, waited = (f.ints("start_ns") for f in (self.calls, self.synchronizations))
        calls = self.calls.take((called >= first) & (called <= last))
        return replace(
            self,
            work=work,
            communication=self.communication[kept[0]],
            calls=calls,
            synchronizations=self.synchronizations.take(waited >= first),
            events=self.events.take(launch_starts(self.events, calls) != NO_TIME),
            low=low,
            high=high,
        )

    def each(self, change: Callable[[Frame], Frame]) -> WorkFrames:
        """The same of frames that are changed."""
        *work, calls, waits, events = map(change, self.frames)
        return replace(self, work=Work(*work), calls=calls, synchronizations=waits, events=events)

    @classmethod
    def concatenate(cls, parts: Sequence[WorkFrames]) -> WorkFrames:
        """The frames of several."""
        of_kinds = zip(*(part.frames for part in parts), strict=True)
        *work, calls, waits, events = map(Frame.concatenate, of_kinds)
        communication = np.concatenate([part.communication for part in parts])
        return cls(Work(*work), communication, calls.ordered(), waits, events)


@dataclass(frozen=True)
class LaunchedWork:
    """GPU operations, one row each: kernels by start, then memory operations, then graphs.

    Times in ns; `launch` is the start of the launch call, NO_TIME where none was recorded, and
    `launched_by` the row in the `chain` of calls that it lies in, -1 for none.
    A stream is known by process, context and id, a place is a device as one process sees it.
    Masks: the `first` launch of a kernel on its device, a copy of `pageable` memory that the driver
    stages, what `migrates` pages without a call.
    """

    start: Ints
    end: Ints
    launch: Ints
    kind: NDArray[np.int8]
    place: Rows
    places: tuple[tuple[int, int], ...]
    stream: Rows
    streams: tuple[tuple[int, int, int], ...]
    names: Labels
    chain: HostChain
    launched_by: Rows
    first: Mask
    pageable: Mask
    migrates: Mask

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def pid(self) -> Ints:
        """The process of each operation."""
        return np.asarray([pid for pid, _ in self.places], dtype=np.int64)[self.place]

    def spans(self, mask: Mask) -> Spans:
        """When some of the operations ran."""
        return union(self.start[mask], self.end[mask])

    @cached_property
    def by_stream(self) -> Ints:
        """The rows by stream, then start."""
        by_time = np.argsort(self.start, kind="stable")
        return by_time[rows_by_group(self.stream[by_time])]

    @cached_property
    def bounds(self) -> Ints:
        """Stream s owns bounds[s]:bounds[s + 1] of the rows by stream."""
        counts = np.bincount(self.stream, minlength=len(self.streams))
        return np.concatenate([[0], np.cumsum(counts)])

    def reached(self, times: Ints) -> Ints:
        """The largest value so far on each stream, of values in the order of `by_stream`."""
        largest = np.empty(len(times), dtype=np.int64)
        for low, high in pairwise(self.bounds.tolist()):
            np.maximum.accumulate(times[low:high], out=largest[low:high])
        return largest

    @cached_property
    def previous(self) -> Rows:
        """The row of the operation before each one on its stream; -1 for a stream's first."""
        rows = np.full(len(self), -1, dtype=np.int32)
        order = self.by_stream
        rows[order[1:]] = order[:-1]
        rows[order[self.bounds[:-1]]] = -1
        return rows

    @cached_property
    def own_copies(self) -> Ints:
        """The copies that ended inside the call that made them, which waited for that."""
        rows = self._copied
        waited: Ints = rows[self.end[rows] <= self.chain.end[self.launched_by[rows]]]
        return waited

    @cached_property
    def _copied(self) -> Ints:
        """The operations of calls that copy."""
        return np.flatnonzero(np.append(self.chain.kind, OTHER)[self.launched_by] == COPIES)

    @cached_property
    def waits(self) -> Mask:
        """Mask of the calls that waited for the device: they synchronise, copy, or free memory."""
        chain = self.chain
        waits = chain.blocks.copy()
        # a call whose copy is known waited for it or did not
        waits[self.launched_by[self._copied]] = False
        waits[self.launched_by[self.own_copies]] = True
        frees = np.flatnonzero(chain.labels.where(FREES.search))
        if len(frees):
            # freeing waits for the device where something ended meanwhile
            last = np.sort(self.end)
            ended = [np.searchsorted(last, t[frees]) for t in (chain.start, chain.end)]
            waits[frees[ended[1] > ended[0]]] = True
        return waits

    def beyond_usual(self, calls: Ints | Rows) -> Ints:
        """How much longer some calls took than usual for their function, where it is no first."""
        names, length = self.chain.labels.codes, self.chain.end - self.chain.start
        again = np.ones(len(length), dtype=np.bool_)
        again[self.launched_by[self.first]] = False
        beyond = np.zeros(len(calls), dtype=np.int64)
        for name in np.unique(names[calls]):
            alike = names == name
            seen = length[alike & again] if (alike & again).any() else length[alike]
            of_name = names[calls] == name
            beyond[of_name] = np.maximum(length[calls[of_name]] - int(np.median(seen)), 0)
        return beyond


def launched_work(work: Work, communication: Mask, calls: Frame) -> LaunchedWork:
    """Operations (with names, bytes and kinds of memory) and their calls (CALL_COLUMNS, by start).

    `communication` marks the kernels that communicate.
    """
    every = Frame.concatenate([frame.select(WORK_COLUMNS) for frame in work])
    chain, call = host_chain(calls), launch_rows(every, calls)
    launch = of_calls(calls.ints("start_ns"), call, NO_TIME)
    launched_by = of_calls(chain.outermost, call, -1)
    places, place = distinct_pairs(every.ints("pid"), every.ints("device"))
    streams, stream = numbered_streams(every)
    memory, graphs = work.operations, Labels.constant("CUDA graph", work.graphs.rows)
    named = (work.kernels["name"], memory["operation"], graphs)
    names = Frame.concatenate([Frame({"name": each}) for each in named]).labels("name").merged()
    staged, first = np.zeros(every.rows, dtype=np.bool_), work.kernels.rows
    staged[first : first + memory.rows] = large(memory) & host_memory(memory).equals([PAGEABLE])
    kinds = (
        np.where(communication, np.int8(COMMUNICATION), np.int8(COMPUTE)),
        memory.labels("operation").map(lambda name: SET if name == _MEMSET else COPY, np.int8),
        np.full(work.graphs.rows, GRAPH, dtype=np.int8),
    )
    return LaunchedWork(
        every.ints("start_ns"),
        every.ints("end_ns"),
        launch,
        np.concatenate(kinds),
        place,
        tuple(places),
        stream,
        tuple(streams),
        names,
        chain,
        launched_by,
        _first(launch, place, names),
        staged,
        names.where(lambda name: name.startswith(UNIFIED)) & (launched_by < 0),
    )


def numbered_streams(rows: Frame) -> tuple[list[tuple[int, int, int]], Rows]:
    """The streams (process, context, id) of some rows, sorted, and for each row its place there."""
    contexts, context = distinct_pairs(rows.ints("pid"), rows.ints("context"))
    streams, codes = distinct_pairs(context.astype(np.int64), rows.ints("stream"))
    return [(*contexts[place], number) for place, number in streams], codes


def _first(launch: Ints, place: Rows, names: Labels) -> Mask:
    """Which operations are the first launch of their kernel, or of a graph, on their device."""
    launched = np.flatnonzero(launch != NO_TIME)
    launched = launched[np.argsort(launch[launched], kind="stable")]
    key = place[launched].astype(np.int64) * len(names.values) + names.codes[launched]
    first = np.zeros(len(launch), dtype=np.bool_)
    first[launched[np.unique(key, return_index=True)[1]]] = True
    return first


def calls_with_mpi(calls: Frame, mpi: Frame) -> Frame:
    """Runtime, driver and MPI calls (SPAN, pid, tid, name), by start."""
    none = constant(0, mpi.rows)
    mpi = Frame({**mpi, "correlation_id": none, "event_class": none})
    return Frame.concatenate([api_calls(calls), mpi.select(CALL_COLUMNS)]).ordered()
