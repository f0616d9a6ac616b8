"""nvtx: code ranges by host time and by the GPU time of what they launched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, Unpack

import numpy as np

from nsightpy.analysis.nvtx.attribution import NO_THREAD, as_launched_by, waiting_threads
from nsightpy.analysis.nvtx.membership import inside
from nsightpy.analysis.nvtx.nesting import SEPARATOR, depth_first
from nsightpy.analysis.nvtx.projection import (
    CALL_COLUMNS,
    OPERATION_COLUMNS,
    RANGE_COLUMNS,
    Launched,
    LaunchOrder,
    Projection,
    launched,
    project,
)
from nsightpy.analysis.nvtx.ranges import RangeTallies, merged, range_tallies
from nsightpy.analysis.tally import Key
from nsightpy.frames import API_CALLS, GPU_FRAMES, Frame, Ints, is_constant
from nsightpy.query.capture_advice import not_recorded
from nsightpy.query.request import Common, Request, without_launch_call
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Table, Value
from nsightpy.units import counted, format_time

FIELDS = (
    Field("range", "text"),
    Field("domain", "text"),
    Field("style", "text", own=True),
    Field("instances"),
    Field("total_range_ns", "ns"),
    Field("total_projected_ns", "ns"),
    Field("projected_med_ns", "ns", 1),
    Field("gpu_ops"),
    Field("share_of_busy", "ratio", 4),
    Field("attributed_ns", "ns"),
    Field("attributed_ops"),
)
NO_CALLS = Frame.empty(API_CALLS, CALL_COLUMNS)
NOT_RECORDED = not_recorded("No CUDA API calls were recorded: what a range launched is not known.")


@command_function
def nvtx(
    reports: Paths,
    *,
    tree: bool = False,
    fold: bool = False,
    top: int | None = None,
    **common: Unpack[Common],
) -> Table:
    """NVTX ranges over all reports, most projected GPU time first; times in ns.

    An operation belongs to a range when its launch call lies inside it on the same thread; an
    instance's projected interval is [first start, last end] of its operations (nsys
    nvtx_gpu_proj_sum). share_of_busy: for how long any operation of the range ran, its own or
    attributed, of the time in which any operation ran. With `tree` a range is its path a/b/c,
    outer ranges first. With `fold` ranges that differ in numbers only are one row: layer * for
    layer 0 and layer 1.

    attributed: what other threads launched while the range's own thread waited, a framework's
    backward pass for instance, and for how long any of it ran; of the other columns it is in
    share_of_busy alone.
    """
    request = Request.of(reports, **common)
    work = partial(_tallies, tree=tree, fold=fold, scope=request.scope)
    parts = request.map(work).values
    tallied = merged([part.tallies for part in parts])
    known = any(part.known for part in parts)
    rows = _rows(tallied, known)
    if tree:  # those inside one parent by host time
        hosts = {key: -int(row[1] or 0) for key, row in rows.items()}
        ordered = list(depth_first(rows, lambda key: (hosts.get(key, 0), *key)))
    else:
        ordered = sorted(rows, key=partial(_by_gpu_time, rows))
    names = _shown_names(ordered, tallied.members, tree=tree)
    shown = tuple((names[key[0]], *key[1:], *rows[key]) for key in ordered)
    outside = _outside_note(parts) if known else []
    notes = [*_folded_note(tallied), *_notes(tallied, known)]
    return request.finish(Table("nvtx", FIELDS, shown).first(top), *notes, *outside)


def _shown_names(
    keys: Sequence[Key], members: Mapping[str, frozenset[str]], *, tree: bool
) -> dict[Value, str]:
    """What ranges or paths (outer ones first) are called; what was folded says how many it is."""
    shown: dict[Value, str] = {}
    for name, *_ in keys:
        above, inner, part = str(name).rpartition(SEPARATOR)
        alone = members.get(str(name), ())
        if len(alone) == 1:
            part = next(iter(alone)).rpartition(SEPARATOR)[2]
        elif alone and not tree:
            part += f" ({len(alone):,} names)"
        shown[name] = f"{shown.get(above, above)}/{part}" if inner else part
    return shown


def _folded_note(tallied: RangeTallies) -> list[str]:
    """That rows stand for several ranges."""
    several = sum(len(those) > 1 for those in tallied.members.values())
    if not several:
        return []
    rows = counted(several, "row stands", "rows stand")
    return [f"{rows} for ranges that differ in numbers only, * for a number: --unfold lists them."]


# Figures by (range, domain, style).
Rows: TypeAlias = dict[Key, tuple[Value, ...]]


@dataclass(frozen=True)
class _Part:
    """What one report contributes; work is the sum of its operations' durations, in ns."""

    tallies: RangeTallies
    known: bool
    outside_ns: int
    work_ns: int


