"""Launches that a range caused on another thread, attributed to it by time.

A framework's backward pass is launched by a thread of its own while the thread of the range waits.
A launch is attributed to the innermost range that was open on another thread of its process, when
that thread launched nothing itself between the launches before and after it on the launching
thread (for the first one in the range: until the next). Of several such threads the one whose
range opened last counts, so that one operation never belongs to two ranges that do not contain
each other.
"""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.nvtx.nesting import ROOT, in_one_domain, innermost, nest
from nsightpy.frames import Frame, Ints, constant, distinct

NO_THREAD = -1


def waiting_threads(calls: Frame, ranges: Frame) -> Ints:
    """For each launching call (start_ns, pid, tid) the thread that waited for it; -1 for none.

    `ranges` are NVTX ranges with start_ns, end_ns, pid, tid, end_tid, domain and style.
    """
    waiting = constant(NO_THREAD, calls.rows)
    opened = np.empty(0, dtype=np.int64)
    stays = ranges.ints("tid") == ranges.ints("end_tid")
    ranges = ranges if stays.all() else ranges.take(stays)
    for pid in distinct(ranges.ints("pid"))[0].tolist():
        mine, own = ranges.at(pid=pid), calls.select(("start_ns", "pid", "tid")).at(pid=pid)
        launching, holding = (distinct(frame.ints("tid"))[0] for frame in (own, mine))
        if not own.rows or (len(launching) < 2 and np.array_equal(launching, holding)):
            continue
        if not len(opened):
            waiting = waiting.copy()
            opened = np.full(calls.rows, np.iinfo(np.int64).min)
        rows = np.flatnonzero(calls.ints("pid") == pid)
        _of_process(own, mine, rows, waiting, opened)
    return waiting


def as_launched_by(calls: Frame, threads: Ints) -> Frame:
    """The calls for which some thread waited, as if that thread had made them; by start."""
    known = threads != NO_THREAD
    return Frame({**calls.take(known), "tid": threads[known]})


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
        made = np.sort(start[tid == thread])
        idle = np.searchsorted(made, low, side="left") == np.searchsorted(made, high, side="right")
        others, row = others[idle], row[idle]
        later = began[row] > opened[rows[others]]
        chosen = rows[others[later]]
        waiting[chosen], opened[chosen] = thread, began[row[later]]


def _neighbours(start: Ints, tid: Ints) -> tuple[Ints, Ints]:
    """When the calls before and after each one on its own thread began."""
    order = np.lexsort((start, tid))
    before, after = np.empty_like(start), np.empty_like(start)
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    sorted_start, sorted_tid = start[order], tid[order]
    same = sorted_tid[1:] == sorted_tid[:-1]
    before[order] = np.concatenate([[low], np.where(same, sorted_start[:-1], low)])
    after[order] = np.concatenate([np.where(same, sorted_start[1:], high), [high]])
    return before, after
