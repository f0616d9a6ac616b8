"""What the checks of `findings` need to know about a report's devices, gathered in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.findings.facts import DeviceFacts
from nsightpy.analysis.findings.outliers import SlowCollectives, slow_collectives
from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.idle.queues import LaunchBound, launch_bound
from nsightpy.analysis.idle.starvation import Starvation, starvation
from nsightpy.analysis.intervals import Spans, difference, overlap_total, union
from nsightpy.analysis.launches import NO_TIME, launch_lengths
from nsightpy.analysis.memory.copies import (
    INPUT,
    PAGEABLE,
    UNIFIED,
    CopyTime,
    copy_time,
    host_memory,
)
from nsightpy.analysis.time_budget import places_of
from nsightpy.frames import API_CALLS, Frame
from nsightpy.readers.nsys.sync_calls import COLUMNS as SYNC_COLUMNS
from nsightpy.readers.nsys.sync_calls import sync_calls
from nsightpy.reports import NsysReport
from nsightpy.verbs.breakdown import RankedBudget, attributed
from nsightpy.verbs.idleness import LaunchReader, ReportIdle, Work
from nsightpy.verbs.scope import Scope
from nsightpy.verbs.steady import steady_places

# Beyond so many, collectives are told apart by kernel only: reading their payloads takes seconds.
MOST_PAYLOADS = 20_000
_CLASS = ("operation", "bytes", "communicator")


@dataclass(frozen=True)
class Gathered:
    """What one report contributes to the facts."""

    devices: list[DeviceFacts]
    unlaunched: int = 0


@dataclass(frozen=True)
class _Source:
    """One report's work, idle time and host events."""

    report: NsysReport
    work: Work
    idle: ReportIdle
    syncs: Frame
    ranges: Frame | None


def gather(
    report: NsysReport,
    scope: Scope,
    work: Work,
    launches: LaunchReader | None,
    known: tuple[Sequence[RankedBudget], ReportIdle],
    ranges: Frame | None = None,
    communication: tuple[str, ...] = (),
) -> Gathered:
    """The facts about each device: over its steady iterations, or else over its whole window.

    `work` has names and kinds of memory, `launches` the ends of calls; `known` are the budgets
    and the idle time of the whole windows, `ranges` the NVTX ranges.
    """
    rows, idle = known
    steady = steady_places(report, scope, work)
    if steady is not None:
        windows = {place: one.window for place, one in steady.items()}
        rows, idle = attributed(report, scope, work, launches, communication, windows)
    syncs = sync_calls(report.export) if idle.gaps else Frame.empty(API_CALLS, SYNC_COLUMNS)
    source = _Source(report, work, idle, syncs, ranges)
    unlaunched = 0
    if idle.work is not None:
        unlaunched = int(np.count_nonzero(idle.work.launch[: work.kernels.rows] == NO_TIME))
    devices = [_device(source, row) for row in rows]
    if steady is not None:
        counts = [steady[row.pid, row.device].count for row in rows]
        devices = [
            replace(one, iterations=count) for one, count in zip(devices, counts, strict=True)
        ]
    return Gathered(devices, unlaunched)


def _device(source: _Source, row: RankedBudget) -> DeviceFacts:
    place, window = (row.pid, row.device), row.budget.window
    mine = Work(*(_of_place(frame, place) for frame in source.work))
    kernels = _united(mine.kernels) | _united(mine.graphs)
    starved, bound, bound_idle = _starvation(source, row, kernels, mine)
    memory = host_memory(mine.operations)
    names = mine.operations.labels("operation")

    def copies(keep: Callable[[], np.ndarray]) -> CopyTime | None:
        chosen = mine.operations.take(keep())
        return copy_time(chosen, kernels, window) if chosen.rows else None

    return DeviceFacts(
        row.rank,
        row.device,
        row.budget,
        causes=row.idle.causes,
        starvation=starved,
        launch_bound_kernels=bound.kernels if bound else 0,
        launch_bound_idle_ns=bound_idle,
        input_copies=copies(lambda: names.equals(INPUT)),
        pageable=copies(lambda: memory.equals([PAGEABLE])),
        unified=copies(lambda: names.equals([n for n in names.values if n.startswith(UNIFIED)])),
        slow_collectives=_slow(source.report, mine.kernels, place, window),
    )


def _starvation(
    source: _Source, row: RankedBudget, kernels: Spans, mine: Work
) -> tuple[Starvation | None, LaunchBound | None, int]:
    place, window, idle = (row.pid, row.device), row.budget.window, source.idle
    if place not in idle.gaps or idle.work is None or idle.calls is None:
        return None, None, 0
    nothing = difference(window, kernels | _united(mine.operations))
    lengths = np.zeros(len(idle.work), dtype=np.int64)
    lengths[: source.work.kernels.rows] = launch_lengths(source.work.kernels, idle.calls)
    bound = launch_bound(idle.work, idle.work.places.index(place), lengths)
    ranges = source.ranges
    found = starvation(
        idle.gaps[place],
        window,
        nothing,
        bound.stretches,
        source.syncs.take(source.syncs.ints("pid") == row.pid),
        None if ranges is None else ranges.take(ranges.ints("pid") == row.pid),
    )
    return found, bound, overlap_total(bound.stretches, nothing)


def _slow(
    report: NsysReport, kernels: Frame, place: tuple[int, int], window: Spans
) -> SlowCollectives | None:
    """Collectives beyond their size class; the class is the payload's, else the kernel's name."""
    own = kernels.take(is_communication(kernels.labels("name")))
    if not own.rows or not len(window):
        return None
    if own.rows <= MOST_PAYLOADS:
        wanted = ("start_ns", "end_ns", "pid", "device", *_CLASS)
        told = _of_place(report.frame("collectives", wanted), place)
        own, by = (told, _CLASS) if told.rows else (own, ("name",))
    else:
        by = ("name",)
    start, end = own.ints("start_ns"), own.ints("end_ns")
    inside = (start < window.ends[-1]) & (end > window.starts[0])
    groups = group_by(own.take(inside), by)
    return slow_collectives((end - start)[inside], groups.codes, groups.keys)


def _of_place(frame: Frame, place: tuple[int, int]) -> Frame:
    if frame.rows and places_of(frame) == [place]:
        return frame
    return frame.take((frame.ints("pid") == place[0]) & (frame.ints("device") == place[1]))


def _united(frame: Frame) -> Spans:
    return union(frame.ints("start_ns"), frame.ints("end_ns"))
