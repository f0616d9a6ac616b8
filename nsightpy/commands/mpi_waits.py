"""mpi-waits: for how long ranks waited for each other in MPI, where, for whom, and at what cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.clock_alignment.clocks import MPI
from nsightpy.analysis.graphs.capture import open_at
from nsightpy.analysis.intervals import Spans, complement, spans_of, union_of
from nsightpy.analysis.mpi import functions
from nsightpy.analysis.mpi.functions import is_one_of
from nsightpy.analysis.mpi.waits import WaitRow, Waits, wait_rows, waits_of
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.operators.modules import range_calls
from nsightpy.frames import GPU_FRAMES, ColumnData, Frame, Labels
from nsightpy.query.capture_advice import not_recorded
from nsightpy.query.rank_alignment import (
    AlignedCalls,
    RankPart,
    align_parts,
    aligned_calls,
    once,
    rank_part,
)
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Table, Value
from nsightpy.units import format_time

FIELDS = (
    Field("rank", "id"),
    Field("state", "text", own=True),
    Field("function", "text"),
    Field("range", "text"),
    Field("instances"),
    Field("wait_ns", "ns"),
    Field("longest_ns", "ns"),
    Field("caused_by", "id"),
    Field("gpu_idle_ns", "ns"),
)
MPI_DOMAIN = "MPI"
NO_CALLS = not_recorded("The capture holds no MPI calls.", "-t mpi")
NO_PAIRS = (
    "No MPI operation was found on two ranks: waits show only where several ranks' calls are given."
)
NO_ROOTS = (
    "These captures say neither the roots of collectives nor the ranks of messages: of those the "
    "waits are not known (nsys 2022.3 and later record them)."
)


@dataclass(frozen=True)
class _Part:
    """What one report contributes; its MPI calls have range and shown beside, `idle` is by
    process the time in MPI calls in which its devices did nothing."""

    part: RankPart
    idle: dict[int, Spans]


@command_function
def mpi_waits(reports: Paths, *, top: int | None = None, **common: Unpack[Common]) -> Table:
    """Waits in MPI by rank, state, function and NVTX range (a/b, outermost first), most first; ns.

    late sender: in a receive before its send began; late receiver: in a blocking send before its
    receive began; wait at barrier, at n-to-n: until the last rank came; late broadcast: for the
    root; early reduce: the root, until the last rank came. caused_by: the rank that most of it was
    waited for. gpu_idle: for how long no device of the process did anything in these waits; empty
    without GPU work.
    """
    request = Request.of(reports, **common)
    mapped = request.map(partial(_part_of, scope=request.scope), identified=True)
    kept = once(request.ranks, [(report, part.part) for report, part in mapped.results])
    idle = {
        (str(report.path), pid): spans
        for report, part in mapped.results
        for pid, spans in part.idle.items()
    }
    alignment = align_parts(kept)
    aligned = aligned_calls(kept, alignment)
    waits = _rows(alignment, aligned, idle)
    wanted = request.scope.ranks
    rows = [
        _values(row, alignment)
        for row in waits
        if wanted is None or alignment.clocks[row.clock].rank in wanted
    ]
    notes = _notes(alignment, aligned)
    return request.finish(Table("mpi-waits", FIELDS, tuple(rows)).first(top), *notes)


def _part_of(report: SystemReport, *, scope: Scope) -> _Part:
    """The clocks, collectives and MPI calls of a report, with what was open around each."""
    # who was waited for is not narrowed
    everybody = scope.everybody
    part = rank_part(report, scope=everybody)
    calls = part.mpi
    if not calls.rows:
        nothing = np.empty(0, dtype=np.int64)
        none: dict[str, ColumnData] = {"range": Labels.constant("", 0), "shown": nothing}
        return _Part(replace(part, mpi=Frame({**calls, **none})), {})
    numbered = Frame({**calls, "row": np.arange(calls.rows)})
    shown = np.zeros(calls.rows, dtype=np.int64)
    shown[everybody.narrow(report, numbered).ints("row")] = 1
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    ranges = ranges.take(~ranges.labels("domain").equals([MPI_DOMAIN]))
    around = open_at(calls, range_calls(ranges))
    part = replace(part, mpi=Frame({**calls, "range": around, "shown": shown}))
    return _Part(part, _idle_in(report, calls))


def _idle_in(report: SystemReport, calls: Frame) -> dict[int, Spans]:
    """By process the time inside of MPI calls in which no device of it did anything."""
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


def _rows(
    alignment: Alignment, aligned: AlignedCalls, idle: dict[tuple[str, int], Spans]
) -> list[WaitRow]:
    calls = aligned.matching.calls
    if not calls.rows:
        return []
    waits = waits_of(aligned.matching.matched, aligned.starts, aligned.ends, calls.labels("name"))
    kept = calls.ints("shown")[waits.row] == 1
    waits = Waits(*(getattr(waits, name)[kept] for name in ("state", "row", "cause", "lasted")))
    spans = [idle.get((clock.report, clock.pid)) for clock in alignment.clocks]
    return wait_rows(waits, aligned.matching.clock, calls, calls.ints("start_ns"), spans)


def _values(row: WaitRow, alignment: Alignment) -> tuple[Value, ...]:
    ranks = [alignment.clocks[place].rank for place in (row.clock, row.cause)]
    times = (row.waits, row.wait_ns, row.longest_ns)
    return (ranks[0], row.state, row.function, row.path or None, *times, ranks[1], row.idle_ns)


def _notes(alignment: Alignment, aligned: AlignedCalls) -> Sequence[str]:
    calls = aligned.matching.calls
    if not calls.rows:
        return [NO_CALLS]
    notes = list(alignment.notes)
    if not aligned.matching.matched.count:
        return [NO_PAIRS, *notes]
    directed = functions.SENDS | functions.RECEIVES | functions.FROM_ROOT | functions.TO_ROOT
    named = is_one_of(calls.labels("name"), directed)
    if named.any() and not (calls.ints("peer")[named] >= 0).any():
        notes.insert(0, NO_ROOTS)
    errors = [
        fit.residual_p95_ns
        for fit in alignment.fits
        if fit.method == MPI and fit.residual_p95_ns is not None
    ]
    if errors:
        widest = format_time(round(max(errors)))
        notes.append(f"Single waits shorter than {widest} are within the error of the clocks.")
    return notes
