"""What one report contributes to the graph: its operations, calls, and the edges between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nsightpy.analysis.idle.gpu_work import GpuWork, gpu_work
from nsightpy.analysis.launches import NO_LAUNCH, NO_TIME, launch_starts
from nsightpy.analysis.memory.copies import PAGEABLE, UNIFIED, host_memory
from nsightpy.analysis.work_graph.blocking import Mask, Pairs, awaited
from nsightpy.analysis.work_graph.device_queue import DeviceQueue, EventEdges, event_edges
from nsightpy.analysis.work_graph.host_chain import CALL_COLUMNS, HostChain, host_chain
from nsightpy.analysis.work_graph.thresholds import LEAST_STAGED_BYTES
from nsightpy.analysis.work_graph.typical import typical
from nsightpy.frames import Frame, Ints, Labels, constant, distinct_pairs

LAUNCH_CLASSES = (0, 1)


@dataclass(frozen=True)
class WorkFrames:
    """The frames that the graph of one report is made of.

    Kernels, memory operations and graphs with WORK_COLUMNS and names (operations with bytes and
    memory kinds); `communication` marks kernels; calls with CALL_COLUMNS, MPI calls with SPAN, pid,
    tid and name; synchronisations and events with the columns of device_queue.
    """

    kernels: Frame
    operations: Frame
    graphs: Frame
    communication: Mask
    calls: Frame
    synchronizations: Frame
    events: Frame
    mpi: Frame | None = None

    @property
    def all_calls(self) -> Frame:
        """Runtime, driver and MPI calls, by start."""
        # a row of another class repeats a call, to carry its backtrace
        classes = np.isin(self.calls.ints("event_class"), LAUNCH_CLASSES)
        calls = self.calls.take(classes).select(CALL_COLUMNS)
        if self.mpi is None:
            return calls.ordered()
        none = constant(0, self.mpi.rows)
        mpi = Frame({**self.mpi, "correlation_id": none, "event_class": none})
        return Frame.concatenate([calls, mpi.select(CALL_COLUMNS)]).ordered()

    def between(self, low: int, high: int) -> WorkFrames:
        """What ran in a stretch of time (ns), what each device began next, and their calls."""
        work = [self.kernels, self.operations, self.graphs]
        end = _followed_until(work, high)
        kept = [(f.ints("end_ns") > low) & (f.ints("start_ns") <= end) for f in work]
        launches = [launch_starts(f.take(k), self.calls) for f, k in zip(work, kept, strict=True)]
        launched = np.concatenate(launches)
        launched = launched[launched != NO_TIME]
        first, last = (int(launched.min()), int(launched.max())) if len(launched) else (low, low)
        calls, waits = self.all_calls, self.synchronizations
        first = min(first, low)
        made = (calls.ints("start_ns") >= first) & (calls.ints("start_ns") <= last)
        kernels, operations, graphs = (f.take(k) for f, k in zip(work, kept, strict=True))
        return WorkFrames(
            kernels,
            operations,
            graphs,
            self.communication[kept[0]],
            calls.take(made),
            waits.take(waits.ints("start_ns") >= first),
            self.events,
        )


def _followed_until(work: list[Frame], high: int) -> int:
    """Until when each device has begun one more operation after a moment, in ns."""
    start, pid, device = (
        np.concatenate([frame.ints(name) for frame in work])
        for name in ("start_ns", "pid", "device")
    )
    after = start >= high
    places, place = distinct_pairs(pid[after], device[after])
    following = np.full(len(places), np.iinfo(np.int64).max)
    np.minimum.at(following, place, start[after])
    return int(following.max(initial=high))


@dataclass(frozen=True)
class GraphPart:
    """The work of one report, or of a stretch of it, small enough to travel; times in its own ns.

    `names` and `launched_by` (the row in the chain of the launching call, -1 for none) are by row
    of the work, as are the masks: the `first` launch of a kernel, a copy of `pageable` memory that
    the driver stages, what `migrates` pages without a call. `events` are edges between operations,
    `awaited` pairs of a blocking call and an operation. The stretch from `low` to `high` is number
    `block` of all; a whole report has none (NO_TIME).
    """

    work: GpuWork
    names: Labels
    chain: HostChain
    launched_by: Ints
    events: EventEdges
    awaited: Pairs
    first: Mask
    pageable: Mask
    migrates: Mask
    report: str
    block: int
    low: int
    high: int

    def __len__(self) -> int:
        return len(self.work)

    @cached_property
    def latency(self) -> Ints:
        """How long after its call an operation of each one's kind begins where nothing runs."""
        work, call = self.work, np.maximum(self.launched_by, 0)
        ended = self.chain.end[call] if len(self.chain) else work.start
        late, previous = work.start - ended, work.previous
        free = (previous < 0) | (work.end[previous] <= ended)
        usable = (self.launched_by >= 0) & (late >= 0) & free
        return typical(late, work.kind.astype(np.int64), usable, np.zeros_like(late))

    @property
    def blocks(self) -> Mask:
        """Mask of the calls that an operation held."""
        call, row = self.awaited
        blocks = np.zeros(len(self.chain), dtype=np.bool_)
        blocks[call[self.work.end[row] > self.chain.start[call]]] = True
        return blocks


