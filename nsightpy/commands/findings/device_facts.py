"""What the checks of `findings` need to know about a report's devices, gathered in one go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.collectives.log import NO_LOG
from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.findings.copy_use import copy_uses
from nsightpy.analysis.findings.facts import (
    DeviceFacts,
    IdleFacts,
    Place,
    Repetition,
)
from nsightpy.analysis.findings.kernel_use import Gpu, kernel_use, short_cost_ns
from nsightpy.analysis.idle.host_activity import (
    HostEvents,
    most_in,
    most_sampled,
)
from nsightpy.analysis.idle.host_calls import ALLOCATION, MODULE, kinds_of_calls
from nsightpy.analysis.idle.idle_gaps import CAUSES, HOST_GAP, HOST_GAP_NS, QUEUED, IdleGaps
from nsightpy.analysis.intervals import Spans, spans_of, union
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.time_budget import places_of
from nsightpy.commands.findings.host_facts import longest_gap, with_host
from nsightpy.commands.findings.rank_facts import RankEvidence
from nsightpy.frames import API_CALLS, Frame
from nsightpy.query.device_gaps import (
    HOST_COLUMNS,
    SAMPLE_COLUMNS,
    gaps_of,
    host_events,
    short_modules,
)
from nsightpy.query.device_time import RankedBudget, attributed, rank_budgets
from nsightpy.query.idle_time import FollowedWork, LaunchReader, Work, followed_work
from nsightpy.query.iteration_search import calls_of
from nsightpy.query.rank_alignment import RankPart, clocks_in, mpi_log, rank_part
from nsightpy.query.scope import Scope
from nsightpy.query.steady_state import Steady, steady_places
from nsightpy.reports.system import SystemReport
from nsightpy.units import format_time

CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name")
# The causes that time outside of CUDA counts for.
_OUTSIDE = ("host-gap", "sync-drain", "launch-bound")
SHARED = (
    "{} processes share one {}: each is judged by itself, so what is idle for one may be used by "
    "another."
)
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
    followed: FollowedWork | None
    waiting: Frame
    ranges: Frame | None
    gaps: Mapping[tuple[int, int], IdleGaps]
    gpus: Mapping[tuple[int, int], Gpu]
    steady: Mapping[tuple[int, int], Steady]


def gather(
    report: SystemReport,
    scope: Scope,
    work: Work,
    launches: LaunchReader | None,
    ranges: Frame | None = None,
    communication: tuple[str, ...] = (),
    alone: bool = False,
    causes: bool = False,
) -> Gathered:
    """The facts about each device: over its steady iterations, or else over its whole window.

    `work` has names, kinds of memory and shapes, `launches` the ends and threads of calls;
    `ranges` are the NVTX ranges. The collectives of a report that is `alone` are looked at where
    nothing hides a material part. The budgets tell the `causes` of idle time where that is wanted.
    """
    communicates = is_communication(work.kernels.labels("name"), communication)
    followed = followed_work(work, communicates, launches)
    waits = None if launches is None or launches.waiting is None else launches.waiting()
    calls = None
    if followed is not None and waits is not None:
        calls = replace(calls_of(report, followed.calls, waits[0]), ranges=ranges)
    steady = steady_places(report, scope, work, calls) or {}
    counted = {place: one.window for place, one in steady.items()} or None
    rows, notes = _budgets(report, scope, work, followed, communication, counted, causes)
    waiting = Frame.empty(API_CALLS, CALL_COLUMNS)
    if waits is not None:
        waiting = Frame.concatenate(waits).ordered()
    windows = {(row.pid, row.device): row.budget.window for row in rows}
    source = _Source(
        report,
        work,
        communicates,
        followed,
        waiting,
        ranges,
        gaps_of(work, followed, waiting, windows),
        _gpus(report),
        steady,
    )
    devices = _devices(source, rows)
    part = RankPart(tuple(clocks_in(report)), NO_LOG)
    if not alone:
        part = replace(part, mpi=mpi_log(report))
    if communicates.any() and not (alone and _hidden(rows)):
        part = rank_part(report, scope=scope, communication=communication)
    return Gathered(
        RankEvidence(part, devices),
        rows,
        steady,
        work.kernels.rows,
        _unlaunched(followed, work),
        ranges is not None and ranges.rows > 0,
        launches is not None,
        "" if rows else _sampled(report),
        notes,
        _shared(report, list(windows)),
    )


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
    rows = rank_budgets(report, scope, *work, communication=communication, windows=windows)
    if not causes:
        return rows, ()
    rows, idle = attributed(report, rows, followed)
    return rows, idle.notes


def _unlaunched(followed: FollowedWork | None, work: Work) -> int:
    """Kernels without a recorded launch; 0 where launches were not followed."""
    if followed is None:
        return 0
    return int(np.count_nonzero(followed.work.launch[: work.kernels.rows] == NO_TIME))


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


def _devices(source: _Source, rows: Sequence[RankedBudget]) -> dict[tuple[int, int], DeviceFacts]:
    known = [
        (source.gaps[place].totals, LEAST_SHARE * row.budget.window_ns)
        for row in rows
        if (place := (row.pid, row.device)) in source.gaps
    ]
    lost = any(causes["host-gap"] >= least for causes, least in known)
    if not lost and any(sum(causes[one] for one in _OUTSIDE) >= least for causes, least in known):
        # shorter stretches matter where they are spent in MPI
        lost = source.report.frame("mpi_calls", HOST_COLUMNS).rows > 0
    events = host_events(source.report, source.ranges) if lost else {}
    return {(row.pid, row.device): _device(source, row, events.get(row.pid)) for row in rows}


def _device(source: _Source, row: RankedBudget, events: HostEvents | None) -> DeviceFacts:
    place, window = (row.pid, row.device), row.budget.window
    gpu = source.gpus.get(place) or source.gpus.get((0, row.device)) or Gpu()
    rows = _rows_of_place(source.work.kernels, place)
    kernels, communicates = source.work.kernels, source.communicates
    mine = kernels if rows is None else kernels.take(rows)
    mask = communicates if rows is None else communicates[rows]
    gaps = source.gaps.get(place)
    # the union of kernels that nothing can be copied beside
    graphs = source.work.graphs.at(pid=place[0], device=place[1])
    kernel_time = spans_of(mine) | spans_of(graphs)
    short = 0
    if gaps is not None:
        # rows of the gaps are those of all kernels
        elsewhere = np.ones(kernels.rows, dtype=np.bool_) if rows is not None else communicates
        if rows is not None:
            elsewhere[rows] = communicates[rows]
        short = short_cost_ns(kernels, elsewhere, window, gaps)
    return DeviceFacts(
        row.rank,
        row.device,
        row.budget,
        gpu=gpu,
        idle=None if gaps is None else _idle_facts(source, place, gaps, window, events),
        kernels=kernel_use(mine, mask, window, gpu) if mine.rows and len(window) else None,
        short_cost_ns=short,
        in_graphs=_in_graphs(source, rows),
        copies=copy_uses(
            source.work.operations.at(pid=place[0], device=place[1]), kernel_time, window
        ),
        repetition=_repetition(source, place, window),
    )


def _in_graphs(source: _Source, rows: NDArray[np.int64] | None) -> bool:
    """Whether most kernels were launched by the call that launched the one before, too."""
    followed = source.followed
    if followed is None:
        return False
    launch = followed.work.launch[: source.work.kernels.rows]
    launch = launch if rows is None else launch[rows]
    shared = (np.diff(launch) == 0) & (launch[1:] != NO_TIME)
    return 2 * int(np.count_nonzero(shared)) > len(launch)


def _idle_facts(
    source: _Source,
    place: tuple[int, int],
    gaps: IdleGaps,
    window: Spans,
    events: HostEvents | None,
) -> IdleFacts:
    causes = dict(gaps.totals)
    worst = {}
    for number, cause in enumerate(CAUSES):
        if len(gaps) and gaps.causes[:, number].any():
            row = int(np.argmax(gaps.causes[:, number]))
            worst[cause] = Place(int(gaps.opened[row]), int(gaps.length[row]))
    facts = IdleFacts(
        causes,
        worst,
        run_ahead_lost_ns=gaps.run_ahead_lost_ns,
        overdue_ns=int(gaps.causes[gaps.length >= HOST_GAP_NS, QUEUED].sum()),
        beside=_beside(gaps),
        drained=int(np.count_nonzero(gaps.drained)),
        longest=longest_gap(gaps, window, events),
        calls=_calls(source, place, gaps),
        blocked_by=_blocked_by(source, place, gaps),
    )
    if events is None or not any(causes[cause] for cause in _OUTSIDE):
        return facts
    return with_host(facts, gaps, window, events)


def _beside(gaps: IdleGaps) -> bool:
    """Whether most of the host gaps' time lies in intervals that are mostly something else."""
    causes = gaps.causes[np.flatnonzero(gaps.causes[:, HOST_GAP])]
    lost = causes[:, HOST_GAP]
    return bool(len(lost) and lost[causes.argmax(axis=1) != HOST_GAP].sum() > lost.sum() / 2)


