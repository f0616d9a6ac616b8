"""gaps: why devices were idle: by cause and place, interval by interval, or by waiting call."""

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated, Any, TypeAlias

import numpy as np

from nsightpy.analysis.grouping import group_by, labelled
from nsightpy.analysis.intervals import Spans, overlap_total, spans_of
from nsightpy.analysis.nvtx.nesting import innermost
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.analysis.operators.device_time import NONE, range_calls
from nsightpy.analysis.ranking import tally_durations
from nsightpy.analysis.tally import Tally, merge, tally
from nsightpy.analysis.work_graph.host_activity import activity, kinds_of
from nsightpy.analysis.work_graph.idle_intervals import CAUSES, NO_ROW, IdleIntervals
from nsightpy.frames import Frame, Labels, constant
from nsightpy.names import function_name
from nsightpy.query import Communication, Option, Parts, Question, Scope, SystemReport, Top
from nsightpy.query.command import command
from nsightpy.query.device_time import NOT_ATTRIBUTED, IdleReport, idle_report
from nsightpy.query.request import without_calls
from nsightpy.query.splits import parse_splits
from nsightpy.results import Field, Said, Table, Value, rank_order
from nsightpy.results.keys import API, row_keys

INTERVALS = (
    Field("rank", "id", importance=4),
    Field("device", "id", importance=6),
    Field("start_ns", "moment", importance=2),
    Field("duration_ns", "time", importance=1),
    Field("share_of_window", "share", 4, heading="of window %", importance=8),
    Field("cause", "text", own=True, importance=3),
    Field("host_activity", "name", importance=5, width=36),
    Field("before", "text", importance=9),
    Field("after", "text", importance=7),
)
CALLS = (
    Field("rank", "id", importance=2),
    Field("device", "id", importance=3),
    Field("api", "name", heading="API function", importance=1),
    Field("calls", importance=4),
    Field("total_ns", "time", importance=5),
    Field("med_ns", "time", 1, heading="median"),
    Field("max_ns", "time", heading="longest", importance=8),
    Field("device_idle_ns", "time", heading="GPU idle", importance=6),
    Field("idle_share", "share", 4, heading="GPU idle %", importance=7),
)
SPLITS = {
    "cause": Field("cause", "text", own=True, importance=1),
    "place": Field("place", "name", heading="range or call", importance=6),
    "range": Field("range", "name", importance=7),
    "call": Field("call", "name", importance=8),
    "before": Field("before", "name", importance=9),
    "stream": Field("stream", "id", importance=10),
}
GROUPED = (
    Field("count", importance=5),
    Field("total_ns", "time", importance=2),
    Field("longest_ns", "time", importance=4),
    Field("share_of_idle", "share", 4, heading="of idle %", importance=3),
)
MOST_INTERVALS = 20
NEVER_IDLE = "The capture holds no stretch in which a device was idle."
# Rows in the report's own time by process, how many there are in all; whether there are calls.
_Longest: TypeAlias = tuple[list[tuple[int, tuple[Value, ...]]], int, bool]


@command(
    layouts=(INTERVALS, CALLS, GROUPED),
    more=tuple(SPLITS.values()),
    keys=row_keys(API, "api"),
    for_people={"by": "cause,place"},
)
def gaps(
    *,
    by: Annotated[
        str | Iterable[str],
        Option(
            "gap: the longest intervals; call: what waiting calls cost; or any of cause, range, "
            "call, before, stream and place (range, else call).  [a terminal: cause,place; "
            "files: gap]",
            "LIST",
        ),
    ] = "",
    top: Top = None,
    communication: Communication = (),
) -> Question[Table]:
    """The longest intervals in which a device did nothing, 20 or --top N, longest first; or idle
    time by what it was for. cause is what most of an interval counts for, as `nsightpy breakdown`
    has it: the id of a finding, queued (launched, and not begun) or unknown; empty without API
    calls. host_activity: what the thread that launched the next operation did meanwhile. before and
    after: the operations around it. Starts are moments on the clock that all ranks share.

    --by call: synchronisations, copies that block, frees by API function. device_idle is the part
    of the calls in which the device did nothing at all inside its window: the rest waited for work
    that was running. idle_share is its share of the window.
    """
    names = tuple(communication)
    splits = parse_splits(by or "gap", (*SPLITS, "gap"))
    if splits == ("call",):
        return Question(_call_costs, partial(_call_table, top=top), ranked=True)
    if splits != ("gap",):
        splits = parse_splits(splits, SPLITS)
        grouped = partial(_grouped, splits=splits, communication=names)
        return Question(grouped, partial(_group_table, splits=splits, top=top))
    count = MOST_INTERVALS if top is None else top or sys.maxsize
    longest = partial(_longest, count=count, communication=names)
    return Question(longest, partial(_interval_table, count=count), ranked=True, clock=True)


