"""Lanes as processes and threads of a trace: no thread holds two events that cross each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Labels
from nsightpy.results import tracks

_FIRST_TID = 10_001
_SORT = {tracks.CALLS: 0, tracks.RANGES: 1, tracks.STREAM: 2}


@dataclass(frozen=True, slots=True)
class TraceThread:
    """A thread of a trace; `lane` holds its events alone, by start.

    `flows` marks those whose launch call is in the trace, on the thread that `callers` names.
    """

    process: int
    tid: int
    name: str
    sort: int
    lane: tracks.Lane
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

    timeline: tracks.Timeline
    _tids: Iterator[int] = field(default_factory=lambda: count(_FIRST_TID))
    _callers: dict[tuple[str, int], dict[int, tuple[int, NDArray[np.int64]]]] = field(
        default_factory=dict
    )

    @property
    def processes(self) -> dict[tuple[str, int], TraceProcess]:
        """By report and pid, in the order of the timeline."""
        firsts: dict[tuple[str, int], tracks.Owner] = {}
        for owner in self.timeline.owners:
            firsts.setdefault((owner.report, owner.pid), owner)
        return {
            key: TraceProcess(number, _name(owner), number)
            for number, (key, owner) in enumerate(firsts.items(), start=1)
        }

    def threads(self, track: tracks.Track) -> list[TraceThread]:
        """The threads of a track, host threads first; events that cross get their own threads."""
        owner = track.owner
        key = (owner.report, owner.pid)
        process = self.processes[key].number
        lanes = sorted(track.lanes, key=lambda lane: (_SORT[lane.kind], lane.number, lane.label))
        traced = []
        for lane in lanes:
            name = lane.label
            if lane.kind == tracks.STREAM and owner.device is not None:
                name = f"GPU {owner.device} {name}"
            alone = lane.nested or lane.depth <= 1
            levels = [None] if alone else [lane.levels == level for level in range(lane.depth)]
            for part, rows in enumerate(levels):
                tid = next(self._tids)
                piece = lane if rows is None else lane.take(rows)
                if lane.kind == tracks.CALLS and piece.flows is not None:
                    threads = self._callers.setdefault(key, {})
                    threads[lane.number] = (tid, piece.flows)
                flows, callers = self._launches(key, piece)
                title = name if part == 0 else f"{name}, beside ({part + 1})"
                traced.append(TraceThread(process, tid, title, tid, piece, flows, callers))
        return traced

    def marks(self, origin: int) -> tuple[TraceProcess, list[TraceThread]] | None:
        """The marks of the timeline that have times, as a process of their own; None without any.

        Those that overlap are on threads of their own.
        """
        ends: dict[str, int] = {}
        threads: dict[str, list[tracks.Mark]] = {}
        every = self.timeline.marks()
        for mark in sorted(every, key=lambda m: (m.kind != tracks.ITERATION, m.start_ns or 0)):
            if mark.start_ns is None or mark.end_ns is None:
                continue
            names = (mark.kind if n == 1 else f"{mark.kind}, beside ({n})" for n in count(1))
            name = next(
                thread for thread in names if ends.get(thread, 0) <= max(mark.start_ns, origin)
            )
            ends[name] = mark.end_ns
            threads.setdefault(name, []).append(mark)
        if not threads:
            return None
        number = len(self.processes) + 1
        made = []
        for name, marks in threads.items():
            tid = next(self._tids)
            lane = _lane_of(name, marks, origin)
            made.append(TraceThread(number, tid, name, tid, lane, None, None))
        return TraceProcess(number, "iterations, findings, critical path", 0), made

    def counter(self, track: tracks.Track, label: str) -> tuple[int, int, str]:
        """The process of a counter of a track, a number for it, and its name there."""
        owner = track.owner
        process = self.processes[owner.report, owner.pid].number
        device = "" if owner.device is None else f"GPU {owner.device} "
        return process, next(self._tids), f"{device}{label}"

    def _launches(
        self, key: tuple[str, int], lane: tracks.Lane
    ) -> tuple[NDArray[np.bool_] | None, NDArray[np.int64] | None]:
        """Which operations have their launch call in the trace, and the thread it is on."""
        if lane.launch_tid is None or lane.flows is None:
            return None, None
        callers = np.zeros(len(lane), dtype=np.int64)
        for tid, (thread, calls) in self._callers.get(key, {}).items():
            shown = (lane.launch_tid == tid) & np.isin(lane.flows, calls)
            callers[shown] = thread
        return callers > 0, callers


def _lane_of(label: str, marks: Sequence[tracks.Mark], origin: int) -> tracks.Lane:
    """Marks that do not overlap as the events of a lane."""
    starts = np.asarray([max(mark.start_ns or 0, origin) for mark in marks], dtype=np.int64)
    ends = np.asarray([mark.end_ns or 0 for mark in marks], dtype=np.int64)
    owners = ["" if mark.owner is None else f"{mark.owner.label}: " for mark in marks]
    texts = (f"{owner}{mark.text}".strip() for owner, mark in zip(owners, marks, strict=True))
    return tracks.Lane(
        tracks.RANGES,
        label,
        0,
        starts,
        np.maximum(starts, ends),
        Labels.of([mark.label for mark in marks]),
        np.zeros(len(marks), dtype=np.int16),
        np.full(len(marks), tracks.MARK, dtype=np.uint8),
        details=Labels.of(texts),
    )


def _name(owner: tracks.Owner) -> str:
    rank = f"rank {owner.rank}" if owner.rank is not None else "process"
    where = f" on {owner.host}" if owner.host else ""
    return f"{rank}{where}, pid {owner.pid}"
