"""Where iterations can be seen in one process: repeated NVTX ranges, collectives, kernels.

Each source answers with a Candidate, or with None where nothing repeats through most of the run.
Gaps between kernels are never taken for iterations; the longest gap only decides which kernel of
a repeating sequence comes first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.iterations.repetition import REPEATS, Repetition, anchors, find_repetition
from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.nvtx.nesting import nest
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.frames import Frame, Ints, Labels

COVERED = 0.5
REPEATED = 0.75
DEEPEST = 8
REGULAR = 0.6
ALIKE = 0.2
GAP_SHARE = 0.002
USER, NVTX, COLLECTIVES, KERNELS = "named", "nvtx", "collectives", "kernels"
LIBRARY_DOMAINS = frozenset(
    ("NCCL", "NVSHMEM", "MPI", "cuBLAS", "cuDNN", "CCCL", "TensorRT", "TSL", "STDPAR", "UCX")
)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Work:
    """The kernels and graph launches of one process in the order of their launch; times in ns.

    `issued`: start of the launch call, else own start.
    """

    name: Labels
    start: Ints
    end: Ints
    issued: Ints

    def __len__(self) -> int:
        return len(self.start)

    @property
    def lengths(self) -> Ints:
        return self.end - self.start


@dataclass(frozen=True)
class Candidate:
    """Iterations as one source sees them, windows in ns on the report's time.

    `kernels`: how many were launched in each. `compute_ns`: sum of the durations of the kernels
    that began in each and are no communication.
    """

    kind: str
    source: str
    start: Ints
    end: Ints
    kernels: Ints
    compute_ns: Ints

    def __len__(self) -> int:
        return len(self.start)

    @property
    def period_ns(self) -> float:
        """Median time from the end of one iteration to the end of the next."""
        return float(np.median(np.diff(self.end))) if len(self) > 1 else 0.0


def work_of(kernels: Frame, graphs: Frame, calls: Frame) -> Work:
    """The work of one process, from frames of that process (pid, correlation_id, names, times)."""
    both = Frame.concatenate([kernels, graphs])
    call = launch_rows(both, calls)
    issued = both.ints("start_ns").copy()
    issued[call != NO_LAUNCH] = calls.ints("start_ns")[call[call != NO_LAUNCH]]
    order = np.lexsort((both.ints("start_ns"), issued))
    return Work(
        both.labels("name").merged().take(order),
        both.ints("start_ns")[order],
        both.ints("end_ns")[order],
        issued[order],
    )


def from_named_ranges(ranges: Frame, work: Work, text: str) -> Candidate | None:
    """The instances of ranges that the user named, those of the busiest thread."""
    if not ranges.rows:
        return None
    threads, counts = np.unique(ranges.ints("tid"), return_counts=True)
    mine = ranges.take(ranges.ints("tid") == threads[np.argmax(counts)])
    order = np.argsort(mine.ints("start_ns"), kind="stable")
    start, end = mine.ints("start_ns")[order], mine.ints("end_ns")[order]
    outer = np.ones(len(start), dtype=np.bool_)
    outer[1:] = end[1:] > np.maximum.accumulate(end)[:-1]
    return _between(USER, f"NVTX range {text!r}", start[outer], end[outer], work)


def from_nvtx(ranges: Frame, work: Work) -> Candidate | None:
    """The outermost ranges that repeat and cover most of the run; several that alternate are one.

    Ranges of one name but for numbers in it are the same. Libraries' domains are left out.
    """
    own = ~ranges.labels("domain").equals(sorted(LIBRARY_DOMAINS))
    ranges = ranges.take(own & (ranges.ints("tid") == ranges.ints("end_tid")))
    if ranges.rows == 0 or len(work) == 0:
        return None
    level = nest(ranges).level
    names = Labels(
        folded(ranges.labels("name")).codes,
        tuple(_NUMBER.sub("#", name) for name in folded(ranges.labels("name")).values),
    )
    for depth in range(min(int(level.max()) + 1, DEEPEST)):
        rows = np.flatnonzero(level == depth)
        found = _repeated(ranges.take(rows), names.take(rows), work)
        if found is not None:
            return found
    return None


def _repeated(ranges: Frame, names: Labels, work: Work) -> Candidate | None:
    """Of ranges on one level, those of one count that together cover the most."""
    groups = group_by(Frame({**ranges, "name": names}), ("tid", "domain", "name"))
    counts = np.bincount(groups.codes, minlength=len(groups.keys))
    found: list[tuple[float, Candidate]] = []
    sets: dict[tuple[object, ...], list[int]] = {}
    for code, count in enumerate(counts.tolist()):
        if count >= REPEATS:
            sets.setdefault((*groups.keys[code][:2], count), []).append(code)
    for members in sets.values():
        spans = _alternating(ranges, groups.codes, members)
        if spans is None:
            continue
        start, end, used = spans
        covered = min(_covered(start, end, work), 1.0)
        if covered >= COVERED:
            texts = ", ".join(repr(str(groups.keys[code][2])) for code in used)
            candidate = _between(NVTX, f"repeated NVTX range {texts}", start, end, work)
            if candidate is not None and _alike(candidate):
                found.append((covered, candidate))
    return max(found, key=lambda pair: (pair[0], -len(pair[1])))[1] if found else None


def _alike(candidate: Candidate) -> bool:
    """Whether most have about equally many kernels: phases of a program are no iterations."""
    usual = np.median(candidate.kernels)
    near = np.abs(candidate.kernels - usual) <= ALIKE * usual
    return bool(near.mean() >= REGULAR)


def _alternating(
    ranges: Frame, codes: NDArray[np.int32], members: list[int]
) -> tuple[Ints, Ints, list[int]] | None:
    """From the first to the last of groups that take turns; who does not is left out."""
    spans = []
    for code in members:
        rows = codes == code
        spans.append((ranges.ints("start_ns")[rows], ranges.ints("end_ns")[rows], code))
    spans.sort(key=lambda span: (int(span[0][0]), -int(span[1][0])))
    start, end, first = spans[0]
    used = [first]
    for other_start, other_end, code in spans[1:]:
        reach = np.maximum(end, other_end)
        if np.all(other_start >= start) and np.all(reach[:-1] <= start[1:]):
            end = reach
            used.append(code)
    if np.any(end[:-1] > start[1:]):
        return None
    return start, end, used


def _covered(start: Ints, end: Ints, work: Work) -> float:
    """The smaller of two shares: of the work, and of the time, that lies in the host's spans."""
    inside = _owner(start, end, work.issued) >= 0
    whole = int(work.lengths.sum())
    done = int(work.lengths[inside].sum()) / whole if whole else 0.0
    time = int(work.issued.max() - work.issued.min())
    return min(done, int((end - start).sum()) / time if time else 1.0)


