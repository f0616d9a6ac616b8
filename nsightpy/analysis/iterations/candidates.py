"""Candidates for iterations: windows as one source sees them, and what speaks for them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.iterations.work import LaunchedWork, Units, same_share
from nsightpy.frames import Ints

USER, PROFILER, NVTX, COLLECTIVES, KERNELS, WAITS, GRAPHS = (
    *("named", "profiler", "nvtx", "collectives", "kernels", "waits", "graphs"),
)


ALIKE = 0.2
LEADS = 4


@dataclass(frozen=True)
class Candidate:
    """Iterations as one source sees them, windows in ns on the report's time.

    `kernels`: how many were launched in each. `compute_ns`: sum of the durations of the kernels
    that began in each and are no communication. `coverage`: the share of work, or of time if that
    is less, in units that are alike; `regular`: the share of units that are. `sampled`: found by
    looking at the middle of a long capture only. `outer`: named as what steps lie in, an epoch.
    """

    kind: str
    source: str
    start: Ints
    end: Ints
    kernels: Ints
    compute_ns: Ints
    coverage: float = 1.0
    regular: float = 1.0
    sampled: bool = False
    outer: bool = False

    def __len__(self) -> int:
        return len(self.start)

    @property
    def period_ns(self) -> float:
        """Median time from the end of one iteration to the end of the next."""
        return float(np.median(np.diff(self.end))) if len(self) > 1 else 0.0


_NEVER = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Other:
    """What repeats, too, and was not taken for the iterations: how often, every how many ns.

    `starts`: when the work of each repetition began, ns, where the order of launches shows it.
    """

    kind: str
    source: str
    count: int
    period_ns: float
    why: str
    starts: Ints = field(default_factory=lambda: _NEVER, compare=False, repr=False)


def of_spans(
    kind: str, source: str, start: Ints, end: Ints, work: LaunchedWork
) -> Candidate | None:
    """Windows of iterations whose host spans are known (ascending, disjoint).

    An iteration lasts until the host and the GPU are done with it, and begins with the host's,
    but not before the one before it is over: for a host that runs ahead these are the times from
    completion to completion, for one that waits they are its own.
    """
    owner = owner_of(start, end, work.issued)
    mine = owner >= 0
    count = np.bincount(owner[mine], minlength=len(start)).astype(np.int64)
    if not count.any():
        return None
    done = end.copy()
    np.maximum.at(done, owner[mine], work.end[mine])
    done = np.maximum.accumulate(done)
    begin = start.copy()
    begin[1:] = np.maximum(start[1:], done[:-1])
    usual = float(np.median(count))
    near = np.abs(count - usual) <= ALIKE * usual
    regular = float(near.mean()) * _same(work, start, end, near)
    covered = _covered(begin, done, owner, work)
    compute = compute_within(begin, done, work)
    return Candidate(kind, source, begin, done, count, compute, covered, regular)


def of_units(
    kind: str,
    source: str,
    units: Units,
    work: LaunchedWork,
    sampled: bool,
    first_ns: int | None = None,
) -> Candidate:
    """Windows of units of work: each from the completion of the one before to its own.

    The first begins as long before its first kernel as the others usually do, but not before
    `first_ns` (default: its first kernel), where the process's first operation on a GPU began.
    """
    edges = units.edges
    end = np.maximum.reduceat(work.end[: edges[-1]], edges[:-1])
    end = np.maximum.accumulate(end)
    start = np.concatenate([work.start[edges[:1]], end[:-1]])
    if first_ns is not None and len(end) >= LEADS:
        lead = float(np.median(work.start[edges[1:-1]] - end[:-1]))
        start[0] = max(int(start[0]) - max(int(lead), 0), min(first_ns, int(start[0])))
    if edges[0] > 0:
        before = min(int(work.end[: edges[0]].max()), int(work.start[edges[0]]))
        start[0] = max(int(start[0]), before)
    compute = compute_within(start, end, work)
    return Candidate(
        *(kind, source, start, end, units.sizes, compute, units.coverage, units.regular, sampled)
    )


def owner_of(start: Ints, end: Ints, times: Ints) -> Ints:
    """Which of disjoint ascending spans each time lies in; -1 for none."""
    if bool((times[1:] >= times[:-1]).all()):
        # spans are few: they are looked up among the times, not each time among them
        low = np.searchsorted(times, start)
        after = np.append(low[1:], len(times))
        high = np.clip(np.searchsorted(times, end, side="right"), low, after)
        counts = np.stack([high - low, after - high], axis=1)
        spans = np.stack([np.arange(len(start)), np.full(len(start), -1)], axis=1)
        before = len(times) - int(counts.sum())
        return np.repeat(np.append(-1, spans), np.append(before, counts))
    place = np.searchsorted(start, times, side="right") - 1
    return np.where((place >= 0) & (times <= end[np.maximum(place, 0)]), place, -1)


def compute_within(start: Ints, end: Ints, work: LaunchedWork) -> Ints:
    """The work that is no communication and begins in each window, in ns."""
    owner = owner_of(start, end - 1, work.start)
    mine = (owner >= 0) & ~is_communication(work.name)
    weights = work.lengths[mine].astype(np.float64)
    return np.bincount(owner[mine], weights, minlength=len(start)).astype(np.int64)


def _same(work: LaunchedWork, start: Ints, end: Ints, near: NDArray[np.bool_]) -> float:
    """The share of the spans near the usual size that launched about the same kernels."""
    low = np.searchsorted(work.issued, start)
    high = np.searchsorted(work.issued, end, side="right")
    return same_share(work, low, high, np.flatnonzero(near)) if near.any() else 0.0


def _covered(start: Ints, end: Ints, owner: Ints, work: LaunchedWork) -> float:
    """The smaller of two shares: of the work, and of the time from first to last, in windows."""
    whole = int(work.lengths.sum())
    done = int(work.lengths[owner >= 0].sum()) / whole if whole else 0.0
    time = int(end[-1] - start[0])
    return min(done, int((end - start).sum()) / time if time else 1.0, 1.0)