def _tallies(report: SystemReport, *, tree: bool, fold: bool, scope: Scope) -> _Part:
    frames = (report.frame(name, OPERATION_COLUMNS) for name in GPU_FRAMES)
    operations = _together([scope.narrow(report, frame) for frame in frames])
    whole = report.frame("nvtx_ranges", RANGE_COLUMNS)
    ranges = scope.narrow(report, whole)
    parts, known, outside_ns = _projected(report, operations, whole, ranges)
    work_ns = int((operations.ints("end_ns") - operations.ints("start_ns")).sum())
    tallies = range_tallies(ranges, operations, *parts[0], *parts[1:], tree=tree, fold=fold)
    return _Part(tallies, known, outside_ns, work_ns)


def _projected(
    report: SystemReport, operations: Frame, whole: Frame, ranges: Frame
) -> tuple[list[tuple[LaunchOrder, Projection]], bool, int]:
    """Where the ranges are on the GPU, by the calls in them, and by those that threads waited for.

    Whether calls were recorded, and the work outside of all ranges in ns; the calls end with this.
    """
    recorded = _launching(report, operations)
    known = recorded is not None or not operations.rows
    calls, done = recorded or (NO_CALLS, launched(operations, NO_CALLS))
    waiting = waiting_threads(calls, whole)
    parts = [(done.order, project(ranges, done))]
    if not is_constant(waiting) and (waited := as_launched_by(calls, waiting)).rows:
        theirs = launched(operations, waited)
        parts.append((theirs.order, project(ranges, theirs)))
    return parts, known, _outside_ns(ranges, operations, calls, waiting, *parts[0])


def _outside_ns(
    ranges: Frame,
    operations: Frame,
    calls: Frame,
    waiting: Ints,
    order: LaunchOrder,
    projected: Projection,
) -> int:
    """The work that calls launched which no range holds and no thread waited for, in ns."""
    bare = ~projected.launched(len(order))
    if bare.any():  # a call inside another one may be in a range alone
        callers = order.call[bare]
        bare[bare] = (waiting[callers] == NO_THREAD) & ~inside(calls.take(callers), ranges)
    rows = order.rows[np.repeat(bare, np.diff(order.first))]
    return int((operations.ints("end_ns")[rows] - operations.ints("start_ns")[rows]).sum())


def _outside_note(parts: Sequence[_Part]) -> list[str]:
    """How much of the work was launched inside no range."""
    outside, work = sum(part.outside_ns for part in parts), sum(part.work_ns for part in parts)
    if not outside:
        return []
    share = 100 * outside / work
    text = (
        f"{format_time(outside)} of {format_time(work)} of GPU work ({share:.3g} %) was launched "
        "inside no range and is attributed to none."
    )
    return [text]


def _together(frames: list[Frame]) -> Frame:
    filled = [frame for frame in frames if frame.rows] or frames[:1]
    return Frame.concatenate(filled)


def launching_calls(report: SystemReport, operations: Frame) -> Frame | None:
    """The calls among which are those that launched the operations; None without any recorded."""
    launching = _launching(report, operations)
    return None if launching is None else launching[0]


def _launching(report: SystemReport, operations: Frame) -> tuple[Frame, Launched] | None:
    """The same calls, and what each launched.

    Calls that usually launch something are read first, the others only where that is not enough.
    """
    if not report.calls.recorded:
        return None
    calls = report.calls.launching(whole=True)
    done = launched(operations, calls)
    if len(done.rows) < operations.rows:
        others = report.calls.launching(others=True, whole=True)
        calls = Frame.concatenate([calls, others.select(calls)]).ordered()
        done = launched(operations, calls)
    return calls, done


def _rows(tallied: RangeTallies, known: bool) -> Rows:
    """The figures by (range, domain, style); None where no calls show what a range launched."""
    projected = tallied.projected.statistics()
    times: dict[Key, tuple[int, float]] = {
        key: (int(projected.total[group]), float(projected.median[group]))
        for group, key in enumerate(projected.keys)
    }
    ranges = tallied.ranges.statistics()
    rows: Rows = {}
    for group, key in enumerate(ranges.keys):
        total, median = times.get(key, (0, None))
        busy, whole = tallied.busy_ns[key], tallied.whole_busy_ns
        share = busy / whole if whole else None
        gpu: tuple[Value, ...] = (total, median, tallied.operations[key], share)
        host = (int(ranges.instances[group]), int(ranges.total[group]))
        waited = (tallied.attributed_ns[key], tallied.attributed[key])
        rows[tuple(map(str, key))] = (
            *host,
            *(gpu if known else (None,) * 4),
            *(waited if known else (None,) * 2),
        )
    return rows


def _by_gpu_time(rows: Rows, key: Key) -> tuple[Value, ...]:
    _, host, gpu, *_, attributed, _ = rows[key]
    return (-int(gpu or 0) - int(attributed or 0), -int(host or 0), *key)


def _notes(tallied: RangeTallies, known: bool) -> list[str]:
    notes: list[str] = []
    if not known:
        notes.append(NOT_RECORDED)
    elif tallied.unlaunched:
        notes.append(without_launch_call(f"{tallied.unlaunched:,} GPU operations", "in no range"))
    if tallied.crossing:
        notes.append(
            f"{tallied.crossing:,} ranges end on another thread: "
            "they are not projected onto the GPU."
        )
    return notes
