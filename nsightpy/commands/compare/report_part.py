"""What one report contributes to the summary of its run: units of each device, and what ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.collectives.log import log_of
from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.comparison.unit_times import DeviceSets, unit_times
from nsightpy.analysis.comparison.unit_works import UnitWorks, owners, some_units, unit_works
from nsightpy.analysis.idle.gap_causes import IdleGaps
from nsightpy.analysis.intervals import Spans, spans_of, union
from nsightpy.analysis.iterations.repetition import REPEATS
from nsightpy.analysis.iterations.steady import Iterations
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.time_budget import places_of
from nsightpy.commands.compare.circumstances import circumstances_of
from nsightpy.commands.compare.launched_in import Around, ranges_in, typical_unit
from nsightpy.frames import COLLECTIVES, Frame, Ints, Labels
from nsightpy.query.device_gaps import MEMORY_COLUMNS, gaps_of, with_host_calls
from nsightpy.query.device_time import read_work
from nsightpy.query.iteration_filter import places_in
from nsightpy.query.iteration_search import CallsRead, followed_calls
from nsightpy.query.launched_work import FollowedWork, Work, followed_work
from nsightpy.query.rank_alignment import RankPart, clocks_in
from nsightpy.query.scope import Scope
from nsightpy.query.steady_state import find_in_report
from nsightpy.readers.extent import bounds_of
from nsightpy.reports.system import SystemReport
from nsightpy.results.notes import Said, texts

Place = tuple[int, int]
GRAPHS = ("start_ns", "end_ns", "pid", "device", "graph_id")


@dataclass(frozen=True)
class PlaceUnits:
    """The units of one device of one process: their parts by row, and what ran in them.

    `covered` units lie between the first and the last; of many of them some are here. `graphs`
    are those that were traced as a whole.
    """

    place: Place
    covered: int
    parts: Ints
    kernels: UnitWorks
    graphs: UnitWorks
    ranges: UnitWorks | None = None


@dataclass(frozen=True)
class ReportPart:
    """One report's units by kind (see UNITS); its collectives; what it ran on.

    `owners`: the unit of each kind that a collective began in, -1 for none.
    """

    units: Mapping[str, tuple[PlaceUnits, ...]]
    collectives: RankPart | None
    owners: Mapping[str, Ints]
    circumstances: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Read:
    """What was read of a report."""

    report: SystemReport
    scope: Scope
    work: Work
    communicates: NDArray[np.bool_]
    followed: FollowedWork | None
    waiting: Frame
    ranges: Frame
    iterations: Mapping[int, Iterations]

    @cached_property
    def windows(self) -> dict[Place, Spans]:
        """What of each device's time the question is about."""
        places = places_of(*self.work)
        chosen = self.scope.windows(self.report)
        if chosen is not None:
            return {place: chosen[place] for place in places if place in chosen}
        low, high = self.scope.bounds(self.report)
        spans = {}
        for place in places:
            bounds = bounds_of(frame.at(pid=place[0], device=place[1]) for frame in self.work)
            if bounds is None:  # a number that no device has
                continue
            first, last = bounds
            spans[place] = Spans.of(first if low is None else low, last if high is None else high)
        return spans

    @cached_property
    def graphs(self) -> Frame:
        """The graphs traced as a whole of the scope, with their numbers."""
        columns = dict.fromkeys((*GRAPHS, *self.scope.columns))
        return self.scope.narrow(self.report, self.report.frame("graph_launches", tuple(columns)))

    def steps(self, pid: int) -> tuple[Ints, Ints] | None:
        """Starts and ends of the steps of a process; None where it has none."""
        iterations = self.iterations.get(pid)
        if iterations is None:
            return None
        chosen = self.scope.iteration
        rows = iterations.steady if chosen is None else places_in(iterations, chosen)
        if len(rows) < (REPEATS if chosen is None else 1):
            return None
        return iterations.start[rows], iterations.end[rows]

    def repetitions(self, pid: int) -> tuple[Ints, Ints] | None:
        """The same of what repeats in a process and is no step; None where nothing does."""
        iterations = self.iterations.get(pid)
        if iterations is None or self.scope.iteration is not None:
            return None
        starts = next(
            (other.starts for other in iterations.others if len(other.starts) > REPEATS), None
        )
        if starts is None or not (np.diff(starts) > 0).all():
            return None
        return starts[:-1], starts[1:]


