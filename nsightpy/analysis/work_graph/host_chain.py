"""The API calls of each host thread as a chain: gap, call, gap, call; and who waited for whom.

What a call does to its thread is known by its name: it launches, copies, waits, allocates, loads.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.work_graph.thresholds import LEAST_RUN, LONG_CALL_NS, MOST_OVERLAPS
from nsightpy.frames import Frame, Ints, Labels, distinct_pairs, last_before

Rows: TypeAlias = NDArray[np.int32]
LAUNCH, COPY, WAIT, ALLOCATION, MODULE, OTHER, MPI = range(7)
CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "name", "event_class")
# Frees that wait for the device.
FREES = re.compile("^(?!.*Async).*Free")
# First that fits. CUDA runtime (cuda*), CUDA driver (cu*) and HIP (hip*) names.
_KINDS = (
    (MPI, re.compile("^MPI_")),
    (WAIT, re.compile(r"^(?:cuda|cu|hip)\w*Synchronize|^cuEventSynchronize")),
    (LAUNCH, re.compile(r"Launch")),
    (MODULE, re.compile(r"Module|Library|FuncLoad|FuncGet|FuncSet|Kernel(?:Get|Set)|Link|^cuInit")),
    (MODULE, re.compile(r"Ctx(?:Create|Set)|Primary|cudaSetDevice$|GetExportTable|GetProcAddress")),
    (MODULE, re.compile(r"Graph(?:Instantiate|Upload)")),
    (
        ALLOCATION,
        re.compile(
            r"Malloc|Free|MemAlloc|HostAlloc|HostRegister|HostUnregister|HostGetDevicePointer"
            r"|MemCreate|MemMap|MemUnmap|MemRelease|MemAddress|MemSetAccess|MemPool"
        ),
    ),
    (COPY, re.compile(r"Mem(?:cpy|set)|MemPrefetch")),
)


@dataclass(frozen=True)
class HostChain:
    """Calls that lie in no other one, by thread, then by start; times in ns.

    `thread` is a place in `threads` (pid, tid), `kind` what a call does, `labels` are the names;
    `outermost` gives for each row of the frame of calls the row here that it lies in.
    """

    start: Ints
    end: Ints
    thread: Rows
    threads: tuple[tuple[int, int], ...]
    kind: NDArray[np.int8]
    labels: Labels
    outermost: Rows

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def pid(self) -> Ints:
        """The process of each call."""
        return np.asarray([pid for pid, _ in self.threads], dtype=np.int64)[self.thread]

    @cached_property
    def blocks(self) -> NDArray[np.bool_]:
        """Mask of the calls that wait for the device by their names."""
        blocks = self.labels.where(lambda name: "Memcpy" in name and "Async" not in name)
        blocks |= self.kind == WAIT
        return blocks

    @cached_property
    def notable(self) -> Ints:
        """The calls that wait for the device or allocate, and all that take long."""
        notable = self.blocks | (self.kind == ALLOCATION)
        return np.flatnonzero(notable | (self.end - self.start >= LONG_CALL_NS))

    def tid(self, thread: Ints | Rows) -> Ints:
        """The id of each of some threads; -1 for none."""
        return np.asarray([*(tid for _, tid in self.threads), -1], dtype=np.int64)[thread]

    def frame(self, rows: Ints) -> Frame:
        """Some calls as a frame."""
        start, end, labels = self.start[rows], self.end[rows], self.labels.take(rows)
        tid = self.tid(self.thread[rows])
        return Frame({"start_ns": start, "end_ns": end, "tid": tid, "name": labels})

    def last_begun(self, rows: Ints, thread: Ints | Rows, times: Ints) -> Ints:
        """Of some calls the last that each thread (-1: none) had begun before a time; -1: none."""
        at = last_before((self.thread[rows], self.start[rows]), (thread, times), "left")
        return np.append(rows, -1)[at]


def kinds_of_calls(names: Labels) -> NDArray[np.int8]:
    """The kind of each call by its name; an asynchronous free or allocation is one, too."""
    return names.map(
        lambda name: next((kind for kind, words in _KINDS if words.search(name)), OTHER), np.int8
    )


def host_chain(calls: Frame) -> HostChain:
    """The chain of calls (CALL_COLUMNS, by start); one that lies in another is part of that."""
    threads, thread = distinct_pairs(calls.ints("pid"), calls.ints("tid"))
    order = np.argsort(thread, kind="stable") if len(threads) > 1 else np.arange(calls.rows)
    start, thread = calls.ints("start_ns")[order], thread[order]
    end = np.maximum(calls.ints("end_ns")[order], start)
    # threads one after the other on one axis: a running maximum then knows its thread
    low = int(start.min(initial=0))
    axis = thread.astype(np.int64) * (int(end.max(initial=0)) - low + 1) - low
    past = np.concatenate([[-1], np.maximum.accumulate(end + axis)[:-1]])[: len(end)]
    outer = end + axis > past
    begins = np.maximum(start + axis, past) - axis
    outermost = np.empty(len(order), dtype=np.int32)
    outermost[order] = np.cumsum(outer) - 1
    labels = calls.labels("name").merged()
    rows = order[outer]
    kind = kinds_of_calls(labels)
    return HostChain(
        begins[outer],
        end[outer],
        thread[outer].astype(np.int32),
        tuple(threads),
        kind[rows],
        labels.take(rows),
        outermost,
    )


def handed_over(chain: HostChain) -> tuple[Ints, Ints]:
    """Pairs of calls of two threads of a process where the second thread waited for the first.

    A thread that issues nothing while another one issues many calls, and goes on when that one
    stops, waited for it: as the main thread does while autograd launches the backward pass.
    """
    process, start, end = chain.pid, chain.start, chain.end
    if len(chain.threads) <= 1:
        return start[:0], start[:0]
    thread = chain.thread.astype(np.int64)
    order = np.lexsort((start, process))
    begins = np.flatnonzero(changes(thread[order], process[order]))
    runs = np.diff(np.append(begins, len(order)))
    after, before = order[begins[1:]], order[begins[1:] - 1]
    same = (process[after] == process[before]) & (thread[after] != thread[before])
    low, high = (choose(thread[after], thread[before]) for choose in (np.minimum, np.maximum))
    pair = low * (int(thread.max(initial=0)) + 1) + high
    overlaps = end[before] > start[after]
    _, code, count = np.unique(pair, return_inverse=True, return_counts=True)
    apart = np.bincount(code, overlaps, len(count))[code] <= MOST_OVERLAPS * count[code]
    handed = same & apart & ~overlaps & (runs[:-1] >= LEAST_RUN)
    return before[handed], after[handed]


def changes(*columns: Ints | Rows) -> NDArray[np.bool_]:
    """Where a row differs from the one before; the first one does."""
    changed: NDArray[np.bool_] = np.logical_or.reduce(
        [np.diff(column, prepend=-1) != 0 for column in columns]
    )
    return changed
