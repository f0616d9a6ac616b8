"""The launches of one process in their order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.launches import NO_TIME, launch_starts
from nsightpy.frames import Frame, Ints, Labels, distinct

_COLUMNS = ("start_ns", "end_ns", "pid", "correlation_id", "name")
NEVER = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class LaunchedWork:
    """What one process launched, in the order of the calls; times in ns.

    The kernels of one call, a CUDA graph, are one entry: `spent` is the sum of their durations.
    `issued`: start of the call, else own start or an earlier launch of what began later. `waits`:
    when calls that wait for the GPU began, ascending. `first_ns`: when the process's first
    operation on a GPU began, which may be a copy; None: its first launch.
    """

    name: Labels
    start: Ints
    end: Ints
    issued: Ints
    spent: Ints
    device: Ints
    waits: Ints = field(default_factory=lambda: NEVER)
    first_ns: int | None = None

    def __len__(self) -> int:
        return len(self.start)

    def named(self, words: re.Pattern[str]) -> NDArray[np.bool_]:
        """Mask of the launches of kernels whose names hold some words."""
        return self.name.where(words.search)

    def take(self, rows: Ints | slice | NDArray[np.bool_]) -> LaunchedWork:
        """Some of the work, in the same order."""
        columns = {each.name: getattr(self, each.name)[rows] for each in fields(self)[1:6]}
        return replace(self, name=Labels(self.name.codes[rows], self.name.values), **columns)

    def on_busiest_device(self) -> LaunchedWork:
        """What the device with the most work did.

        Its order is the program's; that of all devices depends on which thread was faster.
        """
        devices, codes = distinct(self.device)
        most = np.argmax(np.bincount(codes, self.spent)) if len(devices) > 1 else 0
        return self if len(devices) == 1 else self.take(codes == most)


def work_of(
    kernels: Frame, graphs: Frame, calls: Frame, waits: Ints = NEVER, first_ns: int | None = None
) -> LaunchedWork:
    """The work of one process, from frames of that process (pid, correlation_id, names, times).

    calls: start_ns, pid and correlation_id of the calls that launch, by start. `waits`: when calls
    began that wait for the GPU.
    """
    columns = (*_COLUMNS, "device") if "device" in kernels else _COLUMNS
    both = kernels
    if graphs.rows:
        both = Frame.concatenate([frame.select(columns) for frame in (kernels, graphs)])
    start, end = both.ints("start_ns"), both.ints("end_ns")
    device = both.ints("device") if "device" in both else np.zeros_like(start)
    issued = launch_starts(both, calls)
    if (unknown := issued == NO_TIME).any():
        issued = np.where(unknown, np.minimum(start, _issued_next(start, issued)), issued)
    name, waits = both.labels("name").merged(), np.sort(waits)
    work = LaunchedWork(name, start, end, issued, end - start, device, waits, first_ns)
    if bool((issued[1:] > issued[:-1]).all()):
        return work
    order = np.lexsort((start, issued))
    return _by_call(work.take(order), ~unknown[order])


def _by_call(work: LaunchedWork, known: NDArray[np.bool_]) -> LaunchedWork:
    """What one call launched as one entry, under the name of its first kernel and their number."""
    more = known[1:] & known[:-1] & (work.issued[1:] == work.issued[:-1])
    first = np.flatnonzero(np.append(True, ~more))
    size = np.diff(first, append=len(work))
    pairs, codes = distinct(work.name.codes[first].astype(np.int64) << 32 | size)
    names = [(work.name.values[pair >> 32], pair & (1 << 32) - 1) for pair in pairs.tolist()]
    texts = tuple(f"{name} and {more - 1} more" if more > 1 else name for name, more in names)
    return replace(
        work.take(first),
        name=Labels(codes.astype(np.int32), texts).merged(),
        end=np.maximum.reduceat(work.end, first),
        spent=np.add.reduceat(work.spent, first),
    )


def _issued_next(start: Ints, issued: Ints) -> Ints:
    """For each kernel the earliest launch of those that began no earlier; issued: NO_TIME of some.

    A host that runs ahead had launched the kernel before that one.
    """
    order = np.argsort(start, kind="stable")
    known = np.where(issued == NO_TIME, np.iinfo(np.int64).max, issued)[order]
    after = np.empty_like(known)
    after[order] = np.minimum.accumulate(known[::-1])[::-1]
    return after
