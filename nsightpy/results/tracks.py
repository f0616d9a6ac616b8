"""What a timeline is made of: tracks of lanes of events, all on one clock. Times are int64 ns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Ints, Labels

COMPUTE, COMMUNICATION, COPY, GRAPH, RANGE, CALL, MARK = range(7)
CATEGORIES = ("compute", "communication", "copy", "graph", "nvtx", "api", "mark")
STREAM, RANGES, CALLS = "stream", "ranges", "calls"
NO_LAUNCH = NO_COLLECTIVE = -1


@dataclass(frozen=True, slots=True)
class Lane:
    """The events of one stream or one host thread, by start.

    Events of one level never overlap. `nested`: an event of a deeper level lies inside one of the
    level above, as calls do. launch_ns and launch_tid say where a GPU operation was launched (-1:
    not recorded), flow joins it with that call; collective numbers what ranks did together.
    """

    kind: str
    label: str
    number: int
    starts: Ints
    ends: Ints
    names: Labels
    levels: NDArray[np.int16]
    categories: NDArray[np.uint8]
    nested: bool = False
    details: Labels | None = None
    launch_ns: Ints | None = None
    launch_tid: Ints | None = None
    flows: Ints | None = None
    collectives: Ints | None = None

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def depth(self) -> int:
        """The number of levels."""
        return int(self.levels.max()) + 1 if len(self.levels) else 0

    def take(self, rows: NDArray[np.bool_] | Ints) -> Lane:
        """The lane with some of its events, on their levels."""
        columns = {each.name: getattr(self, each.name) for each in fields(self)}
        kept: dict[str, Any] = {
            name: column.take(rows) if isinstance(column, Labels) else column[rows]
            for name, column in columns.items()
            if isinstance(column, Labels | np.ndarray)
        }
        return replace(self, **kept)

    def moved(self, to_aligned: Callable[[Ints], Ints]) -> Lane:
        """The lane on another clock."""
        launch = self.launch_ns
        if launch is not None:
            launch = np.where(launch == NO_LAUNCH, NO_LAUNCH, to_aligned(launch))
        return replace(
            self, starts=to_aligned(self.starts), ends=to_aligned(self.ends), launch_ns=launch
        )

    def within(self, start_ns: int | None, end_ns: int | None) -> Lane:
        """The lane with the events that overlap a stretch of time, each of them whole."""
        low = -np.inf if start_ns is None else start_ns
        high = np.inf if end_ns is None else end_ns
        keep = (self.ends > low) & (self.starts < high)
        return self if keep.all() else self.take(keep)


@dataclass(frozen=True, slots=True)
class Counter:
    """A quantity over time: `values[i]` from `times[i]` (ns) on. `unit` is bytes or %."""

    label: str
    unit: str
    times: Ints
    values: Ints

    def moved(self, to_aligned: Callable[[Ints], Ints]) -> Counter:
        """The counter on another clock."""
        return replace(self, times=to_aligned(self.times))

    def within(self, start_ns: int | None, end_ns: int | None) -> Counter:
        """The counter in a stretch of time, with the value that it begins with."""
        low = 0 if start_ns is None else np.searchsorted(self.times, start_ns, side="right") - 1
        high = None if end_ns is None else np.searchsorted(self.times, end_ns)
        rows = slice(max(low, 0), high)
        return replace(self, times=self.times[rows], values=self.values[rows])


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose events a track holds: one device as one process used it."""

    report: str
    host: str
    pid: int
    rank: int | None
    device: int

    @property
    def label(self) -> str:
        who = f"pid {self.pid}" if self.rank is None else f"rank {self.rank}"
        return f"{who} · GPU {self.device}"


@dataclass(frozen=True, slots=True)
class Track:
    """One device's streams, and on the first device of a process its host threads too."""

    owner: Owner
    lanes: tuple[Lane, ...]
    counters: tuple[Counter, ...] = ()

    def lanes_of(self, kind: str) -> tuple[Lane, ...]:
        return tuple(lane for lane in self.lanes if lane.kind == kind)


@dataclass(frozen=True, slots=True)
class Mark:
    """Something to jump to: an iteration of all ranks, or a finding and its worst place.

    Without a start it is about the whole of its owner; without an owner, about all of them. Of the
    critical path one is about all of it, the others are when it runs over the work of an owner.
    """

    kind: str
    label: str
    text: str
    start_ns: int | None = None
    end_ns: int | None = None
    owner: Owner | None = None
    severity: str = ""


ITERATION, FINDING, CRITICAL = "iteration", "finding", "critical path"


@dataclass(frozen=True)
class Timeline:
    """Tracks on one clock, read report by report whenever they are asked for, with detail or not.

    start_ns and end_ns are the window on the clock of the first owner: that of its own report.
    earliest() is not later than any event. `clock` says how the ranks were brought together.
    marks() are found when asked for, path() are those of the critical path among them;
    picture(columns) is the timeline reduced to so many columns.
    """

    owners: tuple[Owner, ...]
    start_ns: int
    end_ns: int
    clock: str
    tracks: Callable[[bool], Iterator[Track]]
    earliest: Callable[[], int]
    inputs: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    marks: Callable[[], tuple[Mark, ...]] = tuple
    path: Callable[[], tuple[Mark, ...]] = tuple
    picture: Callable[[int], Picture] | None = None

    def __iter__(self) -> Iterator[Track]:
        return self.tracks(True)


@dataclass(frozen=True, slots=True)
class Boxes:
    """Events drawn one by one, each on its level of `depth`."""

    starts: Ints
    ends: Ints
    names: Labels
    levels: NDArray[np.int16]
    depth: int


@dataclass(frozen=True, slots=True)
class Band:
    """One kind of activity of a row: shares (0 to 1) of each column's time, and single events.

    An event is in `boxes` or in `shares`, never in both; `shares` of several kinds that exclude
    each other may be stacked.
    """

    kind: str
    shares: NDArray[np.float64]
    boxes: Boxes | None
    events: int


@dataclass(frozen=True, slots=True)
class Row:
    """One device in a picture."""

    owner: Owner
    bands: tuple[Band, ...]


@dataclass(frozen=True)
class Picture:
    """A timeline reduced to the columns of a picture; `stacked` rows are one band each.

    `joins` are the longest collectives that several rows share: row, start and end of each part.
    `path` is the critical one.
    """

    start_ns: int
    end_ns: int
    columns: int
    rows: tuple[Row, ...]
    stacked: bool
    joins: tuple[tuple[tuple[int, int, int], ...], ...]
    clock: str
    inputs: tuple[str, ...]
    path: tuple[Mark, ...] = ()
