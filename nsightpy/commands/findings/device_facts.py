"""What the checks of `findings` need to know about a report's devices, gathered in one go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.collectives.log import NO_LOG
from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.findings.copy_use import copy_uses, streams_in_turn
from nsightpy.analysis.findings.facts import DeviceFacts, IdleFacts, Place
from nsightpy.analysis.findings.kernel_use import (
    Gpu,
    KernelUse,
    gpu_of_kernels,
    kernel_use,
    short_cost_ns,
)
from nsightpy.analysis.idle.gap_activity import with_host
from nsightpy.analysis.idle.host_activity import HostEvents, most_sampled
from nsightpy.analysis.idle.idle_gaps import IdleGaps
from nsightpy.analysis.intervals import Spans, measure_before, spans_of, union_of
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.time_budget import places_of
from nsightpy.commands.findings.host_facts import idle_facts, without_causes
from nsightpy.commands.findings.rank_facts import RankEvidence
from nsightpy.commands.findings.repetition_facts import repetition_of
from nsightpy.frames import API_CALLS, Frame, Ints, distinct
from nsightpy.query.device_gaps import (
    HOST_COLUMNS,
    SAMPLE_COLUMNS,
    host_events,
    launched_idle_time,
    short_modules,
)
from nsightpy.query.device_time import RankedBudget, attributed, rank_budgets
from nsightpy.query.idle_time import FollowedWork, LaunchReader, Work, followed_work, waits_of
from nsightpy.query.iteration_search import calls_of
from nsightpy.query.rank_alignment import RankPart, clocks_in, mpi_log, rank_part
from nsightpy.query.scope import Scope
from nsightpy.query.steady_state import Steady, steady_places
from nsightpy.reports.system import SystemReport
from nsightpy.side_by_side import both
from nsightpy.workers.resources import return_free_memory

CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name")
SHARED = (
    "{} processes share one {}: each is judged by itself, so what is idle for one may be used by "
    "another."
)
# The causes that time outside of CUDA counts for.
OUTSIDE = ("host-gap", "sync-drain", "launch-bound")
# What the host did is looked at from this part of a window on.
LEAST_SHARE = 0.01


@dataclass(frozen=True)
class Gathered:
    """What one report contributes to the facts."""

    ranks: RankEvidence
    budgets: Sequence[RankedBudget] = ()
    steady: Mapping[tuple[int, int], Steady] = field(default_factory=dict)
    kernels: int = 0
    unlaunched: int = 0
    has_ranges: bool = False
    has_calls: bool = False
    host: str = ""
    notes: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Source:
    """One report's work, idle time and host events, by place where that is meant."""

    report: SystemReport
    work: Work
    communicates: NDArray[np.bool_]
    launch: Ints | None
    first_calls: Mapping[int, int]
    waiting: Frame
    ranges: Frame | None
    gpus: Mapping[tuple[int, int], Gpu]
    steady: Mapping[tuple[int, int], Steady]


def gather(
    report: SystemReport,
    scope: Scope,
    work: Work,
    launches: LaunchReader | None,
    read_ranges: Callable[[], Frame | None] = lambda: None,
    communication: tuple[str, ...] = (),
    alone: bool = False,
    causes: bool = False,
) -> Gathered:
    """The facts about each device: over its steady iterations, or else over its whole window.

    `work` has names, kinds of memory and shapes, `launches` the ends and threads of calls;
    `read_ranges` gives the NVTX ranges. The collectives of a report that is `alone` are looked at
    where nothing hides a material part. The budgets tell the `causes` of idle time where that is
    wanted.
    """
    communicates = is_communication(work.kernels.labels("name"), communication)
    followed = followed_work(work, communicates, launches)
    work = _with_launches(work, followed)
    ranges = read_ranges()  # other calls are still read, too: now nothing else is left to do
    waits = None if launches is None or launches.waiting is None else launches.waiting()
    calls = None
    if followed is not None and waits is not None:
        calls = replace(calls_of(report, followed.calls, waits[0]), ranges=ranges)
    steady = steady_places(report, scope, work, calls) or {}
    return_free_memory()
    counted = {place: place_steady.window for place, place_steady in steady.items()} or None
    (rows, notes), idle = both(
        partial(_budgets, report, scope, work, followed, communication, counted, causes),
        partial(launched_idle_time, work, followed),
    )
    nothing = Frame.empty(API_CALLS, CALL_COLUMNS)
    waiting = nothing if waits is None else Frame.concatenate(waits).ordered()
    windows = {(row.pid, row.device): row.budget.window for row in rows}
    gaps = {} if idle is None else idle.gaps(waiting, windows)
    launch = None if followed is None else followed.work.launch[: work.kernels.rows]
    first_calls = _first_calls([waiting] if followed is None else [waiting, followed.calls])
    del followed, calls, idle  # what is needed of them is known; they are as large as the kernels
    return_free_memory()
    gpus = _gpus(report)
    source = _Source(report, work, communicates, launch, first_calls, waiting, ranges, gpus, steady)
    devices = _devices(source, gaps, rows)
    if communicates.any() and not (alone and _hidden(rows)):
        part = rank_part(report, scope=scope, communication=communication)
    else:
        part = RankPart(tuple(clocks_in(report)), NO_LOG)
        part = part if alone else replace(part, mpi=mpi_log(report))
    return Gathered(
        RankEvidence(part, devices),
        rows,
        steady,
        work.kernels.rows,
        0 if launch is None else int(np.count_nonzero(launch == NO_TIME)),
        ranges is not None and scope.narrow(report, ranges).rows > 0,
        launches is not None,
        "" if rows else _sampled(report),
        notes,
        _shared(report, list(windows)),
    )


