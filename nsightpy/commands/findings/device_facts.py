"""What the checks of `findings` need to know about a report's devices, gathered in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.collectives.log import NO_LOG
from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.findings.facts import DeviceFacts, TinyKernels
from nsightpy.analysis.findings.tiny import is_tiny, tiny_kernels
from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.idle.launch_waits import launch_latency, long_launches
from nsightpy.analysis.idle.queues import launch_bound
from nsightpy.analysis.idle.starvation import starvation
from nsightpy.analysis.intervals import NOTHING, Spans, difference, overlap_total, spans_of
from nsightpy.analysis.launches import NO_TIME, launch_lengths
from nsightpy.analysis.memory.copies import (
    INPUT,
    PAGEABLE,
    UNIFIED,
    CopyTime,
    copy_time,
    host_memory,
)
from nsightpy.commands.findings.rank_facts import RankEvidence
from nsightpy.frames import API_CALLS, Frame, Ints
from nsightpy.names import function_name
from nsightpy.query.device_time import RankedBudget, attributed
from nsightpy.query.idle_time import LaunchReader, ReportIdle, Work
from nsightpy.query.iteration_search import calls_of
from nsightpy.query.rank_alignment import RankPart, rank_part
from nsightpy.query.scope import Scope
from nsightpy.query.steady_state import steady_places
from nsightpy.readers.nsys.sync_calls import COLUMNS as SYNC_COLUMNS
from nsightpy.reports.system import SystemReport

NO_PART = RankPart((), NO_LOG)


@dataclass(frozen=True)
class Gathered:
    """What one report contributes to the facts."""

    ranks: RankEvidence
    unlaunched: int = 0
    has_ranges: bool = False


@dataclass(frozen=True)
class _Source:
    """One report's work, idle time and host events."""

    report: SystemReport
    work: Work
    communicates: NDArray[np.bool_]
    idle: ReportIdle
    syncs: Frame
    calls: Frame
    ranges: Frame | None
    call_ns: Ints
    kinds: NDArray[np.int32]


def gather(
    report: SystemReport,
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
    waiting = launches.waiting() if launches is not None and launches.waiting is not None else None
    calls = None
    if idle.followed is not None and waiting is not None:
        calls = calls_of(report, idle.followed.calls, waiting[0])
    steady = steady_places(report, scope, work, calls)
    if steady is not None:
        windows = {place: one.window for place, one in steady.items()}
        rows, idle = attributed(
            report, scope, work, launches, communication, windows, followed=idle.followed
        )
    syncs = long = Frame.empty(API_CALLS, SYNC_COLUMNS)
    if idle.gaps and waiting is not None:
        syncs, long = waiting
    communicates = is_communication(work.kernels.labels("name"), communication)
    lengths, kinds = _call_lengths(work, idle), group_by(work.kernels, ("pid", "name")).codes
    source = _Source(report, work, communicates, idle, syncs, long, ranges, lengths, kinds)
    unlaunched = 0
    if idle.followed is not None:
        launched = idle.followed.work.launch[: work.kernels.rows]
        unlaunched = int(np.count_nonzero(launched == NO_TIME))
    devices = {(row.pid, row.device): _device(source, row) for row in rows}
    if steady is not None:
        devices = {
            place: replace(one, iterations=steady[place].count) for place, one in devices.items()
        }
    part = NO_PART
    if communicates.any():
        part = rank_part(report, scope=scope, communication=communication)
    return Gathered(RankEvidence(part, devices), unlaunched, ranges is not None and ranges.rows > 0)


def _call_lengths(work: Work, idle: ReportIdle) -> Ints:
    """How long the call took that launched each row of the idle time's work, ns; 0 if unknown."""
    if idle.followed is None:
        return np.empty(0, dtype=np.int64)
    lengths = np.zeros(len(idle.followed.work), dtype=np.int64)
    lengths[: work.kernels.rows] = launch_lengths(work.kernels, idle.followed.calls)
    return lengths


def _device(source: _Source, row: RankedBudget) -> DeviceFacts:
    window = row.budget.window
    mine = Work(*(frame.at(pid=row.pid, device=row.device) for frame in source.work))
    kernels = spans_of(mine.kernels) | spans_of(mine.graphs)
    memory = host_memory(mine.operations)
    names = mine.operations.labels("operation")

    def copies(keep: Callable[[], np.ndarray]) -> CopyTime | None:
        chosen = mine.operations.take(keep())
        return copy_time(chosen, kernels, window) if chosen.rows else None

    facts = DeviceFacts(
        row.rank,
        row.device,
        row.budget,
        causes=row.idle.causes,
        input_copies=copies(lambda: names.equals(INPUT)),
        pageable=copies(lambda: memory.equals([PAGEABLE])),
        unified=copies(lambda: names.equals([n for n in names.values if n.startswith(UNIFIED)])),
    )
    return _with_idleness(
        source, row, facts, difference(window, kernels | spans_of(mine.operations))
    )


def _with_idleness(
    source: _Source, row: RankedBudget, facts: DeviceFacts, nothing: Spans
) -> DeviceFacts:
    """The facts with what the host did while the device did `nothing`, where that is known."""
    place, window, idle = (row.pid, row.device), row.budget.window, source.idle
    tiny = is_tiny(source.work.kernels, source.communicates)
    if place not in idle.gaps or idle.followed is None:
        return replace(facts, tiny=_tiny(source, place, tiny, NOTHING, window))
    gaps, ranges, work = idle.gaps[place], source.ranges, idle.followed.work
    bound = launch_bound(work, work.places.index(place), source.call_ns)
    long = long_launches(work, gaps, source.call_ns, source.kinds, nothing)
    if long is not None:
        long = replace(long, kernel=function_name(source.work.kernels.labels("name")[long.row]))
    starved = starvation(
        gaps,
        window,
        nothing,
        bound.stretches,
        source.syncs.at(pid=row.pid),
        None if ranges is None else ranges.at(pid=row.pid),
        source.calls.at(pid=row.pid),
        NOTHING if long is None else long.lost,
    )
    every = np.zeros(len(work), dtype=np.bool_)
    every[: len(tiny)] = tiny
    latency = launch_latency(gaps, every) & nothing
    return replace(
        facts,
        starvation=starved,
        launch_bound_kernels=bound.kernels,
        launch_bound_idle_ns=overlap_total(bound.stretches, nothing),
        long_launches=long,
        tiny=_tiny(source, place, tiny, latency if long is None else latency - long.lost, window),
    )


def _tiny(
    source: _Source,
    place: tuple[int, int],
    tiny: NDArray[np.bool_],
    latency: Spans,
    window: Spans,
) -> TinyKernels | None:
    kernels = source.work.kernels
    mine = (kernels.ints("pid") == place[0]) & (kernels.ints("device") == place[1])
    others = spans_of(source.work.operations.at(pid=place[0], device=place[1]))
    own = kernels if mine.all() else kernels.take(mine)
    return tiny_kernels(own, tiny[mine], others, latency, window)