def report_part(report: SystemReport, *, scope: Scope) -> ReportPart:
    """Everything that a comparison needs of one report."""
    work = read_work(report, scope, MEMORY_COLUMNS)
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    communicates = is_communication(work.kernels.labels("name"))
    read = _with_calls(report, scope, work, communicates, ranges)
    kind, times = _repeated(read)
    gaps = _gaps(read, times)
    units: dict[str, tuple[PlaceUnits, ...]] = {}
    around = Around(report, read.followed, work, ranges)
    if kind:
        units[kind] = tuple(
            _steps(read, place, gaps.get(place), times[place[0]], around) for place in read.windows
        )
    narrowed = scope.narrow(report, work.kernels)
    units["window"] = tuple(
        _window(read, place, gaps.get(place), narrowed, around)
        for place, window in read.windows.items()
        if len(window)
    )
    collectives, begun = None, {}
    if communicates.any():
        frame = report.frame("collectives", COLLECTIVES.names)
        begun = {unit: _begun(read, frame, times if unit == kind else {}) for unit in units}
        log = log_of(frame, np.ones(frame.rows, dtype=np.bool_))
        collectives = RankPart(tuple(clocks_in(report)), log)
    return ReportPart(
        {kind: of_places for kind, of_places in units.items() if of_places},
        collectives,
        begun,
        circumstances_of(report, list(read.windows), read.iterations if "step" in units else {}),
        texts(_notes(read, units), report.kind),
    )


def _repeated(read: _Read) -> tuple[str, Mapping[int, tuple[Ints, Ints]]]:
    """What repeats in all processes, steps before anything else: its kind, and when by process."""
    pids = {pid for pid, _ in read.windows}
    for kind, of in (("step", read.steps), ("repetition", read.repetitions)):
        times_of = {pid: times for pid in pids if (times := of(pid)) is not None}
        if times_of.keys() == pids and pids:
            return kind, times_of
    return "", {}


def _with_calls(
    report: SystemReport,
    scope: Scope,
    work: Work,
    communicates: NDArray[np.bool_],
    ranges: Frame,
) -> _Read:
    """The work with its launches, and the iterations that follow from it."""
    followed = (
        followed_work(report, work, communicates, ends=True) if report.calls.recorded else None
    )
    calls, waiting = followed_calls(report, followed)
    iterations = _iterations(report, scope, work, calls)
    return _Read(report, scope, work, communicates, followed, waiting, ranges, iterations)


def _iterations(
    report: SystemReport, scope: Scope, work: Work, calls: CallsRead | None
) -> dict[int, Iterations]:
    if not work.kernels.rows and not work.graphs.rows:
        return {}
    processes = find_in_report(report, scope, work, calls)
    return {pid: process.iterations for pid, process in processes.items()}


def _gaps(read: _Read, steps: Mapping[int, tuple[Ints, Ints]]) -> dict[Place, IdleGaps]:
    """The idle intervals of each device from the first to the last of what is divided."""
    if read.followed is None:
        return {}
    hulls = {}
    for place, window in read.windows.items():
        times = steps.get(place[0])
        if not len(window):
            continue
        low, high = int(window.starts[0]), int(window.ends[-1])
        if times is not None:
            low, high = min(low, int(times[0][0])), max(high, int(times[1][-1]))
        hulls[place] = Spans.of(low, high)
    gaps = gaps_of(read.work, read.followed, read.waiting, hulls)
    return with_host_calls(read.report, gaps, read.ranges)


