"""gaps: the longest idle intervals of each device, their cause, and what the host did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.idle.gap_activity import activity, others, with_host
from nsightpy.analysis.idle.gap_causes import ALL_CAUSES, IdleGaps
from nsightpy.analysis.idle.host_activity import HostEvents
from nsightpy.analysis.idle.idle_time import NO_ROW
from nsightpy.analysis.intervals import Spans
from nsightpy.frames import Frame, Labels
from nsightpy.names import function_name
from nsightpy.query.common_clock import common_clock
from nsightpy.query.device_gaps import MEMORY_COLUMNS, gaps_of, host_events
from nsightpy.query.device_time import rank_budgets, read_work
from nsightpy.query.idle_time import NO_CALLS, Work, followed_work
from nsightpy.query.iteration_search import waiting_calls
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Table, Value, fields_in
from nsightpy.units import format_time

FIELDS = (
    Field("rank", "id"),
    Field("device", "id"),
    Field("start_ns", "ns"),
    Field("duration_ns", "ns"),
    Field("share_of_window", "ratio", 4),
    Field("cause", "text", own=True),
    *fields_in("text", "host_activity", "before", "after"),
)
TOP = 20
# Under these names in the list of causes; others are not ids of findings.
_SAID = {"queued": "", "unknown": ""}


@dataclass(frozen=True)
class _Part:
    """What one report contributes: rows in its own time by process, how much there is in all."""

    rows: list[tuple[int, tuple[Value, ...]]]
    count: int
    idle_ns: int
    notes: tuple[str, ...] = ()


@command_function
def gaps(
    reports: Paths,
    *,
    top: int | None = None,
    communication: Iterable[str] = (),
    **common: Unpack[Common],
) -> Table:
    """The longest intervals in which a device did nothing, longest first: 20, or `top`; in ns.

    Starts are moments on the clock that all ranks share. cause is the id of the finding that most
    of the interval counts for (docs/findings.md), empty where nothing is known. host_activity: what
    the thread that launched the next operation did meanwhile. before and after: the operations
    around it.
    """
    top = top or TOP
    request = Request.of(reports, **common)
    work = partial(_longest, top=top, communication=tuple(communication), scope=request.scope)
    results = request.map(work, ranked=True).results
    clock = common_clock(request.ranks)
    parts = [part for _, part in results]
    placed = [
        (clock.moment(str(report.path), pid, int(row[2] or 0)), row)
        for report, part in results
        for pid, row in part.rows
    ]
    rows = sorted(((*row[:2], start, *row[3:]) for start, row in placed), key=_order)
    count = sum(part.count for part in parts)
    notes = [note for part in parts for note in part.notes]
    if count > len(rows[:top]):
        shown = sum(int(row[3] or 0) for row in rows[:top])
        idle = sum(part.idle_ns for part in parts)
        notes.append(
            f"The longest {len(rows[:top]):,} of {count:,} idle intervals: {format_time(shown)} of "
            f"{format_time(idle)} idle."
        )
    return request.finish(Table("gaps", FIELDS, tuple(rows[:top]), total_rows=count), *notes)


def _order(row: tuple[Value, ...]) -> tuple[int, int, int]:
    return (-int(row[3] or 0), int(row[2] or 0), int(row[1] or 0))


def _longest(
    report: SystemReport, *, top: int, communication: tuple[str, ...], scope: Scope
) -> _Part:
    work = read_work(report, scope, MEMORY_COLUMNS)
    communicates = is_communication(work.kernels.labels("name"), communication)
    followed = followed_work(report, work, communicates, ends=True, always=True)
    waiting = waiting_calls(report)
    budgets = rank_budgets(report, scope, *work, communication=communication)
    windows = {row.place: row.budget.window for row in budgets}
    gaps_by_place = gaps_of(work, followed, waiting, windows)
    events = host_events(report)
    names = _operations(work)
    rows: list[tuple[int, tuple[Value, ...]]] = []
    for row in budgets:
        place = row.place
        if place in gaps_by_place:
            mine = with_host(gaps_by_place[place], events[row.pid])
            chosen = np.argsort(-mine.length, kind="stable")[:top]
            calls = others(waiting.at(pid=row.pid))
            about = (row.rank, row.device, windows[place], names, events[row.pid], calls)
            rows += [(row.pid, cells) for cells in _rows(mine, chosen, *about)]
    count = sum(len(device_gaps) for device_gaps in gaps_by_place.values())
    idle_ns = sum(int(device_gaps.length.sum()) for device_gaps in gaps_by_place.values())
    return _Part(rows, count, idle_ns, (NO_CALLS,) if rows and not report.calls.recorded else ())


def _operations(work: Work) -> Labels:
    """The name of each operation, in the rows of the GPU work."""
    short = work.kernels.labels("name").renamed(function_name)
    operations = work.operations.labels("operation")
    codes = np.concatenate(
        [
            short.codes,
            operations.codes + len(short.values),
            np.full(work.graphs.rows, len(short.values) + len(operations.values), dtype=np.int32),
        ]
    )
    return Labels(codes.astype(np.int32), (*short.values, *operations.values, "CUDA graph"))


def _rows(
    gaps: IdleGaps,
    chosen: Sequence[int] | np.ndarray,
    rank: int | None,
    device: int,
    window: Spans,
    names: Labels,
    events: HostEvents,
    calls: Frame,
) -> list[tuple[Value, ...]]:
    rows: list[tuple[Value, ...]] = []
    for row in np.asarray(chosen).tolist():
        cause = ALL_CAUSES[int(np.argmax(gaps.causes[row]))]
        before, after = (
            "" if at == NO_ROW else names[at]
            for at in (int(gaps.before[row]), int(gaps.after[row]))
        )
        length = int(gaps.length[row])
        rows.append(
            (
                rank,
                device,
                int(gaps.opened[row]),
                length,
                length / window.total,
                _SAID.get(cause, cause),
                activity(gaps, row, window, events, calls),
                before,
                after,
            )
        )
    return rows
