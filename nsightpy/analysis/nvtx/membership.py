"""What belongs to NVTX ranges: their calls and operations, also those that other threads launched.

A framework's backward pass is launched by a thread of its own while the thread of the range waits.
A launch is attributed to the innermost range that was open on another thread of its process, when
that thread launched nothing itself between the launches before and after it on the launching
thread (for the first one in the range: until the next). Of several such threads the one whose
range opened last counts, so that one operation never belongs to two ranges that do not contain
each other.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.intervals import Spans, union
from nsightpy.analysis.nvtx.nesting import ROOT, in_one_domain, innermost, nest, thread_key
from nsightpy.analysis.nvtx.projection import Place, projections
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.frames import Frame, Ints, Labels, constant, distinct, last_before

WILD = "*"


@dataclass(frozen=True, slots=True)
class RangeName:
    """Which ranges are meant: a name, `*` standing for anything, and a domain (None: any)."""

    name: str
    domain: str | None = None

    def matches(self, ranges: Frame) -> NDArray[np.bool_]:
        """Mask of the ranges meant, framework suffixes given or left out."""
        names = ranges.labels("name")
        mask = alike(names, self.name) | alike(folded(names), self.name)
        return mask if self.domain is None else mask & alike(ranges.labels("domain"), self.domain)


def named(text: str, ranges: Frame) -> RangeName | None:
    """The meaning of RANGE[@DOMAIN]: a range of that whole name, else a name and a domain."""
    name, mark, domain = text.rpartition("@")
    for meant in (RangeName(text), *([RangeName(name, domain)] if mark else [])):
        if meant.matches(ranges).any():
            return meant
    return None


def wildcard(pattern: str) -> re.Pattern[str]:
    """The expression for a whole name; * stands for anything."""
    return re.compile(rf"\A{'.*'.join(map(re.escape, pattern.split(WILD)))}\Z", re.DOTALL)


def alike(labels: Labels, pattern: str) -> NDArray[np.bool_]:
    """Mask of the rows of that name; * stands for anything."""
    return labels.where(wildcard(pattern).match) if WILD in pattern else labels.equals([pattern])


def inside(rows: Frame, ranges: Frame) -> NDArray[np.bool_]:
    """Mask of what lies inside one of the ranges, ends included, on the same thread.

    Both frames carry start_ns, end_ns, pid and tid; ranges may overlap.
    """
    if rows.rows == 0 or ranges.rows == 0:
        return np.zeros(rows.rows, dtype=np.bool_)
    thread, start = thread_key(ranges), ranges.ints("start_ns")
    order = np.lexsort((start, thread))
    thread, start, end = thread[order], start[order], ranges.ints("end_ns")[order]
    # how far the ranges of a thread reach that began so far
    base = int(end.min())
    shift = distinct(thread)[1].astype(np.int64) * (int(end.max()) - base + 1) - base
    reach = np.maximum.accumulate(end + shift) - shift
    before = last_before((thread, start), (thread_key(rows), rows.ints("start_ns")))
    return (before >= 0) & (reach[before] >= rows.ints("end_ns"))


def call_keys(calls: Frame, ranges: Frame) -> Ints:
    """The calls inside the ranges as sorted keys (process and correlation id as one number)."""
    launches = calls.take(inside(calls, ranges) & (calls.ints("correlation_id") > 0))
    return np.unique(launch_key(launches))


def launch_key(frame: Frame) -> Ints:
    """Process and correlation id of each row as one number."""
    return (frame.ints("pid") << 36) | frame.ints("correlation_id")


def belongs(frame: Frame, keys: Ints) -> NDArray[np.bool_]:
    """Mask of the rows (pid, correlation_id) that one of the calls launched or is."""
    return np.isin(launch_key(frame), keys)


def windows(ranges: Frame, operations: Frame, calls: Frame) -> dict[Place, Spans]:
    """For each device the union of the ranges' projected intervals on it, in ns."""
    return {
        place: union(each.start[each.found], each.end[each.found])
        for place, each in projections(ranges, operations, calls)
    }


NO_THREAD = -1
_FIRST, _LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def waiting_threads(calls: Frame, ranges: Frame) -> Ints:
    """For each launching call (start_ns, pid, tid) the thread that waited for it; -1 for none.

    `ranges` are NVTX ranges with start_ns, end_ns, pid, tid, end_tid, domain and style.
    """
    waiting = constant(NO_THREAD, calls.rows)
    opened = np.empty(0, dtype=np.int64)
    stays = ranges.ints("tid") == ranges.ints("end_tid")
    ranges = ranges if stays.all() else ranges.take(stays)
    for pid in distinct(ranges.ints("pid"))[0].tolist():
        held, own = ranges.at(pid=pid), calls.select(("start_ns", "pid", "tid")).at(pid=pid)
        launching, holding = (distinct(frame.ints("tid"))[0] for frame in (own, held))
        if not own.rows or (len(launching) < 2 and np.array_equal(launching, holding)):
            continue
        if not len(opened):
            waiting = waiting.copy()
            opened = np.full(calls.rows, _FIRST)
        rows = np.flatnonzero(calls.ints("pid") == pid)
        _of_process(own, held, rows, waiting, opened)
    return waiting


def as_launched_by(calls: Frame, threads: Ints) -> Frame:
    """The calls for which some thread waited, as if that thread had made them; by start."""
    waited = threads != NO_THREAD
    return Frame({**calls.take(waited), "tid": threads[waited]})


def _of_process(calls: Frame, ranges: Frame, rows: Ints, waiting: Ints, opened: Ints) -> None:
    start, tid = calls.ints("start_ns"), calls.ints("tid")
    before, after = _neighbours(start, tid)
    began, ended = ranges.ints("start_ns"), ranges.ints("end_ns")
    tree = Frame({**ranges, "parent": nest(in_one_domain(ranges)).parent})
    for thread in distinct(ranges.ints("tid"))[0].tolist():
        others = np.flatnonzero(tid != thread)
        moments = calls.take(others)
        row = innermost(tree, Frame({**moments, "tid": constant(thread, moments.rows)}))
        inside = row != ROOT
        others, row = others[inside], row[inside]
        # before its first launch in the range, the other thread waits for the range's own work
        first = before[others] < began[row]
        low = np.where(first, start[others], before[others])
        high = np.minimum(after[others], ended[row])
        busy = np.sort(start[tid == thread])
        idle = np.searchsorted(busy, low, side="left") == np.searchsorted(busy, high, side="right")
        others, row = others[idle], row[idle]
        later = began[row] > opened[rows[others]]
        chosen = rows[others[later]]
        waiting[chosen], opened[chosen] = thread, began[row[later]]


def _neighbours(start: Ints, tid: Ints) -> tuple[Ints, Ints]:
    """When the calls before and after each one on its own thread began."""
    order = np.lexsort((start, tid))
    before, after = np.full_like(start, _FIRST), np.full_like(start, _LAST)
    same = np.flatnonzero(tid[order][1:] == tid[order][:-1])
    first, second = order[same], order[same + 1]
    before[second], after[first] = start[first], start[second]
    return before, after
