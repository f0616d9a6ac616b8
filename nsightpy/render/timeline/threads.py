"""What a trace consists of: no thread of it holds two events that cross each other."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Labels
from nsightpy.results import tracks

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
    """The processes, then their threads, the marks last.

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
        device = "" if track.owner.device is None else f"GPU {track.owner.device} "
        for lane in sorted(track.lanes, key=lambda x: (_SORT[x.kind], x.number, x.label)):
            name = f"{device}{lane.label}" if lane.kind == tracks.STREAM else lane.label
            yield from _threads(lane, number, name, tids, calls[number])
    if lanes := _mark_lanes(timeline):
        number = len(numbers) + 1
        yield TraceProcess(number, "iterations, findings, critical path", 0)
        for lane in lanes:
            yield TraceThread(number, next(tids), lane.label, lane)


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


def _mark_lanes(timeline: tracks.Timeline) -> list[tracks.Lane]:
    """The marks that have times as lanes; those that overlap are in lanes of their own."""
    origin = timeline.earliest()
    lanes: dict[str, list[tuple[int, int, tracks.Mark]]] = {}
    every = timeline.marks()
    for mark in sorted(every, key=lambda m: (m.kind != tracks.ITERATION, m.start_ns or 0)):
        if mark.start_ns is None or mark.end_ns is None:
            continue
        names = (mark.kind if n == 1 else f"{mark.kind}, beside ({n})" for n in count(1))
        start = max(mark.start_ns, origin)
        name = next(lane for lane in names if lane not in lanes or lanes[lane][-1][1] <= start)
        lanes.setdefault(name, []).append((start, mark.end_ns, mark))
    return [_lane_of(name, marks) for name, marks in lanes.items()]


def _lane_of(label: str, marks: Sequence[tuple[int, int, tracks.Mark]]) -> tracks.Lane:
    """Marks that do not overlap, each with its start and end, as the events of a lane."""
    starts, ends = np.asarray([times for *times, _ in marks], dtype=np.int64).T
    owners = ["" if mark.owner is None else f"{mark.owner.label}: " for *_, mark in marks]
    texts = zip(owners, (mark.text for *_, mark in marks), strict=True)
    return tracks.Lane(
        tracks.RANGES,
        label,
        0,
        starts,
        np.maximum(starts, ends),
        Labels.of(mark.label for *_, mark in marks),
        np.zeros(len(marks), dtype=np.int16),
        np.full(len(marks), tracks.MARK, dtype=np.uint8),
        details=Labels.of(f"{owner}{text}".strip() for owner, text in texts),
    )
