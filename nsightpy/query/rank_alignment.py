"""Every report's part, put on one clock: that of the report of the first rank.

What `--from` and `--to` say, and the times that commands print about several reports, are moments
on this clock. One report alone keeps its own, which is the same thing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment, align
from nsightpy.analysis.clock_alignment.clocks import Clock, ClockFit
from nsightpy.analysis.clock_alignment.mpi_placement import MpiCalls, mpi_calls_of, no_calls
from nsightpy.analysis.collectives.log import CollectiveLog, log_of
from nsightpy.analysis.mpi.functions import KNOWN, is_one_of
from nsightpy.analysis.mpi.matching import CALL_COLUMNS
from nsightpy.analysis.work_graph.job_work import MEETING_COLUMNS
from nsightpy.frames import COLLECTIVES, CUDA_EVENTS, Frame, Ints, Labels, distinct
from nsightpy.query.scope import Scope
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.reports.system import SystemReport
from nsightpy.results import Value, rank_order
from nsightpy.units import group_text

T = TypeVar("T")
# A drift is some parts per million: each round leaves a millionth of the error before.
ROUNDS = 3
MOMENTS = ("start_ns", "end_ns", "time_ns")
UNKNOWN_RANK = -1


@dataclass(frozen=True)
class RankPart:
    """What travels of one report: its clocks, its collectives, and its MPI calls."""

    clocks: tuple[Clock, ...]
    log: CollectiveLog
    mpi: Frame = field(default_factory=no_calls)


def rank_part(report: SystemReport, scope: Scope) -> RankPart:
    """One report's part; ranks and devices of the scope are for what is shown, not for this.

    All collectives travel, since all serve the alignment; those of the scope's time and range are
    marked.
    """
    collectives = report.frame("collectives", COLLECTIVES.names)
    shown = scope.everybody.mask(report, collectives)
    return RankPart(tuple(clocks_in(report)), log_of(collectives, shown), mpi_log(report))


def mpi_log(report: SystemReport) -> Frame:
    """The MPI calls of a report that ranks can wait in, or that say what can be matched."""
    calls = report.frame("mpi_calls", CALL_COLUMNS)
    return calls.take(is_one_of(calls.labels("name"), KNOWN)) if calls.rows else calls


def align_parts(results: Iterable[tuple[SystemReport, RankPart]]) -> Alignment:
    """The alignment of reports whose ranks are known, clocks in the order of their ranks.

    Its clocks rest on all collectives; its instances are those that the question is about.
    """
    alignment = align(*_by_rank(results))
    return replace(alignment, instances=alignment.instances.about(alignment.ledger.shown))


def _by_rank(
    results: Iterable[tuple[SystemReport, RankPart]],
) -> tuple[list[Clock], list[CollectiveLog], list[Frame]]:
    clocks = [
        (replace(clock, rank=report.rank_of(clock.pid)[0]), part)
        for report, part in results
        for clock in part.clocks
    ]
    clocks.sort(key=lambda pair: rank_order(pair[0].rank))
    parts = [part for _, part in clocks]
    return [clock for clock, _ in clocks], [part.log for part in parts], [p.mpi for p in parts]


def _mpi_calls(results: Iterable[tuple[SystemReport, RankPart]]) -> tuple[MpiCalls, list[Clock]]:
    """The MPI calls of all clocks, and these."""
    clocks, _, logs = _by_rank(results)
    return mpi_calls_of(clocks, logs, [0] * len(clocks)), clocks


def aligned_calls(
    results: Iterable[tuple[SystemReport, RankPart]], alignment: Alignment
) -> tuple[MpiCalls, Ints, Ints]:
    """The MPI calls of all clocks of an alignment, and their starts and ends on the common one.

    Columns that the parts add stay.
    """
    mpi = _mpi_calls(results)[0]
    starts, ends = (np.array(mpi.calls.ints(name)) for name in ("start_ns", "end_ns"))
    for place, fit in enumerate(alignment.fits):
        rows = mpi.clock == place
        starts[rows], ends[rows] = fit.to_aligned(starts[rows]), fit.to_aligned(ends[rows])
    return mpi, starts, ends


def host_meetings(results: Iterable[tuple[SystemReport, RankPart]]) -> Frame:
    """The MPI calls of all reports that wait for each other (work_graph.job_work)."""
    mpi, clocks = _mpi_calls(results)
    matched, row = mpi.matched, mpi.matched.row
    report = Labels.of(clocks[clock].report for clock in mpi.clock[row].tolist())
    calls = (mpi.calls.ints("pid")[row], mpi.calls.ints("start_ns")[row])
    enters, exits = (mask.astype(np.int64) for mask in (matched.enters, matched.exits))
    columns = (*calls, matched.instance, enters, exits)
    return Frame({"report": report, **dict(zip(MEETING_COLUMNS, columns, strict=True))})


def alignment_of(rank_set: RankSet) -> Alignment:
    """The alignment of a rank set; reports that repeat another one are left out."""

    def made() -> Alignment:
        return align_parts(once(rank_set, rank_set.map(collective_part, identified=True).results))

    return rank_set.derived("alignment", made)


def once(
    rank_set: RankSet, results: Sequence[tuple[SystemReport, T]]
) -> list[tuple[SystemReport, T]]:
    """The results without those of reports that repeat another one's capture."""
    repeated = rank_set.repeated
    return [(report, part) for report, part in results if report.path not in repeated]


