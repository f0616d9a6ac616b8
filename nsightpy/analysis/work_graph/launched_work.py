"""The operations of a report beside the calls that launched them: what every edge begins with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.gpu_work import GpuWork, Work, gpu_work
from nsightpy.analysis.idle.host_calls import COPY, OTHER
from nsightpy.analysis.launches import NO_LAUNCH, NO_TIME
from nsightpy.analysis.memory.copies import PAGEABLE, UNIFIED, host_memory, large
from nsightpy.analysis.work_graph.host_chain import FREES, HostChain, host_chain
from nsightpy.frames import Frame, Ints, Labels

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class LaunchedWork:
    """Operations, and the host's calls; times in ns of the report.

    `names` and `launched_by` (the row in the chain of the launching call, -1 for none) are by row
    of the work, as are the masks: the `first` launch of a kernel on its device, a copy of
    `pageable` memory that the driver stages, what `migrates` pages without a call.
    """

    work: GpuWork
    names: Labels
    chain: HostChain
    launched_by: Ints
    first: Mask
    pageable: Mask
    migrates: Mask

    def __len__(self) -> int:
        return len(self.work)

    @cached_property
    def own_copies(self) -> Ints:
        """The copies that ended inside the call that made them, which waited for that."""
        rows = self._copied
        waited: Ints = rows[self.work.end[rows] <= self.chain.end[self.launched_by[rows]]]
        return waited

    @cached_property
    def _copied(self) -> Ints:
        """The operations of calls that copy."""
        return np.flatnonzero(np.append(self.chain.kind, OTHER)[self.launched_by] == COPY)

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
            last = np.sort(self.work.end)
            ended = [np.searchsorted(last, t[frees]) for t in (chain.start, chain.end)]
            waits[frees[ended[1] > ended[0]]] = True
        return waits

    def beyond_usual(self, calls: Ints) -> Ints:
        """How much longer some calls took than usual for their function, where it is no first."""
        names, length = self.chain.labels.codes, self.chain.end - self.chain.start
        again = np.ones(len(length), dtype=np.bool_)
        again[self.launched_by[self.first]] = False
        beyond = np.zeros(len(calls), dtype=np.int64)
        for name in np.unique(names[calls]):
            alike = names == name
            seen = length[alike & again] if (alike & again).any() else length[alike]
            mine = names[calls] == name
            beyond[mine] = np.maximum(length[calls[mine]] - int(np.median(seen)), 0)
        return beyond


def launched_work(work: Work, communication: Mask, calls: Frame) -> LaunchedWork:
    """Operations (with names, bytes and kinds of memory) and their calls (CALL_COLUMNS)."""
    ran, chain = gpu_work(work, communication, calls), host_chain(calls)
    launched_by = np.full(len(ran), -1, dtype=np.int64)
    known = ran.call != NO_LAUNCH
    launched_by[known] = chain.outermost[ran.call[known]]
    names = _names(work)
    migrates = names.where(lambda name: name.startswith(UNIFIED)) & ~known
    first, pageable = _first(ran, names), _pageable(work)
    return LaunchedWork(ran, names, chain, launched_by, first, pageable, migrates)


def _names(work: Work) -> Labels:
    """The names of all operations, in the rows of the GpuWork."""
    graphs = Labels.constant("CUDA graph", work.graphs.rows)
    names = (work.kernels["name"], work.operations["operation"], graphs)
    return Frame.concatenate([Frame({"name": column}) for column in names]).labels("name").merged()


def _first(work: GpuWork, names: Labels) -> Mask:
    """Which operations are the first launch of their kernel, or of a graph, on their device."""
    known = np.flatnonzero(work.launch != NO_TIME)
    known = known[np.argsort(work.launch[known], kind="stable")]
    key = work.place[known].astype(np.int64) * len(names.values) + names.codes[known]
    earliest = np.full(len(work.places) * len(names.values), -1)
    # of several rows for one place the last one stays
    earliest[key[::-1]] = known[::-1]
    first = np.zeros(len(work), dtype=np.bool_)
    first[earliest[earliest >= 0]] = True
    return first


def _pageable(work: Work) -> Mask:
    """Which operations copy pageable memory, and so much that the driver stages it."""
    copies, mask = work.operations, np.zeros(sum(frame.rows for frame in work), dtype=np.bool_)
    staged = large(copies) & host_memory(copies).equals([PAGEABLE])
    mask[work.kernels.rows : work.kernels.rows + copies.rows] = staged
    return mask
