"""For how long ranks waited for each other in MPI, in which calls, for whom, and at what cost."""

from dataclasses import replace
from typing import TypeAlias

import numpy as np

from nsightpy.analysis.intervals import Spans, complement, spans_of, union_of
from nsightpy.analysis.mpi.waits import wait_rows, waits_of
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.operators.device_time import path_around, range_calls
from nsightpy.frames import GPU_FRAMES, Frame
from nsightpy.query import Parts, Question, Scope, SystemReport
from nsightpy.query.capture_advice import not_recorded
from nsightpy.query.rank_alignment import RankPart, align_parts, aligned_calls, once, rank_part
from nsightpy.results import Field, Table

FIELDS = (
    Field("rank", "id", importance=1),
    Field("state", "text", own=True, importance=2),
    Field("function", "text", importance=3),
    Field("range", "name", importance=5, width=14),
    Field("instances", heading="count", importance=8),
    Field("wait_ns", "time", importance=4),
    Field("longest_ns", "time", importance=9),
    Field("caused_by", "id", heading="waits for", importance=6),
    Field("gpu_idle_ns", "time", importance=7),
)
MPI_DOMAIN = "MPI"
NO_CALLS = not_recorded("The capture holds no MPI calls.", "-t mpi")
NO_PAIRS = (
    "No MPI operation was found on two ranks: waits show only where several ranks' calls are given."
)
# By process the time in MPI calls in which its devices did nothing.
IdleInCalls: TypeAlias = dict[int, Spans]


def question() -> Question[Table]:
    """Waits in MPI by rank, state, function and NVTX range (a/b, outermost first), most first."""
    return Question(_part_of, _table, identified=True)


def _table(parts: Parts[tuple[RankPart, IdleInCalls]]) -> Table:
    results = once(parts.ranks, [(report, part) for report, (part, _) in parts.results])
    idle = {
        (str(report.path), pid): spans
        for report, (_, by_process) in parts.results
        for pid, spans in by_process.items()
    }
    alignment = align_parts(results)
    mpi, starts, ends = aligned_calls(results, alignment)
    ranks = [clock.rank for clock in alignment.clocks]
    spans = [idle.get((clock.report, clock.pid)) for clock in alignment.clocks]
    if not mpi.matched.count:
        missing = NO_PAIRS if mpi.calls.rows else NO_CALLS
        return Table("ranks", FIELDS, (), notes=(missing, *alignment.notes))
    shown = mpi.calls.ints("shown") == 1
    waits = waits_of(mpi.matched, starts, ends, mpi.calls.labels("name"), shown)
    rows = [
        (ranks[clock], state, function, path or None, *figures, ranks[cause], idle_ns)
        for clock, state, function, path, *figures, cause, idle_ns in wait_rows(
            waits, mpi.clock, mpi.calls, spans
        )
        if parts.scope.includes(ranks[clock])
    ]
    return Table("ranks", FIELDS, tuple(rows), notes=alignment.notes)


def _part_of(report: SystemReport, scope: Scope) -> tuple[RankPart, IdleInCalls]:
    """The clocks, collectives and MPI calls of a report, with range and shown beside each call.

    Ranks are not narrowed: who was waited for may be any of them.
    """
    everybody = scope.everybody
    part = rank_part(report, everybody)
    calls = part.mpi
    shown = everybody.mask(report, calls).astype(np.int64)
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    ranges = ranges.take(~ranges.labels("domain").equals([MPI_DOMAIN]))
    around = path_around(range_calls(ranges), calls)
    part = replace(part, mpi=Frame({**calls, "range": around, "shown": shown}))
    return part, _idle_in(report, calls)


def _idle_in(report: SystemReport, calls: Frame) -> IdleInCalls:
    work = [report.frame(name, ("start_ns", "end_ns", "pid")) for name in GPU_FRAMES]
    idle = {}
    for pid in np.unique(calls.ints("pid")).tolist():
        frames = [frame.at(pid=pid) for frame in work]
        if any(frame.rows for frame in frames):
            inside = spans_of(calls.at(pid=pid))
            busy = union_of(map(spans_of, frames))
            low, high = int(inside.starts[0]), int(inside.ends[-1])
            idle[pid] = complement(busy, low, high) & inside
    return idle