def _calls(source: _Source, place: tuple[int, int], gaps: IdleGaps) -> dict[str, str]:
    """The function that most of the time of a cause was spent in, where one stands out."""
    found = {}
    calls = source.waiting.at(pid=place[0])
    allocates = kinds_of_calls(calls.labels("name")) == ALLOCATION
    for cause in ("sync-drain", "allocation", "first-launch"):
        rows = gaps.causes[:, CAUSES.index(cause)] > 0
        time = union(gaps.opened[rows], gaps.closed[rows])
        name, share = most_in(time, calls.take(allocates == (cause == "allocation")))
        if share > 0:
            found[cause] = name
    return found


def _blocked_by(source: _Source, place: tuple[int, int], gaps: IdleGaps) -> str:
    """The blocking call in which most of the host gaps opened; empty where most did not."""
    lost = gaps.causes[:, HOST_GAP]
    drained = gaps.drained & (lost > 0)
    if 2 * lost[drained].sum() <= lost.sum():
        return ""
    calls = source.waiting.at(pid=place[0])
    opened = gaps.opened[drained]
    return most_in(union(opened - 1, opened), calls)[0]


def _repetition(source: _Source, place: tuple[int, int], window: Spans) -> Repetition:
    frames = [frame.at(pid=place[0], device=place[1]) for frame in source.work]
    starts = [int(f.ints("start_ns").min()) for f in frames if f.rows]
    ends = [int(f.ints("end_ns").max()) for f in frames if f.rows]
    if not starts:
        return Repetition()
    first, last = min(starts), max(ends)
    called = [
        int(calls.ints("start_ns")[mine].min())
        for calls in (source.followed.calls if source.followed else None, source.waiting)
        if calls is not None and (mine := calls.ints("pid") == place[0]).any()
    ]
    lead = max(first - min(called), 0) if called else 0
    steady = source.steady.get(place)
    if steady is None:
        loading, call = _loading(source.waiting.at(pid=place[0]), first)
        return Repetition(
            lead_ns=lead, loading_ns=loading, loading_call=call, whole_ns=last - first
        )
    return Repetition(
        steady.count, outside=_outside(frames, window), lead_ns=lead, whole_ns=last - first
    )


