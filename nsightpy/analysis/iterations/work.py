"""The kernels and graph launches of one process in launch order, and units cut out of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from nsightpy.analysis.launches import NO_TIME, launch_starts
from nsightpy.frames import Frame, Ints, Labels

_COLUMNS = ("start_ns", "end_ns", "pid", "correlation_id", "name")
# A step has at most this share of its launches less than usual, or more: now and then it does more,
# as a neighbour list or output every tenth.
ALIKE, MORE = 0.1, 0.5
SAMPLED = 24
OVERLAP = 0.75


@dataclass(frozen=True)
class LaunchedWork:
    """The kernels and graph launches of one process in the order of their launch; times in ns.

    `issued`: start of the launch call, else own start or an earlier launch of what began later.
    `waits`: when the process's calls that wait for the GPU began, ascending.
    """

    name: Labels
    start: Ints
    end: Ints
    issued: Ints
    waits: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def lengths(self) -> Ints:
        return self.end - self.start

    @cached_property
    def idle_before(self) -> Ints:
        """For how long nothing had run when each began; below 0 where something still ran."""
        idle = self.start.copy()
        idle[1:] -= np.maximum.accumulate(self.end)[:-1]
        idle[:1] = 0
        return idle

    def take(self, rows: Ints) -> LaunchedWork:
        """Some of the work, in the same order."""
        return LaunchedWork(
            self.name.take(rows), self.start[rows], self.end[rows], self.issued[rows], self.waits
        )


@dataclass(frozen=True, slots=True)
class Units:
    """Work cut at `edges` (positions in it, one more than units).

    `alike`: which units hold about as many kernels as usual, of the same names. `work_share`: the
    share of all kernels' work in those; `time_share`: their share of the time from the first on.
    """

    edges: Ints
    alike: np.ndarray[tuple[int], np.dtype[np.bool_]]
    work_share: float
    time_share: float

    def __len__(self) -> int:
        return len(self.alike)

    @property
    def coverage(self) -> float:
        """The smaller of both shares."""
        return min(self.work_share, self.time_share)

    @property
    def sizes(self) -> Ints:
        """Kernels in each."""
        return np.diff(self.edges)

    @property
    def regular(self) -> float:
        """The share of the units that are alike."""
        return float(self.alike.mean()) if len(self.alike) else 0.0

    @property
    def usual(self) -> int:
        """The place of a unit like most of them."""
        places = np.flatnonzero(self.alike)
        return int(places[len(places) // 2]) if len(places) else 0


def work_of(kernels: Frame, graphs: Frame, calls: Frame, waits: Ints | None = None) -> LaunchedWork:
    """The work of one process, from frames of that process (pid, correlation_id, names, times).

    calls: start_ns, pid and correlation_id of the calls that launch, by start; kernels may have
    their launch_ns already. `waits`: when calls began that wait for the GPU.
    """
    both = kernels
    if graphs.rows:
        both = Frame.concatenate(
            [Frame({name: frame[name] for name in _COLUMNS}) for frame in (kernels, graphs)]
        )
    name = both.labels("name").merged()
    start, end = both.ints("start_ns"), both.ints("end_ns")
    issued = both.ints("launch_ns") if "launch_ns" in both else launch_starts(both, calls)
    if (unknown := issued == NO_TIME).any():
        issued = np.where(unknown, np.minimum(start, _issued_next(start, issued)), issued)
    waits = np.empty(0, dtype=np.int64) if waits is None else np.sort(waits)
    if (issued[1:] <= issued[:-1]).any():
        order = np.lexsort((start, issued))
        return LaunchedWork(name.take(order), start[order], end[order], issued[order], waits)
    return LaunchedWork(name, start, end, issued, waits)


def _issued_next(start: Ints, issued: Ints) -> Ints:
    """For each kernel the earliest launch of those that began no earlier; issued: NO_TIME of some.

    A host that runs ahead had launched the kernel before that one.
    """
    order = np.argsort(start, kind="stable")
    known = np.where(issued == NO_TIME, np.iinfo(np.int64).max, issued)[order]
    after = np.empty_like(known)
    after[order] = np.minimum.accumulate(known[::-1])[::-1]
    return after


def units_of(work: LaunchedWork, marks: Ints) -> Units:
    """The units that begin at marks (ascending positions), and how much they are alike.

    The last one ends a usual unit's length after its mark, or with the work.
    """
    sizes = np.diff(marks)
    usual = int(np.median(sizes)) if len(sizes) else len(work)
    edges = np.append(marks, min(int(marks[-1]) + usual, len(work)))
    sizes = np.diff(edges)
    alike = (sizes >= (1 - ALIKE) * usual) & (sizes <= (1 + MORE) * usual)
    if not alike.any():
        return Units(edges, alike, 0.0, 0.0)
    same = same_share(work, edges[:-1], edges[1:], np.flatnonzero(alike))
    done = np.add.reduceat(work.lengths[: edges[-1]], edges[:-1])
    begin = work.start[np.minimum(edges, len(work) - 1)]
    begin[-1] = int(work.end[: edges[-1]].max())
    time = np.maximum(np.diff(begin), 0)
    whole, lasted = int(work.lengths.sum()), int(time.sum())
    return Units(
        edges,
        alike,
        same * int(done[alike].sum()) / whole if whole else 0.0,
        same * int(time[alike].sum()) / lasted if lasted else 0.0,
    )


def same_share(
    work: LaunchedWork, low: Ints, high: Ints, places: Ints, overlap: float = OVERLAP
) -> float:
    """The share of sampled units, of those at `places`, that hold about the kernels of the usual.

    A unit is the work from position `low` to `high`; the usual one is that which most are like, of
    three.
    """
    # an odd distance: what alternates is seen
    sampled = places[:: len(places) // SAMPLED | 1]
    codes, size = work.name.codes, len(work.name.values)

    def kernels(place: int) -> Ints:
        return np.bincount(codes[low[place] : high[place]], minlength=size)

    held = np.stack([kernels(place) for place in sampled.tolist()])
    best = 0
    for part in (1 / 2, 1 / 3, 3 / 5):
        wanted = kernels(int(places[int(len(places) * part)]))
        needed = overlap * np.maximum(held.sum(axis=1), wanted.sum())
        best = max(best, int((np.minimum(held, wanted).sum(axis=1) >= needed).sum()))
        if best > len(sampled) / 2:
            break
    return best / len(sampled)
