"""Lanes as processes and threads of a trace: no thread holds two events that cross each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from nsightpy.results.tracks import CALLS, RANGES, STREAM, Lane, Place, Timeline, Track

_FIRST_TID = 10_001
_SORT = {CALLS: 0, RANGES: 1, STREAM: 2}


@dataclass(frozen=True, slots=True)
class TraceThread:
    """A thread of a trace; `lane` holds its events alone, by start.

    `flows` marks those whose launch call is in the trace, on the thread that `callers` names.
    """

    process: int
    tid: int
    name: str
    sort: int
    lane: Lane
    flows: NDArray[np.bool_] | None
    callers: NDArray[np.int64] | None


@dataclass(frozen=True, slots=True)
class TraceProcess:
    """A process of a trace: one rank, or one process of unknown rank."""

    number: int
    name: str
    sort: int


@dataclass
class Directory:
    """Numbers for processes and threads, unique in the trace, as its tracks come by."""

    timeline: Timeline
    _tids: Iterator[int] = field(default_factory=lambda: count(_FIRST_TID))
    _callers: dict[tuple[str, int], dict[int, tuple[int, NDArray[np.int64]]]] = field(
        default_factory=dict
    )

    @property
    def processes(self) -> dict[tuple[str, int], TraceProcess]:
        """By report and pid, in the order of the timeline."""
        firsts: dict[tuple[str, int], Place] = {}
        for place in self.timeline.places:
            firsts.setdefault((place.report, place.pid), place)
        return {
            key: TraceProcess(number, _name(place), number)
            for number, (key, place) in enumerate(firsts.items(), start=1)
        }

    def threads(self, track: Track) -> list[TraceThread]:
        """The threads of a track, host threads first; events that cross get their own threads."""
        place = track.place
        key = (place.report, place.pid)
        process = self.processes[key].number
        lanes = sorted(track.lanes, key=lambda lane: (_SORT[lane.kind], lane.number, lane.label))
        made = []
        for lane in lanes:
            name = lane.label
            if lane.kind == STREAM and place.device is not None:
                name = f"GPU {place.device} {name}"
            for part, rows in enumerate(_split(lane)):
                tid = next(self._tids)
                own = lane if rows is None else lane.take(rows)
                if lane.kind == CALLS and own.flows is not None:
                    threads = self._callers.setdefault(key, {})
                    threads[lane.number] = (tid, own.flows)
                flows, callers = self._launches(key, own)
                title = name if part == 0 else f"{name}, beside ({part + 1})"
                made.append(TraceThread(process, tid, title, tid, own, flows, callers))
        return made

    def _launches(
        self, key: tuple[str, int], lane: Lane
    ) -> tuple[NDArray[np.bool_] | None, NDArray[np.int64] | None]:
        """Which operations have their launch call in the trace, and the thread it is on."""
        if lane.launch_tid is None or lane.flows is None:
            return None, None
        callers = np.zeros(len(lane), dtype=np.int64)
        for tid, (thread, calls) in self._callers.get(key, {}).items():
            mine = (lane.launch_tid == tid) & np.isin(lane.flows, calls)
            callers[mine] = thread
        return callers > 0, callers


def _split(lane: Lane) -> list[NDArray[np.bool_] | None]:
    """The events of each thread; None for all of them on one."""
    if lane.nested or lane.depth <= 1:
        return [None]
    return [lane.levels == level for level in range(lane.depth)]


def _name(place: Place) -> str:
    rank = f"rank {place.rank}" if place.rank is not None else "process"
    where = f" on {place.host}" if place.host else ""
    return f"{rank}{where}, pid {place.pid}"