def _with_launches(work: Work, followed: FollowedWork | None) -> Work:
    """The same with when kernels were launched, and with nothing that is held twice then."""
    if followed is None or work.graphs.rows:
        return work
    made, rows = followed.work, work.kernels.rows
    times = {"start_ns": made.start, "end_ns": made.end, "launch_ns": made.launch}
    ids = {name: work.kernels[name] for name in work.kernels if name != "correlation_id"}
    kernels = Frame({**ids, **{name: values[:rows] for name, values in times.items()}})
    return work._replace(kernels=kernels)


def _budgets(
    report: SystemReport,
    scope: Scope,
    work: Work,
    followed: FollowedWork | None,
    communication: tuple[str, ...],
    windows: Mapping[tuple[int, int], Spans] | None,
    causes: bool,
) -> tuple[Sequence[RankedBudget], tuple[str, ...]]:
    """The budgets of the devices, with the causes of idle time if wanted; what is said of those."""
    budgets = partial(
        rank_budgets, report, scope, *work, communication=communication, windows=windows
    )
    if not causes:
        return budgets(), ()
    rows, waits = both(budgets, partial(waits_of, report, followed))
    rows, idle = attributed(rows, followed, waits)
    return rows, idle.notes


def _hidden(rows: Sequence[RankedBudget]) -> bool:
    """Whether communication costs no device a material part of its window."""
    return all(
        row.budget.exposed_communication_ns < LEAST_SHARE * row.budget.window_ns for row in rows
    )


def _gpus(report: SystemReport) -> dict[tuple[int, int], Gpu]:
    """The GPU behind each place; by the device alone where processes are not distinguished."""
    devices = report.frame("devices")
    columns = (devices.ints(name).tolist() for name in ("pid", "device", "sm_count"))
    majors = devices.ints("compute_major").tolist()
    return {
        (pid, device): Gpu(sms, major, devices.labels("name")[row])
        for row, (pid, device, sms, major) in enumerate(zip(*columns, majors, strict=True))
    }