def graph_part(
    frames: WorkFrames,
    window: tuple[int, int] | None = None,
    *,
    report: str = "",
    block: int = 0,
) -> GraphPart:
    """The part of a report, or of a stretch of it from one moment to another (ns)."""
    frames = frames if window is None else frames.between(*window)
    calls = frames.all_calls
    work = gpu_work(frames.kernels, frames.communication, frames.operations, frames.graphs, calls)
    chain, queue = host_chain(calls), DeviceQueue.of(work)
    launched_by = np.full(len(work), -1, dtype=np.int64)
    known = work.call != NO_LAUNCH
    launched_by[known] = chain.outermost[work.call[known]]
    names = _names(frames)
    waits = (frames.synchronizations, frames.events, calls)
    return GraphPart(
        work,
        names,
        chain,
        launched_by,
        event_edges(queue, *waits),
        awaited(chain, queue, launched_by, *waits),
        _first(work, names),
        _pageable(frames),
        names.where(lambda name: name.startswith(UNIFIED)) & ~known,
        report,
        block,
        *((NO_TIME, NO_TIME) if window is None else window),
    )


def _names(frames: WorkFrames) -> Labels:
    """The names of all operations, in the rows of the GpuWork."""
    names = (
        frames.kernels["name"],
        frames.operations["operation"],
        Labels.constant("CUDA graph", frames.graphs.rows),
    )
    return Frame.concatenate([Frame({"name": column}) for column in names]).labels("name").merged()


def _first(work: GpuWork, names: Labels) -> Mask:
    """Which operations are the first launch of their kernel in a process, or of a graph."""
    pids = np.asarray([pid for pid, _ in work.places], dtype=np.int64)
    known = np.flatnonzero(work.launch != NO_TIME)
    known = known[np.argsort(work.launch[known], kind="stable")]
    key = pids[work.place[known]] * len(names.values) + names.codes[known]
    first = np.zeros(len(work), dtype=np.bool_)
    first[known[np.unique(key, return_index=True)[1]]] = True
    return first


def _pageable(frames: WorkFrames) -> Mask:
    """Which operations copy pageable memory, and so much that the driver stages it."""
    copies, size = frames.operations, frames.operations.ints("bytes")
    large = (size >= LEAST_STAGED_BYTES) | (size < 0)
    staged = large & host_memory(copies).equals([PAGEABLE])
    none = (np.zeros(part.rows, dtype=np.bool_) for part in (frames.kernels, frames.graphs))
    return np.concatenate([next(none), staged, next(none)])