def _longest(
    report: SystemReport, scope: Scope, *, count: int, communication: tuple[str, ...]
) -> _Longest:
    """The longest intervals of each device."""
    idle = idle_report(report, scope, communication)
    launched, names = idle.launched, idle.launched.names.renamed(function_name)
    rows: list[tuple[int, tuple[Value, ...]]] = []
    for device, gaps in idle.devices():
        window, events = device.budget.window, idle.events[device.pid]
        for row in np.argsort(-gaps.length, kind="stable")[:count].tolist():
            length, around = int(gaps.length[row]), (int(gaps.before[row]), int(gaps.after[row]))
            cells = (
                *(device.rank, device.device, int(gaps.opened[row]), length, length / window.total),
                CAUSES[int(np.argmax(gaps.times[row]))] if len(launched.chain) else "",
                activity(launched, gaps, row, window, events),
                *("" if at == NO_ROW else names[at] for at in around),
            )
            rows.append((device.pid, cells))
    return rows, sum(len(gaps) for _, gaps in idle.devices()), report.calls.recorded


def _interval_table(parts: Parts[_Longest], *, count: int) -> Table:
    rows = [
        (*row[:2], parts.clock.moment(str(report.path), pid, int(row[2] or 0)), *row[3:])
        for report, (own, *_) in parts.results
        for pid, row in own
    ]
    rows.sort(key=lambda row: (-int(row[3] or 0), int(row[2] or 0), int(row[1] or 0)))
    every = sum(part[1] for part in parts.values)
    notes = _notes(rows, all(recorded or not own for own, _, recorded in parts.values))
    return Table("gaps", INTERVALS, tuple(rows[:count]), notes=notes, total_rows=every)


def _notes(rows: Sequence[object], recorded: bool) -> tuple[Said, ...]:
    """What is said of idle time where there is none, or of reports without calls."""
    return (NEVER_IDLE,) if not rows else () if recorded else (NOT_ATTRIBUTED,)


def _grouped(
    report: SystemReport, scope: Scope, *, splits: Sequence[str], communication: tuple[str, ...]
) -> tuple[Tally, bool]:
    """Idle time by what it was for; whether the capture holds calls."""
    idle = idle_report(report, scope, communication)
    tallies = []
    for row, device_gaps in idle.devices():
        times = device_gaps.times if "cause" in splits else device_gaps.length[:, None]
        interval, cause = np.nonzero(times)
        named = _named(report, idle, row.pid, device_gaps, splits)
        columns = {name: labels.take(interval) for name, labels in named.items()}
        causes = Labels(cause.astype(np.int32), CAUSES)
        groups = group_by(Frame({"cause": causes, **columns}), splits)
        tallies.append(tally(groups.codes, times[interval, cause], groups.keys))
    return merge(tallies), report.calls.recorded


