"""The launches of one process in their order, and units cut out of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.iterations.recurrence import Run
from nsightpy.analysis.iterations.thresholds import CLOSE, MOST, MOST_WAITS, MOSTLY, SAMPLED
from nsightpy.analysis.launches import NO_TIME, launch_starts
from nsightpy.frames import Frame, Ints, Labels, distinct

_COLUMNS = ("start_ns", "end_ns", "pid", "correlation_id", "name")
NEVER = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class LaunchedWork:
    """What one process launched, in the order of the calls; times in ns.

    The kernels of one call, a CUDA graph, are one entry: `spent` is the sum of their durations.
    `issued`: start of the call, else own start or an earlier launch of what began later. `waits`:
    when calls that wait for the GPU began, ascending.
    """

    name: Labels
    start: Ints
    end: Ints
    issued: Ints
    spent: Ints
    waits: Ints = field(default_factory=lambda: NEVER)

    def __len__(self) -> int:
        return len(self.start)

    def named(self, words: re.Pattern[str]) -> NDArray[np.bool_]:
        """Mask of the launches of kernels whose names hold some words."""
        return self.name.where(words.search)

    def take(self, rows: Ints | slice | NDArray[np.bool_]) -> LaunchedWork:
        """Some of the work, in the same order."""
        return LaunchedWork(
            Labels(self.name.codes[rows], self.name.values),
            *(self.start[rows], self.end[rows], self.issued[rows], self.spent[rows], self.waits),
        )


@dataclass(frozen=True)
class Units:
    """Work cut at `edges` (positions in it, one more than units), which a run of launches marks.

    `run`: empty where waits of the host do. `alike`: which units hold about as many launches as
    usual, of the same names. `coverage`: the share of all work, or of the time from the first on if
    that is less, in those.
    """

    work: LaunchedWork
    edges: Ints
    run: Run
    alike: NDArray[np.bool_]
    coverage: float

    def __len__(self) -> int:
        return len(self.alike)

    @property
    def sizes(self) -> Ints:
        """Launches in each."""
        return np.diff(self.edges)

    @property
    def size(self) -> int:
        """Launches in a usual one."""
        return int(np.median(self.sizes))

    @property
    def spent(self) -> Ints:
        """The time of each one's kernels, in ns."""
        return np.add.reduceat(self.work.spent[: self.edges[-1]], self.edges[:-1])

    @property
    def regular(self) -> float:
        """The share of the units that are alike."""
        return float(self.alike.mean()) if len(self.alike) else 0.0

    @property
    def usual(self) -> slice:
        """Where in the work a unit like most of them is."""
        place = np.flatnonzero(self.alike)[int(self.alike.sum()) // 2]
        return slice(int(self.edges[place]), int(self.edges[place + 1]))

    @cached_property
    def waits(self) -> Ints:
        """How often the host waits in each but the last."""
        return np.diff(np.searchsorted(self.work.waits, self.work.issued[self.edges[:-1]]))

    @property
    def waited_once(self) -> bool:
        """Whether the host waits in nearly every one, and only about once."""
        often = bool((self.waits >= 1).mean() >= MOSTLY) if len(self.waits) else False
        return often and float(np.median(self.waits)) <= MOST_WAITS

    @cached_property
    def identical(self) -> float:
        """The share of the units that hold just the same launches and waits."""
        every = np.arange(len(self))
        same = same_share(self.work, self.edges[:-1], self.edges[1:], every, overlap=1.0)
        return min(same, float((self.waits == np.median(self.waits)).mean()))


def work_of(kernels: Frame, graphs: Frame, calls: Frame, waits: Ints = NEVER) -> LaunchedWork:
    """The work of one process, from frames of that process (pid, correlation_id, names, times).

    calls: start_ns, pid and correlation_id of the calls that launch, by start. `waits`: when calls
    began that wait for the GPU.
    """
    both = kernels
    if graphs.rows:
        both = Frame.concatenate([frame.select(_COLUMNS) for frame in (kernels, graphs)])
    start, end = both.ints("start_ns"), both.ints("end_ns")
    issued = launch_starts(both, calls)
    if (unknown := issued == NO_TIME).any():
        issued = np.where(unknown, np.minimum(start, _issued_next(start, issued)), issued)
    name, waits = both.labels("name").merged(), np.sort(waits)
    work = LaunchedWork(name, start, end, issued, end - start, waits)
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
    return LaunchedWork(
        Labels(codes.astype(np.int32), tuple(_of_several(*each) for each in names)).merged(),
        *(work.start[first], np.maximum.reduceat(work.end, first), work.issued[first]),
        *(np.add.reduceat(work.spent, first), work.waits),
    )


def _of_several(name: str, number: int) -> str:
    return name if number == 1 else f"{name} and {number - 1} more"


def _issued_next(start: Ints, issued: Ints) -> Ints:
    """For each kernel the earliest launch of those that began no earlier; issued: NO_TIME of some.

    A host that runs ahead had launched the kernel before that one.
    """
    order = np.argsort(start, kind="stable")
    known = np.where(issued == NO_TIME, np.iinfo(np.int64).max, issued)[order]
    after = np.empty_like(known)
    after[order] = np.minimum.accumulate(known[::-1])[::-1]
    return after


def units_of(work: LaunchedWork, marks: Ints, run: Run = ()) -> Units:
    """The units that begin at marks (ascending positions), and how much they are alike.

    The last one ends a usual unit's length after its mark, or with the work. One has a tenth of its
    launches less than usual at most, but may have half more: now and then a step does more.
    """
    usual = int(np.median(np.diff(marks))) if len(marks) > 1 else len(work)
    edges = np.append(marks, min(int(marks[-1]) + usual, len(work)))
    sizes = np.diff(edges)
    alike = (sizes >= (1 - CLOSE) * usual) & (sizes <= (1 + MOST) * usual)
    if not alike.any():
        return Units(work, edges, run, alike, 0.0)
    same = same_share(work, edges[:-1], edges[1:], np.flatnonzero(alike))
    spent = np.add.reduceat(work.spent[: edges[-1]], edges[:-1])
    begin = np.append(work.start[marks], work.end[: edges[-1]].max())
    lasted = np.maximum(np.diff(begin), 0)
    worked = spent[alike].sum() / max(work.spent.sum(), 1)
    return Units(
        work,
        edges,
        run,
        alike,
        same * float(min(worked, lasted[alike].sum() / max(lasted.sum(), 1))),
    )


def same_share(
    work: LaunchedWork, low: Ints, high: Ints, places: Ints, overlap: float = MOSTLY
) -> float:
    """The share of sampled units, of those at `places`, that hold about the kernels of the usual.

    A unit is the work from position `low` to `high`; the usual one is that in the middle.
    """
    # an odd distance: what alternates is seen
    sampled = places[:: len(places) // SAMPLED | 1]
    size = len(work.name.values)
    held = np.stack(
        [
            np.bincount(work.name.codes[low[place] : high[place]], minlength=size)
            for place in sampled.tolist()
        ]
    )
    wanted = held[len(held) // 2]
    needed = overlap * np.maximum(held.sum(axis=1), wanted.sum())
    return float((np.minimum(held, wanted).sum(axis=1) >= needed).mean())