def collective_part(report: SystemReport, _scope: Scope | None = None) -> RankPart:
    """One report's part, whole, whatever the question is about."""
    return rank_part(report, Scope())


def clocks_in(report: SystemReport) -> list[Clock]:
    """What each process of a report says of its clock."""
    own = report.session
    times = (own.utc_ns, own.system_clock_ns, own.shift_ns)
    return [Clock(str(report.path), pid, None, own.host, *times, own.uuid) for pid in report.pids]


@dataclass(frozen=True)
class UnitNames:
    """How the units of an alignment are called: by rank where that distinguishes them."""

    names: tuple[Value, ...]

    @classmethod
    def of(cls, alignment: Alignment) -> UnitNames:
        clocks = [alignment.clocks[unit.clock] for unit in alignment.ledger.units]
        often = Counter(clock.rank for clock in clocks)
        devices = Counter(unit.clock for unit in alignment.ledger.units)
        names: list[Value] = []
        for unit, clock in zip(alignment.ledger.units, clocks, strict=True):
            whose = f"{Path(clock.report).stem}:{unit.pid}" if clock.rank is None else clock.rank
            if clock.rank is not None and often[clock.rank] > devices[unit.clock]:
                whose = f"{clock.rank}@{Path(clock.report).stem}"
            names.append(f"{whose}/{unit.device}" if devices[unit.clock] > 1 else whose)
        return cls(tuple(names))

    def group(self, units: Sequence[int], size: int = 0) -> str:
        """A group in short: 0-3,8; a question mark stands for members that nobody captured."""
        named = group_text([self.names[unit] for unit in units])
        return f"{named},?" if size > len(units) else named


@dataclass(frozen=True)
class CommonClock:
    """How each process's own time becomes that of the common clock, in ns; `fits` by (report, pid).

    A process that is not among the fits keeps its own time.
    """

    fits: Mapping[tuple[str, int], ClockFit] = field(default_factory=dict)
    zero_ns: int = 0
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, alignment: Alignment) -> CommonClock:
        """The clock of the first of all ranks that an alignment holds."""
        fits = {(fit.report, fit.pid): fit for fit in alignment.fits}
        begin = np.zeros(1, dtype=np.int64)
        zero = int(alignment.fits[0].to_aligned(begin)[0]) if fits else 0
        return cls(fits, zero, tuple(alignment.notes))

    def places(self, report: SystemReport) -> bool:
        """Whether a report's own time can be told in that of all; without any fits each has its."""
        return not self.fits or any(path == str(report.path) for path, _ in self.fits)

    def frame(self, report: SystemReport, rows: Frame, name: str) -> Frame:
        """Rows of a report's frame of that name, their times on this clock; rank (-1 where unknown)
        and report come first.

        Processes share the clock of their capture: what has none of its own, and what is of no
        process (samples of a GPU, of a network), takes the report's first.
        """
        path = str(report.path)
        columns = dict(_with_rank(report, rows))
        pids = [pid for fitted, pid in self.fits if fitted == path]
        for moment in MOMENTS if pids else ():
            if moment in rows:
                times = rows.ints(moment)
                moved = self.aligned(path, pids[0], times)
                for pid in pids[1:] if "pid" in rows else ():
                    own = np.flatnonzero(rows.ints("pid") == pid)
                    moved[own] = self.aligned(path, pid, times[own])
                if name == CUDA_EVENTS.name:  # one without a time has 0
                    moved[times == 0] = 0
                columns[moment] = moved
        return Frame(columns)

    def aligned(self, report: str, pid: int, times: Ints) -> Ints:
        """Times of a report on the common clock."""
        fit = self.fits.get((report, pid))
        return times if fit is None else fit.to_aligned(times) - self.zero_ns

    def moment(self, report: str, pid: int, time_ns: int) -> int:
        """One time of a report on the common clock."""
        return int(self.aligned(report, pid, np.asarray([time_ns], dtype=np.int64))[0])

    def own(self, report: str, time_ns: int) -> int:
        """A moment of the common clock in a report's own time: that of its first process."""
        pid = next((pid for path, pid in self.fits if path == report), None)
        if pid is None:
            return time_ns
        return int(self.own_times(report, pid, np.asarray([time_ns], dtype=np.int64))[0])

    def own_times(self, report: str, pid: int, times: Ints) -> Ints:
        """Moments of the common clock in the own time of a process."""
        moments = times
        for _ in range(ROUNDS):
            moments = moments + times - self.aligned(report, pid, moments)
        return moments


def common_clock(ranks: RankSet) -> CommonClock:
    """The common clock of a rank set; each report's own where there is but one, or no one job."""
    alone = len(ranks) < 2 or not ranks.one_job
    return CommonClock() if alone else CommonClock.of(alignment_of(ranks))


def _with_rank(report: SystemReport, frame: Frame) -> Frame:
    """Rows of a report's frame, before them rank and report.

    What belongs to no process is of the report's rank, where it has only one.
    """
    pids = frame.ints("pid") if "pid" in frame else np.zeros(frame.rows, dtype=np.int64)
    ranks = [report.rank_of(pid)[0] for pid in report.pids]
    whole = ranks[0] if len(ranks) == 1 else None
    values, codes = distinct(pids)
    ranks = [report.rank_of(pid)[0] if pid else whole for pid in values.tolist()]
    numbers = np.asarray([UNKNOWN_RANK if r is None else r for r in ranks], dtype=np.int64)
    path = Labels.constant(str(report.path), frame.rows)
    return Frame({"rank": numbers[codes], "report": path, **frame})