def _owner(start: Ints, end: Ints, times: Ints) -> Ints:
    """Which of disjoint ascending spans each time lies in; -1 for none."""
    place = np.searchsorted(start, times, side="right") - 1
    return np.where((place >= 0) & (times <= end[np.maximum(place, 0)]), place, -1)


def _between(kind: str, source: str, start: Ints, end: Ints, work: Work) -> Candidate | None:
    """Windows of iterations whose host spans are known.

    An iteration lasts until the host and the GPU are done with it, and begins with the host's,
    but not before the one before it is over: for a host that runs ahead these are the times from
    completion to completion, for one that waits they are its own.
    """
    owner = _owner(start, end, work.issued)
    mine = owner >= 0
    done = end.copy()
    np.maximum.at(done, owner[mine], work.end[mine])
    done = np.maximum.accumulate(done)
    begin = start.copy()
    begin[1:] = np.maximum(start[1:], done[:-1])
    count = np.bincount(owner[mine], minlength=len(start)).astype(np.int64)
    if not count.any():
        return None
    return Candidate(kind, source, begin, done, count, _compute(begin, done, work))


def from_kernels(work: Work) -> Candidate | None:
    """The repeating sequence of kernel names and graph launches."""
    found = find_repetition(work.name.codes)
    if found is None or found.coverage < REPEATED:
        return None
    return _cut(KERNELS, "repeated kernel sequence", work, found)


def from_collectives(work: Work) -> Candidate | None:
    """The repeating sequence of communication kernels, where the kernels between repeat with it."""
    rows = np.flatnonzero(is_communication(work.name))
    if len(rows) < REPEATS:
        return None
    found = find_repetition(work.name.codes[rows])
    if found is None or found.coverage < REPEATED:
        return None
    for marks in anchors(work.name.codes[rows], found):
        apart = np.diff(rows[marks])
        values, counts = np.unique(apart, return_counts=True)
        if counts.max() < REGULAR * len(apart):
            continue
        period = int(values[np.argmax(counts)])
        first = int(rows[found.first]) - (int(rows[marks[0]]) - int(rows[found.first]))
        last = min(int(rows[found.last - 1]) + period, len(work))
        around = Repetition(period, max(min(first, 0), 0), last, len(work), found.match)
        return _cut(COLLECTIVES, "repeated collective sequence", work, around)
    return None


def _cut(kind: str, source: str, work: Work, found: Repetition) -> Candidate | None:
    """The windows of a repetition, cut where the device is idle longest, else from its start."""
    marks = anchors(work.name.codes, found)
    if not marks:
        return None
    busy_until = np.maximum.accumulate(work.end)
    gap = work.start.copy()
    gap[1:] -= busy_until[:-1]
    gap[0] = 0
    length = float(np.median(np.diff(work.end[marks[0]])))
    gaps = [float(np.median(gap[places])) for places in marks]
    floor = max(max(gaps) / 2, GAP_SHARE * length) if max(gaps) > GAP_SHARE * length else min(gaps)
    wide = [places for places, wait in zip(marks, gaps, strict=True) if wait >= floor]
    cuts = min(wide, key=lambda places: (int(places[0]), -len(places)))
    edges = np.append(cuts, min(int(cuts[-1]) + found.period, len(work)))
    if edges[-1] - edges[-2] < 0.9 * found.period:
        edges = edges[:-1]
    if len(edges) <= REPEATS:
        return None
    inside = work.lengths[edges[0] : edges[-1]].sum()
    if inside < COVERED * work.lengths.sum():
        return None
    end = np.maximum.reduceat(work.end[: edges[-1]], edges[:-1])
    end = np.maximum.accumulate(end)
    start = np.concatenate([work.start[edges[:1]], end[:-1]])
    return Candidate(kind, source, start, end, np.diff(edges), _compute(start, end, work))


def _compute(start: Ints, end: Ints, work: Work) -> Ints:
    """The work that is no communication and begins in each window, in ns."""
    owner = _owner(start, end - 1, work.start)
    mine = (owner >= 0) & ~is_communication(work.name)
    total = np.zeros(len(start), dtype=np.int64)
    np.add.at(total, owner[mine], work.lengths[mine])
    return total