def _loading(calls: Frame, before: int) -> tuple[int, str]:
    """How long before a moment code was first loaded or the context made, and by which call."""
    loads = calls.take(kinds_of_calls(calls.labels("name")) == MODULE).ordered()
    if not loads.rows or loads.ints("start_ns")[0] >= before:
        return 0, ""
    return before - int(loads.ints("start_ns")[0]), loads.labels("name")[0]


def _sampled(report: SystemReport) -> str:
    """The functions in which a report's CPU samples were taken most often."""
    samples = short_modules(report.frame("cpu_samples", SAMPLE_COLUMNS))
    if not samples.rows:
        return ""
    at = samples.ints("time_ns")
    return most_sampled(Spans.of(int(at.min()), int(at.max()) + 1), samples)


def _outside(frames: Sequence[Frame], window: Spans) -> str:
    """What a device did before its steady state, for people; empty where that is little."""
    if not len(window):
        return ""
    before = int(window.starts[0])

    def time(frame: Frame, keep: Callable[[Frame], NDArray[np.bool_]]) -> int:
        early = (frame.ints("start_ns") < before) & keep(frame)
        return union(frame.ints("start_ns")[early], frame.ints("end_ns")[early]).total

    kernels = time(frames[0], lambda frame: np.ones(frame.rows, dtype=np.bool_))
    copies = time(frames[1], lambda frame: np.ones(frame.rows, dtype=np.bool_))
    parts = [
        f"{format_time(length)} of {what}"
        for length, what in ((copies, "one-off copies"), (kernels, "kernels"))
        if length > LEAST_SHARE * window.total
    ]
    return f"before it: {' and '.join(parts)}" if parts else ""


def _rows_of_place(frame: Frame, place: tuple[int, int]) -> NDArray[np.int64] | None:
    """The rows of one place; None for all of them."""
    if frame.rows and places_of(frame) == [place]:
        return None
    return np.flatnonzero((frame.ints("pid") == place[0]) & (frame.ints("device") == place[1]))