def _shared(report: SystemReport, places: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """What is said where several processes worked on one GPU."""
    devices = report.frame("devices")
    columns = (devices.ints("pid").tolist(), devices.ints("device").tolist())
    names, uuids = devices.labels("name"), devices.labels("uuid")
    gpus: dict[str, tuple[str, set[int]]] = {}
    for row, place in enumerate(zip(*columns, strict=True)):
        if place in places and uuids[row]:
            gpus.setdefault(uuids[row], (names[row], set()))[1].add(place[0])
    return tuple(SHARED.format(len(pids), name) for name, pids in gpus.values() if len(pids) > 1)


def _devices(
    source: _Source, gaps: dict[tuple[int, int], IdleGaps], rows: Sequence[RankedBudget]
) -> dict[tuple[int, int], DeviceFacts]:
    """What is known of each device; the `gaps` of one are taken out, as large as its kernels."""
    known = [
        (gaps[place].totals, LEAST_SHARE * row.budget.window_ns)
        for row in rows
        if (place := (row.pid, row.device)) in gaps
    ]
    lost = any(causes["host-gap"] >= least for causes, least in known)
    if not lost and any(
        sum(causes[cause] for cause in OUTSIDE) >= least for causes, least in known
    ):
        # shorter stretches matter where they are spent in MPI
        lost = source.report.frame("mpi_calls", HOST_COLUMNS).rows > 0
    events = host_events(source.report, source.ranges) if lost else {}
    facts = {}
    for row in rows:
        place = (row.pid, row.device)
        facts[place] = _device(source, row, gaps, events.get(row.pid))
    return facts


def _device(
    source: _Source,
    row: RankedBudget,
    gaps: dict[tuple[int, int], IdleGaps],
    events: HostEvents | None,
) -> DeviceFacts:
    place, window = (row.pid, row.device), row.budget.window
    gpu = source.gpus.get(place) or source.gpus.get((0, row.device)) or Gpu()
    rows = _rows_of_place(source.work.kernels, place)
    kernels, communicates = source.work.kernels, source.communicates
    mine = kernels if rows is None else kernels.take(rows)
    gpu = gpu_of_kernels(gpu, mine, source.report.tool_version)
    mask = communicates if rows is None else communicates[rows]
    calls = source.waiting.at(pid=place[0])

    operations, graphs = (
        frame.at(pid=place[0], device=place[1])
        for frame in (source.work.operations, source.work.graphs)
    )

    def idle_part() -> tuple[int, IdleFacts]:
        """What short kernels cost, and why the device was idle."""
        idle = gaps.pop(place, None)
        if idle is None:
            return 0, without_causes(window - union_of(map(spans_of, (mine, operations, graphs))))
        if events is not None:
            idle = with_host(idle, events)
        # rows of the gaps are those of all kernels
        elsewhere = np.ones(kernels.rows, dtype=np.bool_) if rows is not None else communicates
        if rows is not None:
            elsewhere[rows] = communicates[rows]
        short = short_cost_ns(kernels, elsewhere, window, idle)
        return short, idle_facts(idle, calls, window, events)

    def use() -> KernelUse:
        return kernel_use(mine, mask, window, gpu) if mine.rows and len(window) else KernelUse()

    (short, idle), used = both(idle_part, use)
    return DeviceFacts(
        row.rank,
        row.device,
        row.budget,
        gpu=gpu,
        idle=idle,
        kernels=used,
        short_cost_ns=short,
        in_graphs=_in_graphs(source, rows),
        # nothing can be copied beside the union of kernels
        copies=copy_uses(operations, spans_of(mine) | spans_of(graphs), window),
        exposed=_exposed(row, mine, mask, union_of([spans_of(operations), spans_of(graphs)])),
        opaque=_longest(graphs, window),
        in_turn=streams_in_turn(operations, mine, window) if _copies(row) else 0,
        repetition=repetition_of(
            (mine, operations, graphs),
            source.first_calls.get(place[0]),
            calls,
            source.steady.get(place),
            window,
        ),
    )


def _copies(row: RankedBudget) -> bool:
    """Whether copies alone, and kernels, are each a material part of the window."""
    budget = row.budget
    return min(budget.copy_only_ns, budget.compute_ns) >= LEAST_SHARE * budget.window_ns


def _longest(graphs: Frame, window: Spans) -> Place | None:
    """The graph launch with the most time inside a window; None where none has any."""
    start, end = graphs.ints("start_ns"), graphs.ints("end_ns")
    inside = measure_before(window, end) - measure_before(window, start)
    if not inside.any():
        return None
    row = int(np.argmax(inside))
    return Place(int(start[row]), int(end[row] - start[row]))


def _exposed(
    row: RankedBudget, kernels: Frame, communicates: NDArray[np.bool_], others: Spans
) -> Place | None:
    """The longest time of communication with nothing beside it; None where there is little."""
    budget = row.budget
    if budget.exposed_communication_ns < LEAST_SHARE * budget.window_ns:
        return None
    alone = spans_of(kernels.take(communicates)) - spans_of(kernels.take(~communicates)) - others
    alone = alone & budget.window
    if not len(alone):
        return None
    longest = int(np.argmax(alone.ends - alone.starts))
    start = int(alone.starts[longest])
    return Place(start, int(alone.ends[longest]) - start)


def _first_calls(calls: Sequence[Frame]) -> dict[int, int]:
    """When each process first called the API, as far as calls are known."""
    first: dict[int, int] = {}
    for frame in calls:
        pids, process = distinct(frame.ints("pid"))
        for place, pid in enumerate(pids.tolist()):
            begun = int(frame.ints("start_ns")[process == place].min())
            first[pid] = min(begun, first.get(pid, begun))
    return first


def _in_graphs(source: _Source, rows: NDArray[np.int64] | None) -> bool:
    """Whether most kernels were launched by the call that launched the one before, too."""
    if source.launch is None:
        return False
    launch = source.launch if rows is None else source.launch[rows]
    shared = (np.diff(launch) == 0) & (launch[1:] != NO_TIME)
    return 2 * int(np.count_nonzero(shared)) > len(launch)


def _sampled(report: SystemReport) -> str:
    """The functions in which a report's CPU samples were taken most often."""
    samples = short_modules(report.frame("cpu_samples", SAMPLE_COLUMNS))
    if not samples.rows:
        return ""
    at = samples.ints("time_ns")
    return most_sampled(Spans.of(int(at.min()), int(at.max()) + 1), samples)


def _rows_of_place(frame: Frame, place: tuple[int, int]) -> NDArray[np.int64] | None:
    """The rows of one place; None for all of them."""
    if frame.rows and places_of(frame) == [place]:
        return None
    return np.flatnonzero(frame.rows_at(pid=place[0], device=place[1]))
