"""iterations: where a run repeats, what each iteration's time went to, which ones are slow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.iterations.budgets import (
    IterationBudgets,
    SlowIteration,
    Spread,
    iteration_budgets,
    slow_iterations,
    spread,
)
from nsightpy.analysis.iterations.steady import Iterations, find_iterations
from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.nvtx.membership import inside
from nsightpy.analysis.nvtx.projection import CALL_COLUMNS, RANGE_COLUMNS
from nsightpy.analysis.time_budget import activity, places_of
from nsightpy.frames import Frame, Labels
from nsightpy.names import function_name
from nsightpy.rank_set import Paths
from nsightpy.reports import NsysReport
from nsightpy.results import Field, Table, Value
from nsightpy.units import format_time
from nsightpy.verbs.asking.nvtx_scope import named_ranges
from nsightpy.verbs.asking.request import Common, Request
from nsightpy.verbs.asking.scope import Scope

FIELDS = (
    Field("rank", "id"),
    Field("iteration", "id"),
    Field("start_ns", "ns"),
    Field("duration_ns", "ns"),
    Field("busy_ns", "ns"),
    Field("compute_ns", "ns"),
    Field("exposed_communication_ns", "ns"),
    Field("idle_ns", "ns"),
    Field("source", "text"),
    Field("device", "id"),
    Field("phase", "text"),
)
RANKS_SAID = 4
_PLACED = ("start_ns", "end_ns", "pid", "device", "correlation_id")


@dataclass(frozen=True)
class DeviceIterations:
    """The iterations of one process, and what one of its devices did in each."""

    rank: int | None
    pid: int
    device: int
    found: Iterations
    budgets: IterationBudgets
    slow: tuple[SlowIteration, ...]


@dataclass(frozen=True)
class _Part:
    """What one report contributes; `why` are reasons for finding none, by rank."""

    devices: list[DeviceIterations]
    why: list[tuple[int | None, str]]


def iterations(
    reports: Paths,
    *,
    communication: Iterable[str] = (),
    **common: Unpack[Common],
) -> Table:
    """The iterations of every rank and device with their budget, in ns, and how they were found.

    An iteration lasts until host and GPU are done with it, and begins with the host's work on it
    unless the one before it is still running then. Sources: analysis.iterations. `nvtx` names the
    range whose instances are the iterations; where it has one instance only, iterations are
    looked for inside it. phase: warm-up, steady, or edge (cut off where the profiler began or
    stopped). Notes say the spread and what grew in slow iterations. `communication` adds regular
    expressions to the names that count as communication kernels.
    """
    request = Request.of(reports, **common)
    work = partial(_find, communication=tuple(communication), scope=request.scope)
    parts = request.map(work, ranked=True).values
    devices = sorted((one for part in parts for one in part.devices), key=_order)
    rows = tuple(row for one in devices for row in _rows(one))
    notes = [*_spread_notes(devices), *_slow_notes(devices)]
    why = [pair for part in parts for pair in part.why]
    said = dict.fromkeys(text for one in devices for text in one.found.notes)
    table = Table("iterations", FIELDS, rows)
    return request.finish(table, *notes, *said, *_reasons(why))


def find_in_report(
    report: NsysReport, scope: Scope | None = None
) -> dict[int, tuple[Iterations, Frame]]:
    """The iterations of each process of a report (those in scope), and its kernels.

    The kernels carry start_ns, end_ns, pid, device, correlation_id and name.
    """
    scope = scope or Scope()
    kernels = scope.within(report, report.frame("kernels", (*_PLACED, "name")))
    graphs = scope.within(report, _named_graphs(report))
    calls = report.frame("api_calls", (*CALL_COLUMNS, "name"))
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    named = None if scope.nvtx is None else named_ranges(report, scope.nvtx).ranges
    pids = np.unique(np.concatenate([kernels.ints("pid"), graphs.ints("pid")])).tolist()
    found = {}
    for pid in pids:
        own = [_of(frame, pid) for frame in (kernels, graphs, calls, ranges)]
        mine = None if named is None else _of(named, pid)
        if mine is not None and _once(mine):
            own = _launched_inside(own, mine)
            mine = None
        result = find_iterations(own[0], own[1], own[2], own[3], named=mine, text=scope.nvtx or "")
        found[pid] = (result, own[0])
    return found


def _find(report: NsysReport, *, communication: tuple[str, ...], scope: Scope) -> _Part:
    operations = scope.within(report, report.frame("memory_operations", _PLACED))
    graphs = scope.within(report, report.frame("graph_launches", _PLACED))
    all_kernels = scope.within(report, report.frame("kernels", (*_PLACED, "name")))
    devices, why = [], []
    for pid, (found, _) in find_in_report(report, scope).items():
        rank = report.rank_of(pid)[0]
        if not len(found):
            why += [(rank, note) for note in found.notes]
            continue
        own = [_of(frame, pid) for frame in (all_kernels, operations, graphs)]
        for _, device in sorted({place for frame in own for place in places_of(frame)}):
            kernels, copies, traces = (f.take(f.ints("device") == device) for f in own)
            is_comm = is_communication(kernels.labels("name"), communication)
            budgets = iteration_budgets(found, activity(kernels, is_comm, copies, traces))
            slow = tuple(slow_iterations(found, budgets, kernels))
            devices.append(DeviceIterations(rank, pid, device, found, budgets, slow))
    return _Part(devices, why)


def _named_graphs(report: NsysReport) -> Frame:
    """Graph launches traced as a whole, each graph under a name."""
    graphs = report.frame("graph_launches", (*_PLACED, "graph_id"))
    names = Labels.of(f"CUDA graph {number}" for number in graphs.ints("graph_id").tolist())
    return Frame({**{column: graphs[column] for column in _PLACED}, "name": names})


def _of(frame: Frame, pid: int) -> Frame:
    mine = frame.ints("pid") == pid
    return frame if mine.all() else frame.take(mine)


def _once(named: Frame) -> bool:
    """Whether no thread has more than one of the ranges."""
    return len(np.unique(named.ints("tid"))) == named.rows > 0


def _launched_inside(frames: list[Frame], named: Frame) -> list[Frame]:
    """Kernels, graphs, calls and ranges of one process while one of the ranges was open."""
    kernels, graphs, calls, ranges = frames
    low, high = int(named.ints("start_ns").min()), int(named.ints("end_ns").max())
    kept = []
    for frame in (kernels, graphs):
        call = launch_rows(frame, calls)
        start = calls.ints("start_ns")[call] if calls.rows else call
        kept.append(frame.take((call != NO_LAUNCH) & (start >= low) & (start <= high)))
    within = inside(ranges, named)
    for row in range(named.rows):
        same = [ranges.ints(c) == named.ints(c)[row] for c in ("start_ns", "end_ns", "tid")]
        within &= ~np.logical_and.reduce(same)
    return [kept[0], kept[1], calls, ranges.take(within)]


def _order(one: DeviceIterations) -> tuple[bool, int, int, int]:
    return (one.rank is None, one.rank or 0, one.pid, one.device)


def _rows(one: DeviceIterations) -> Iterable[tuple[Value, ...]]:
    figures = (
        one.found.start,
        one.found.duration,
        one.budgets.busy,
        one.budgets.compute,
        one.budgets.exposed_communication,
        one.budgets.idle,
    )
    for place, values in enumerate(zip(*(f.tolist() for f in figures), strict=True)):
        yield (one.rank, place, *values, one.found.source, one.device, one.found.phase[place])


def _who(one: DeviceIterations) -> str:
    return f"device {one.device}" if one.rank is None else f"rank {one.rank}"


def _spread_notes(devices: Sequence[DeviceIterations]) -> list[str]:
    """The spread of each rank's steady iterations; of all together when they are many."""
    alone = list({(one.rank, one.pid): one for one in reversed(devices)}.values())[::-1]
    spreads = [(one, found) for one in alone if (found := spread(one.found)) is not None]
    if len(spreads) > RANKS_SAID:
        medians = [found.median for _, found in spreads]
        counts = [found.count for _, found in spreads]
        text = (
            f"{len(spreads)} ranks, {min(counts)} to {max(counts)} steady iterations each: medians "
            f"{format_time(min(medians))} to {format_time(max(medians))}."
        )
        return [text]
    return [_spread_text(one, found) for one, found in spreads]