def _sets(read: _Read, place: Place) -> DeviceSets:
    kernels, operations, graphs = read.work
    mine = kernels.rows_at(pid=place[0], device=place[1])
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    compute, communication = mine & ~read.communicates, mine & read.communicates
    return DeviceSets(
        union(start[compute], end[compute]),
        spans_of(graphs.at(pid=place[0], device=place[1])),
        spans_of(operations.at(pid=place[0], device=place[1])),
        union(start[communication], end[communication]),
    )


def _steps(
    read: _Read, place: Place, gaps: IdleGaps | None, times: tuple[Ints, Ints], around: Around
) -> PlaceUnits:
    """The steps of one device."""
    rows = some_units(len(times[0]))
    parts = unit_times(times[0][rows], times[1][rows], _sets(read, place), gaps)
    kernels = read.work.kernels
    mine = np.flatnonzero(kernels.rows_at(pid=place[0], device=place[1]))
    began = kernels.ints("start_ns")[mine]
    owner = owners(*times, began)
    length = kernels.ints("end_ns")[mine] - began
    works = unit_works(kernels.labels("name").take(mine), owner, length, len(times[0]))
    typical = int(rows[typical_unit(parts.sum(axis=1))])
    works = around.placed(works, mine[owner == typical])
    in_ranges = ranges_in(around, place, *times) if place == _first(read, place) else None
    graphs = _graphs(read, place, *times)
    return PlaceUnits(place, len(times[0]), parts, works, graphs, in_ranges)


def _graphs(read: _Read, place: Place, start: Ints, end: Ints) -> UnitWorks:
    """The graphs traced as a whole of one device, by number, in the units that they begin in."""
    mine = read.graphs.at(pid=place[0], device=place[1])
    begun = mine.ints("start_ns")
    names = Labels.of(f"CUDA graph {number}" for number in mine.ints("graph_id").tolist())
    length = mine.ints("end_ns") - begun
    return unit_works(names, owners(start, end, begun), length, len(start))


def _window(
    read: _Read, place: Place, gaps: IdleGaps | None, narrowed: Frame, around: Around
) -> PlaceUnits:
    """The window of one device, as one unit."""
    window = read.windows[place]
    parts = unit_times(window.starts, window.ends, _sets(read, place), gaps).sum(axis=0)
    mine = narrowed.take(narrowed.rows_at(pid=place[0], device=place[1]))
    length = mine.ints("end_ns") - mine.ints("start_ns")
    works = unit_works(mine.labels("name"), np.zeros(mine.rows, dtype=np.int64), length, 1)
    whole = window.starts[:1], window.ends[-1:]
    in_ranges = ranges_in(around, place, *whole) if place == _first(read, place) else None
    return PlaceUnits(place, 1, parts[None, :], works, _graphs(read, place, *whole), in_ranges)


def _first(read: _Read, place: Place) -> Place:
    """The first device of a process: ranges are the process's own, and counted there."""
    return min(window for window in read.windows if window[0] == place[0])


def _begun(read: _Read, frame: Frame, steps: Mapping[int, tuple[Ints, Ints]]) -> Ints:
    """The step, or else the window, of its device that each collective began in; -1 for none."""
    began_in = np.full(frame.rows, -1, dtype=np.int64)
    for place, window in read.windows.items():
        times = steps.get(place[0])
        mine = np.flatnonzero(frame.rows_at(pid=place[0], device=place[1]))
        began = frame.ints("start_ns")[mine]
        if times is None:
            began_in[mine] = np.minimum(owners(window.starts, window.ends, began), 0)
        else:
            began_in[mine] = owners(*times, began)
    return began_in


def _notes(read: _Read, units: Mapping[str, Sequence[PlaceUnits]]) -> list[Said]:
    """What must be said of the report: why it has no iterations, and what is not known."""
    notes: list[Said] = []
    if read.followed is None and read.windows:
        notes.append("Idle time has no causes: the capture holds no CUDA API calls.")
    if "step" not in units:
        notes += [note for iterations in read.iterations.values() for note in iterations.notes][:1]
    return notes
