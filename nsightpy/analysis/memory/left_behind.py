"""What each iteration of a program leaves behind in memory, and where it was allocated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.memory.recorded import Recorded
from nsightpy.frames import Frame, Ints
from nsightpy.results.series import MemoryGrowth

_PROFILER_STEP = re.compile(r"ProfilerStep#?\*?\d*")
_OPTIMIZER_STEP = re.compile(r"Optimizer\.step#")


@dataclass(frozen=True, slots=True)
class SnapshotIterations:
    """Stretches of time, `start[i]` to `end[i]` in ns, and what they were known by."""

    source: str
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.start)


def snapshot_iterations(ranges: Frame) -> SnapshotIterations:
    """The iterations that a snapshot has (schema snapshot_ranges).

    The profiler's steps, else the time from one optimizer step's end to the next one's end: the
    first of them has no beginning, and is left out.
    """
    names = ranges.labels("name")
    start, end = ranges.ints("start_ns"), ranges.ints("end_ns")
    closed = (start >= 0) & (end >= start)
    rows = np.flatnonzero(names.where(_PROFILER_STEP.fullmatch) & closed)
    if len(rows):
        rows = rows[np.argsort(start[rows], kind="stable")]
        return SnapshotIterations("ProfilerStep", start[rows], end[rows])
    for name in names.values:
        if _OPTIMIZER_STEP.match(name):
            ends = np.sort(end[names.equals([name]) & closed])
            return SnapshotIterations(name.replace("#", " of ", 1), ends[:-1], ends[1:])
    empty = np.empty(0, dtype=np.int64)
    return SnapshotIterations("", empty, empty)


def left_behind(
    recorded: Recorded, spans: SnapshotIterations, codes: Ints, names: Sequence[str]
) -> list[MemoryGrowth]:
    """What every iteration leaves, of those that the events cover from their start.

    codes: the place of each allocation in `names`.
    """
    if not len(spans) or not recorded.events:
        return []
    live = recorded.live
    made = []
    for start, end in zip(spans.start.tolist(), spans.end.tolist(), strict=True):
        if start < recorded.times[0]:
            continue
        first, last = recorded.states(start, end)
        size = np.where(recorded.alive(last), recorded.bytes, 0) - np.where(
            recorded.alive(first), recorded.bytes, 0
        )
        grown = np.bincount(codes, size, len(names)).astype(np.int64)
        most = int(np.argmax(grown))
        known = bool(grown[most] > 0)
        name = names[most] if known else ""
        made.append(
            MemoryGrowth(
                start,
                end,
                int(live[first : last + 1].max()),
                int(live[last] - live[first]),
                name,
                int(grown[most]) if known else 0,
            )
        )
    return made