def _named(
    report: SystemReport, idle: IdleReport, pid: int, gaps: IdleIntervals, splits: Sequence[str]
) -> dict[str, Labels]:
    """What each interval of a device is called, by split."""
    launched, named = idle.launched, {}
    if "before" in splits:
        named["before"] = labelled(launched.names.renamed(function_name), gaps.before)
    if "stream" in splits:
        numbers = tuple(str(stream[-1]) for stream in launched.streams)
        streams = Labels(launched.stream.astype(np.int32), numbers).merged()
        named["stream"] = labelled(streams, gaps.after)
    if {"range", "place"} & set(splits):
        # the innermost one open on the launching thread midway between idling and launching
        ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
        ranges = range_calls(kinds_of(Frame({**ranges, "name": folded(ranges.labels("name"))})))
        moments = {"start_ns": (gaps.opened + gaps.begun) // 2, "pid": constant(pid, len(gaps))}
        tid = launched.chain.tid(gaps.thread)
        holder = innermost(ranges, Frame({**moments, "tid": tid}))
        rows = np.where(holder == NONE, NO_ROW, holder)
        named["range"] = labelled(ranges.labels("name"), rows)
    if {"call", "place"} & set(splits):
        chain = launched.chain
        last = chain.last_begun(chain.notable, gaps.thread, gaps.closed)
        reaches = (last != NO_ROW) & (chain.end[last] > gaps.opened) if len(chain) else last >= 0
        named["call"] = labelled(chain.labels, np.where(reaches, last, NO_ROW))
    if "place" in splits:
        inner, calls = named["range"], named["call"]
        beyond, outside = len(inner.values), inner.equals([""])
        codes = np.where(outside, calls.codes + beyond, inner.codes).astype(np.int32)
        named["place"] = Labels(codes, (*inner.values, *calls.values)).merged()
    return named


def _group_table(
    parts: Parts[tuple[Tally, bool]], *, splits: Sequence[str], top: int | None
) -> Table:
    statistics = merge([part for part, _ in parts.values]).statistics()
    whole = int(statistics.total.sum())
    fields = (*(SPLITS[split] for split in splits), *GROUPED)
    rows = [
        (*(value or None for value in key), count, total, longest, total / whole)
        for *key, count, total, longest in statistics.rows("instances", "total", "maximum")
    ]
    notes = _notes(rows, all(recorded for _, recorded in parts.values))
    return Table("gaps", fields, tuple(rows), notes=notes).first(top)


def _call_costs(report: SystemReport, scope: Scope) -> list[tuple[Any, ...]] | None:
    """What waiting calls cost each device; None where the capture has no API calls."""
    if not report.calls.recorded:
        return None
    calls = report.calls.synchronising()
    rows: list[tuple[Any, ...]] = []
    for budget, device_gaps in idle_report(report, scope, ()).devices():
        window = budget.budget.window
        idle = Spans(device_gaps.opened, device_gaps.closed)
        for cost in sync_costs(calls.at(pid=budget.pid), window, idle):
            rows.append((budget.rank, budget.device, *cost, cost[-1] / window.total))
    return rows


def sync_costs(calls: Frame, window: Spans, idle: Spans) -> list[tuple[Any, ...]]:
    """What the calls of each function that touch a window cost: how many, their lengths in all, the
    median and the longest, and the idle time in them, in ns.

    Of two threads that wait at once the idle time counts once.
    """
    if not len(window):
        return []
    after, before = (calls.ints(name) for name in ("end_ns", "start_ns"))
    calls = calls.take((after > window.starts[0]) & (before < window.ends[-1]))
    names, inside = calls.labels("name"), idle & window
    spent = tally_durations(calls, ("name",)).statistics()
    return [
        (api, count, *lengths, overlap_total(spans_of(calls.take(names.equals([api]))), inside))
        for api, count, *lengths in spent.rows("instances", "total", "median", "maximum")
    ]


def _call_table(parts: Parts[list[tuple[Any, ...]] | None], *, top: int | None) -> Table:
    rows = [row for part in parts.values for row in part or ()]
    rows.sort(key=lambda row: (-row[7], -row[4], *map(rank_order, row[:2]), row[2]))
    silent = sum(part is None for part in parts.values)
    notes: tuple[Said, ...] = ()
    if silent:
        notes = (without_calls("waits", silent, len(parts.values)),)
    elif not rows:
        notes = ("The capture holds no call in which the host waits for the GPU.",)
    return Table("gaps", CALLS, tuple(rows), notes=notes).first(top)
