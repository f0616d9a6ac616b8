"""What a trace consists of: no thread of it holds two events that cross each other."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Labels
from nsightpy.results import tracks
from nsightpy.results.tracks import CRITICAL

_FIRST_TID = 10_001
_SORT = {tracks.CALLS: 0, tracks.RANGES: 1, tracks.STREAM: 2}


class TraceProcess(NamedTuple):
    """A process of a trace: one rank, or one process of unknown rank; `sort`: its place."""

    number: int
    name: str
    sort: int


class TraceThread(NamedTuple):
    """A thread of a trace; `lane` holds its events alone, by start.

    `flows` marks those whose launch call is in the trace, on the thread that `callers` names.
    """

    process: int
    tid: int
    name: str
    lane: tracks.Lane
    flows: NDArray[np.bool_] | None = None
    callers: NDArray[np.int64] | None = None


def parts_of(timeline: tracks.Timeline) -> Iterator[TraceProcess | TraceThread]:
    """The processes, then their threads, the critical path last.

    Numbers are unique in the trace; one track is held in memory at a time.
    """
    numbers: dict[tuple[str, int], int] = {}
    for owner in timeline.owners:
        if (key := (owner.report, owner.pid)) in numbers:
            continue
        number = numbers[key] = len(numbers) + 1
        who = "process" if owner.rank is None else f"rank {owner.rank}"
        where = f" on {owner.host}" if owner.host else ""
        yield TraceProcess(number, f"{who}{where}, pid {owner.pid}", number)
    tids = count(_FIRST_TID)
    calls: dict[int, dict[int, tuple[int, NDArray[np.int64]]]] = defaultdict(dict)
    for track in timeline:
        number = numbers[track.owner.report, track.owner.pid]
        for lane in sorted(track.lanes, key=lambda x: (_SORT[x.kind], x.number, x.label)):
            on_device = f"GPU {track.owner.device} " * (lane.kind == tracks.STREAM)
            yield from _threads(lane, number, f"{on_device}{lane.label}", tids, calls[number])
    if marks := timeline.path():
        number = len(numbers) + 1
        yield TraceProcess(number, CRITICAL, 0)
        yield TraceThread(number, next(tids), CRITICAL, _path_lane(marks, timeline.earliest()))


def _threads(
    lane: tracks.Lane,
    process: int,
    name: str,
    tids: Iterator[int],
    calls: dict[int, tuple[int, NDArray[np.int64]]],
) -> Iterator[TraceThread]:
    """The threads of a lane: one for each level whose events cross those of another.

    `calls` are the launch calls of each host thread of the process, and its number in the trace.
    """
    alone = lane.nested or lane.depth <= 1
    for level in range(1 if alone else lane.depth):
        tid, piece = next(tids), lane if alone else lane.take(lane.levels == level)
        flows = callers = None
        if piece.flows is not None and lane.kind == tracks.CALLS:
            calls[lane.number] = (tid, piece.flows)
        if piece.flows is not None and piece.launch_tid is not None:
            callers = np.zeros(len(piece), dtype=np.int64)
            for thread, (traced, launches) in calls.items():
                callers[(piece.launch_tid == thread) & np.isin(piece.flows, launches)] = traced
            flows = callers > 0
        title = f"{name}, beside ({level + 1})" if level else name
        yield TraceThread(process, tid, title, piece, flows, callers)


def _path_lane(marks: Sequence[tracks.Mark], origin: int) -> tracks.Lane:
    """The critical path: all of it, and inside of that whom it runs over, one after the other."""
    times = [(mark.start_ns or 0, mark.end_ns or 0) for mark in marks]
    starts, ends = np.maximum(np.asarray(times, dtype=np.int64), origin).T
    return tracks.Lane(
        tracks.RANGES,
        CRITICAL,
        0,
        starts,
        ends,
        Labels.of(mark.label for mark in marks),
        np.minimum(np.arange(len(marks)), 1).astype(np.int16),
        np.full(len(marks), tracks.MARK, dtype=np.uint8),
        details=Labels.of(mark.text for mark in marks),
    )
