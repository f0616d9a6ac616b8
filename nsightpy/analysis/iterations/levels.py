"""The launches of one process in their order, and levels on which they repeat."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.iterations.thresholds import LOOKED_INTO, REPEATS
from nsightpy.analysis.iterations.vocabulary import Role
from nsightpy.analysis.launches import NO_TIME, launch_starts
from nsightpy.analysis.thresholds import CLOSE, MOST, MOSTLY
from nsightpy.frames import Frame, Ints, Labels, distinct

SEQUENCE, WAITS = "repeated kernel sequence", "work between synchronising calls"
_EARLIEST = np.iinfo(np.int64).min
NEVER = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class LaunchedWork:
    """What one process launched, in the order of the calls; times in ns.

    The kernels of one call, a CUDA graph, are one entry: `spent` is the sum of their durations.
    `issued`: start of the call, else own start or an earlier launch of what began later. `waits`:
    when calls that wait for the GPU began, ascending. `first_ns`: when the process's first
    operation on a GPU began, which may be a copy.
    """

    name: Labels
    start: Ints
    end: Ints
    issued: Ints
    spent: Ints
    device: Ints
    waits: Ints = field(default_factory=lambda: NEVER)
    first_ns: int = 0

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: Ints | slice | NDArray[np.bool_]) -> LaunchedWork:
        """Some of the work, in the same order."""
        columns = {each.name: getattr(self, each.name)[rows] for each in fields(self)[1:6]}
        return replace(self, name=Labels(self.name.codes[rows], self.name.values), **columns)


def work_of(launched: Frame, calls: Frame, waits: Ints, first_ns: int) -> LaunchedWork:
    """The work of one process, from the frames that find_iterations takes."""
    start, end, device = (launched.ints(column) for column in ("start_ns", "end_ns", "device"))
    issued = launch_starts(launched, calls)
    if (unknown := issued == NO_TIME).any():
        # a host that runs ahead had launched a kernel before the next one whose launch is known
        by_start, after = np.argsort(start, kind="stable"), np.empty_like(issued)
        times = np.where(unknown, np.iinfo(np.int64).max, issued)[by_start]
        after[by_start] = np.minimum.accumulate(times[::-1])[::-1]
        issued = np.where(unknown, np.minimum(start, after), issued)
    name, waits = launched.labels("name").merged(), np.sort(waits)
    work = LaunchedWork(name, start, end, issued, end - start, device, waits, first_ns)
    if bool((issued[1:] > issued[:-1]).all()):
        return work
    order = np.lexsort((start, issued))
    return _by_call(work.take(order), ~unknown[order])


def _by_call(work: LaunchedWork, launched: NDArray[np.bool_]) -> LaunchedWork:
    """What one call launched as one entry, under the name of its first kernel and their number."""
    more = launched[1:] & launched[:-1] & (work.issued[1:] == work.issued[:-1])
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


@dataclass(frozen=True, eq=False)
class Level:
    """One level on which a program repeats.

    Each unit holds the launches from `low` to `high` of the work, and lasts from `start` to `end`
    (ns). `role`: what names of ranges say, None where launches or waits mark it. `evidence`: how
    much shows that a unit is a step; `why`: why it is none.
    """

    source: str
    work: LaunchedWork
    low: Ints
    high: Ints
    start: Ints
    end: Ints
    role: Role | None = None
    evidence: int = 0
    why: str = ""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def period_ns(self) -> float:
        """Median time from the end of one unit to the end of the next; the length of one alone."""
        return float(np.median(np.diff(self.end, prepend=self.start[:1])[-len(self) + 1 :]))

    @property
    def launches(self) -> Ints:
        """Launches in each unit."""
        return self.high - self.low

    @cached_property
    def size(self) -> int:
        """Launches in a usual unit."""
        return int(np.median(self.launches))

    def sums(self, figures: Ints | NDArray[np.bool_]) -> Ints:
        """The sum over each unit of what there is for each launch."""
        before: Ints = np.append(0, np.cumsum(figures, dtype=np.int64))
        return before[self.high] - before[self.low]

    @property
    def spent(self) -> Ints:
        """The time of each unit's kernels, in ns."""
        return self.sums(self.work.spent)

    @cached_property
    def alike(self) -> NDArray[np.bool_]:
        """Which units hold about as many launches as usual.

        A tenth less at most, but half more: now and then a step does more.
        """
        sizes, usual = self.launches, np.median(self.launches)
        return (sizes >= (1 - CLOSE) * usual) & (sizes <= (1 + MOST) * usual) & (sizes > 0)

    @property
    def regular(self) -> float:
        """The share of the units that are alike."""
        return float(self.alike.mean())

    @cached_property
    def coverage(self) -> float:
        """The share of all work, or of the time since the first if that is less, in units that are
        alike and hold the same kernels."""
        if not self.alike.any():
            return 0.0
        worked = self.spent[self.alike].sum() / max(self.work.spent.sum(), 1)
        lasted = (self.end - self.start)[self.alike].sum()
        share = float(min(worked, lasted / max(self.end[-1] - self.start[0], 1)))
        return share * self._same(np.flatnonzero(self.alike), MOSTLY)

    @cached_property
    def held(self) -> float:
        """The share of the work in units that are alike and in kernels that a usual one has."""
        usual = np.isin(self.work.name.codes, self.usual.name.codes)
        return self.coverage * float(self.work.spent[usual].sum() / max(self.work.spent.sum(), 1))

    @property
    def usual(self) -> LaunchedWork:
        """The launches of a unit like most of them: that of the median time."""
        alike = np.flatnonzero(self.alike)
        middle = alike[np.argsort(self.spent[alike], kind="stable")[len(alike) // 2]]
        return self.work.take(slice(int(self.low[middle]), int(self.high[middle])))

    @property
    def issued(self) -> Ints:
        """When the first launch of each unit, or the next one, was issued."""
        return self.work.issued[np.minimum(self.low, len(self.work) - 1)]

    @property
    def waits(self) -> Ints:
        """How often the host waits in each but the last."""
        return np.diff(np.searchsorted(self.work.waits, self.issued))

    @property
    def waited(self) -> bool:
        """Whether the host waits in nearly every one."""
        return len(self) > 1 and bool((self.waits >= 1).mean() >= MOSTLY)

    @cached_property
    def identical(self) -> float:
        """The share of the units that hold just the same launches and waits."""
        same = self._same(np.arange(len(self)), 1.0)
        return min(same, float((self.waits == np.median(self.waits)).mean()))

    def _same(self, places: Ints, overlap: float) -> float:
        """The share of sampled units at `places` that hold so much of what the middle one holds."""
        # an odd distance: what alternates is seen
        sampled = places[:: len(places) // LOOKED_INTO | 1]
        codes, size = self.work.name.codes, len(self.work.name.values)
        spans = zip(self.low[sampled].tolist(), self.high[sampled].tolist(), strict=True)
        held = np.stack([np.bincount(codes[low:high], minlength=size) for low, high in spans])
        wanted = held[len(held) // 2]
        needed = overlap * np.maximum(held.sum(axis=1), wanted.sum())
        return float((np.minimum(held, wanted).sum(axis=1) >= needed).mean())


def level_of_ranges(
    source: str, role: Role, start: Ints, end: Ints, work: LaunchedWork
) -> Level | None:
    """The level of ranges (ascending, disjoint; times of the host); None without work.

    A unit lasts until the host and the GPU are done with it, and begins with the host's, but not
    before the one before it is over: for a host that runs ahead these are the times from
    completion to completion, for one that waits they are its own.
    """
    low = np.searchsorted(work.issued, start)
    high = np.searchsorted(work.issued, end, side="right")
    ended = np.maximum.accumulate(np.maximum(end, _completed(work)[high]))
    begun = np.maximum(start, np.append(start[:1], ended[:-1]))
    return Level(source, work, low, high, begun, ended, role) if (high > low).any() else None


def level_of_marks(source: str, work: LaunchedWork, marks: Ints) -> Level:
    """The level of units that begin at these launches: from completion to completion.

    The last ends a usual unit's length after its mark, or with the work. The first begins as long
    before its first kernel as the others usually do (of four or more), but not before any
    operation on a GPU.
    """
    usual = int(np.median(np.diff(marks))) if len(marks) > 1 else len(work)
    high = np.append(marks[1:], min(int(marks[-1]) + usual, len(work)))
    completed = _completed(work)
    end, first = completed[high], int(work.start[marks[0]])
    lead = int(np.median(work.start[marks[1:]] - end[:-1])) if len(marks) > REPEATS else 0
    earliest = min(max(int(completed[marks[0]]), work.first_ns), first)
    start = np.append(max(first - max(lead, 0), earliest), end[:-1])
    return Level(source, work, marks, high, start, end)


def _completed(work: LaunchedWork) -> Ints:
    """When the launches before each place were done."""
    return np.maximum.accumulate(np.append(_EARLIEST, work.end))


def owner_of(start: Ints, end: Ints, times: Ints) -> Ints:
    """Which of disjoint ascending spans each time lies in; -1 for none."""
    owner = np.searchsorted(start, times, side="right") - 1
    # the last limit is that of -1, what lies before the first span
    return np.where(times <= np.append(end, _EARLIEST)[owner], owner, -1)