def _spread_text(one: DeviceIterations, found: Spread) -> str:
    others = [
        f"{one.found.phase.count(phase)} {phase}"
        for phase in ("warm-up", "edge")
        if phase in one.found.phase
    ]
    beside = f" (beside {', '.join(others)})" if others else ""
    kernels = int(np.median(one.found.kernels[one.found.steady]))
    each = f"{kernels:,} launch{'' if kernels == 1 else 'es'} each"
    return (
        f"{_who(one)}: {found.count} steady iterations{beside} by {one.found.source}, {each}: "
        f"median {format_time(found.median)}, min {format_time(found.minimum)}, max "
        f"{format_time(found.maximum)}, p95 {format_time(found.p95)}."
    )


def _slow_notes(devices: Sequence[DeviceIterations]) -> list[str]:
    """The slowest iterations of all, and what grew in them."""
    found = [(one, slow) for one in devices for slow in one.slow]
    found.sort(key=lambda pair: -pair[1].ratio)
    return [_slow_text(one, slow) for one, slow in found[:RANKS_SAID]]


def _slow_text(one: DeviceIterations, slow: SlowIteration) -> str:
    kernel = (
        f", most of it in {function_name(slow.kernel)} (+{format_time(slow.kernel_grew_ns)})"
        if slow.kernel and slow.kernel_grew_ns > slow.grew_ns / 2
        else ""
    )
    return (
        f"{_who(one)}, iteration {slow.iteration}: {format_time(slow.duration_ns)}, "
        f"{slow.ratio:.2f} x the median; {slow.part} grew by {format_time(slow.grew_ns)}{kernel}."
    )


def _reasons(why: Sequence[tuple[int | None, str]]) -> list[str]:
    """Why nothing was found, each reason once with the ranks it is about."""
    texts: dict[str, list[str]] = {}
    for rank, text in why:
        texts.setdefault(text, []).append("?" if rank is None else str(rank))
    return [
        text if len(why) == 1 else f"rank {', '.join(ranks)}: {text}"
        for text, ranks in texts.items()
    ]
