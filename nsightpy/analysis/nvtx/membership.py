"""What belongs to named NVTX ranges: their calls, their operations, their time on each device."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.intervals import Spans, union
from nsightpy.analysis.nvtx.nesting import thread_key
from nsightpy.analysis.nvtx.projection import launched, project
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.frames import Frame, Ints, Labels, distinct, distinct_pairs, last_before

Place = tuple[int, int]  # process, device
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


def alike(labels: Labels, pattern: str) -> NDArray[np.bool_]:
    """Mask of the rows of that name; * stands for anything."""
    if WILD not in pattern:
        return labels.equals([pattern])
    wanted = re.compile(".*".join(map(re.escape, pattern.split(WILD))), re.DOTALL)
    return labels.where(lambda value: wanted.fullmatch(value) is not None)


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
    by_place: dict[Place, Spans] = {}
    places, code = distinct_pairs(operations.ints("pid"), operations.ints("device"))
    for number, place in enumerate(places):
        done = project(ranges, launched(operations.take(code == number), calls))
        if done.found.any():
            by_place[place] = union(done.start[done.found], done.end[done.found])
    return by_place
