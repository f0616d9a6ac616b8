"""iterations: where a run repeats, what each iteration's time went to, which ones are slow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
from nsightpy.analysis.iterations.steady import Iterations
from nsightpy.analysis.time_budget import activity, places_of
from nsightpy.frames import Frame, Ints
from nsightpy.names import brief_kernel
from nsightpy.query.common_clock import CommonClock, common_clock
from nsightpy.query.iteration_filter import places_in
from nsightpy.query.rank_alignment import group_text
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.query.steady_state import find_in_report
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Table, Value, fields_in, rank_order
from nsightpy.results.abstention import reworded
from nsightpy.units import counted, format_time

FIELDS = (
    Field("rank", "id"),
    Field("iteration", "id"),
    *fields_in("ns", "start_ns", "duration_ns", "busy_ns"),
    *fields_in("ns", "compute_ns", "exposed_communication_ns", "idle_ns"),
    Field("source", "text"),
    Field("device", "id"),
    Field("phase", "text", own=True),
)
RANKS_SAID = 4
OTHERS_SAID = 2


@dataclass(frozen=True)
class DeviceIterations:
    """The iterations of one process, and what one of its devices did in each."""

    rank: int | None
    pid: int
    device: int
    iterations: Iterations
    budgets: IterationBudgets
    slow: tuple[SlowIteration, ...]
    shown: Ints


@dataclass(frozen=True)
class _Part:
    """What one report contributes; `why` are reasons for finding none, by rank."""

    devices: list[DeviceIterations]
    why: list[tuple[int | None, str]]


@command_function
def iterations(
    reports: Paths,
    *,
    top: int | None = None,
    communication: Iterable[str] = (),
    **common: Unpack[Common],
) -> Table:
    """The iterations of every rank and device with their budget, in ns, and how they were found.

    An iteration lasts until host and GPU are done with it, and begins with the host's work on it
    unless the one before it is still running then. Sources: analysis.iterations. `nvtx` names the
    range whose instances are the iterations; where it has one instance only, iterations are
    looked for inside it. phase: warm-up, steady, or edge (cut off where the profiler began or
    stopped). Iterations are those of the whole report, by their numbers; from_time and to_time
    leave those that are mostly between them, whole. Starts are moments on the clock that all
    ranks share. Notes say the spread and what grew in slow iterations.
    """
    request = Request.of(reports, **common)
    work = partial(_find, communication=tuple(communication), scope=request.scope)
    results = request.map(work, ranked=True).results
    clock = common_clock(request.ranks)
    placed = [(str(report.path), device) for report, part in results for device in part.devices]
    placed.sort(key=lambda pair: (*rank_order(pair[1].rank), pair[1].pid, pair[1].device))
    parts, devices = [part for _, part in results], [device for _, device in placed]
    rows = tuple(row for path, device in placed for row in _rows(device, path, clock))
    notes = [*_spread_notes(devices), *_slow_notes(devices)]
    why = [pair for part in parts for pair in part.why]
    said = dict.fromkeys(text for device in devices for text in device.iterations.notes)
    others = _others_note(devices)
    table = Table("iterations", FIELDS, rows).first(top)
    return request.finish(table, *notes, *said, *others, *_reasons(why))


def _find(report: SystemReport, *, communication: tuple[str, ...], scope: Scope) -> _Part:
    devices, why = [], []
    whole = replace(scope, from_ns=None, to_ns=None)
    for pid, process in find_in_report(report, whole).items():
        rank = report.rank_of(pid)[0]
        if not len(process.iterations):
            why += [(rank, note) for note in process.iterations.notes]
            continue
        marked, shown = _between(process.iterations, *scope.bounds(report))
        if not len(shown):
            why.append((rank, f"none of its {len(marked)} iterations is in the wanted time."))
        if scope.iteration is not None:
            shown = np.intersect1d(shown, places_in(marked, scope.iteration))
        frames = (process.kernels, process.operations, process.graphs)
        for _, device in places_of(*frames):
            kernels, copies, traces = (_on(frame, device) for frame in frames)
            is_comm = is_communication(kernels.labels("name"), communication)
            budgets = iteration_budgets(marked, activity(kernels, is_comm, copies, traces))
            slow = tuple(slow_iterations(marked, budgets, kernels))
            devices.append(DeviceIterations(rank, pid, device, marked, budgets, slow, shown))
    return _Part(devices, why)


def _between(whole: Iterations, low: int | None, high: int | None) -> tuple[Iterations, Ints]:
    """The iterations of a stretch of time (ns; None: no bound), and their places.

    They have half of their time in it, or it has half of its time in them: a printed moment is
    rounded. The others keep their place, and have no phase: nothing counts them.
    """
    if low is None and high is None:
        return whole, np.arange(len(whole))
    first = int(whole.start.min()) if low is None else low
    last = int(whole.end.max()) if high is None else high
    shared = np.minimum(whole.end, last) - np.maximum(whole.start, first)
    inside = (shared > 0) & (2 * shared >= np.minimum(whole.duration, last - first))
    phase = (
        phase_name if there else "" for phase_name, there in zip(whole.phase, inside, strict=True)
    )
    return replace(whole, phase=tuple(phase)), np.flatnonzero(inside)


def _on(frame: Frame, device: int) -> Frame:
    mine = frame.ints("device") == device
    return frame if mine.all() else frame.take(mine)


def _rows(device: DeviceIterations, report: str, clock: CommonClock) -> Iterable[tuple[Value, ...]]:
    figures = (
        clock.aligned(report, device.pid, device.iterations.start),
        device.iterations.duration,
        device.budgets.busy,
        device.budgets.compute,
        device.budgets.exposed_communication,
        device.budgets.idle,
    )
    shown = set(device.shown.tolist())
    for place, values in enumerate(zip(*(f.tolist() for f in figures), strict=True)):
        if place in shown:
            yield (
                device.rank,
                place,
                *values,
                device.iterations.source,
                device.device,
                device.iterations.phase[place],
            )


def _who(devices: Sequence[DeviceIterations]) -> str:
    ranks = list(dict.fromkeys(device.rank for device in devices))
    if None in ranks:
        return f"device {group_text([device.device for device in devices])}"
    return f"rank{'s' if len(ranks) > 1 else ''} {group_text(ranks)}"


def _spread_notes(devices: Sequence[DeviceIterations]) -> list[str]:
    """The spread of each rank's steady iterations; of all together when they are many."""
    alone = list({(device.rank, device.pid): device for device in reversed(devices)}.values())[::-1]
    spreads = [
        (device, spread_of)
        for device in alone
        if (spread_of := spread(device.iterations)) is not None
    ]
    said: dict[str, list[DeviceIterations]] = {}
    for device, spread_of in spreads:
        said.setdefault(_spread_text(device, spread_of), []).append(device)
    if len(said) <= RANKS_SAID:
        return [f"{_who(same)}: {text}" for text, same in said.items()]
    medians = [spread_of.median for _, spread_of in spreads]
    counts = [spread_of.count for _, spread_of in spreads]
    text = (
        f"{len(spreads)} ranks, {min(counts)} to {max(counts)} steady iterations each: medians "
        f"{format_time(min(medians))} to {format_time(max(medians))}."
    )
    return [text]


def _spread_text(device: DeviceIterations, spread_of: Spread) -> str:
    others = [
        f"{device.iterations.phase.count(phase)} {phase}"
        for phase in ("warm-up", "edge")
        if phase in device.iterations.phase
    ]
    beside = f" (beside {', '.join(others)})" if others else ""
    kernels = int(np.median(device.iterations.kernels[device.iterations.steady]))
    return (
        f"{spread_of.count} steady iterations{beside} "
        f"by {device.iterations.source}, {counted(kernels, 'launch', 'launches')} each: "
        f"median {format_time(spread_of.median)}, min {format_time(spread_of.minimum)}, "
        f"max {format_time(spread_of.maximum)}, p95 {format_time(spread_of.p95)}."
    )


def _others_note(devices: Sequence[DeviceIterations]) -> list[str]:
    """What else repeats, of the first process."""
    for device in devices[:1]:
        texts = [
            f"{other.count} x {format_time(other.period_ns)} {other.source}"
            + (f" ({other.why})" if other.why else "")
            for other in device.iterations.others[:OTHERS_SAID]
        ]
        if texts:
            return [f"Also repeating, not taken for iterations: {'; '.join(texts)}."]
    return []


def _slow_notes(devices: Sequence[DeviceIterations]) -> list[str]:
    """The slowest iterations of all, and what grew in them; several ranks' same one once."""
    slowest = [(device, slow) for device in devices for slow in device.slow]
    slowest.sort(key=lambda pair: -pair[1].ratio)
    same: dict[tuple[object, ...], list[tuple[DeviceIterations, SlowIteration]]] = {}
    for device, slow in slowest:
        same.setdefault((slow.iteration, slow.part, slow.kernel), []).append((device, slow))
    return [
        f"{_who([device for device, _ in group])}, {_slow_text(group[0][1], len(group))}"
        for group in list(same.values())[:RANKS_SAID]
    ]


def _slow_text(slow: SlowIteration, ranks: int) -> str:
    kernel = (
        f", most of it in {brief_kernel(slow.kernel)} (+{format_time(slow.kernel_grew_ns)})"
        if slow.kernel and slow.kernel_grew_ns > slow.grew_ns / 2
        else ""
    )
    return (
        f"iteration {slow.iteration}: {'up to ' if ranks > 1 else ''}"
        f"{format_time(slow.duration_ns)}, {slow.ratio:.2f} x the median; "
        f"{slow.part} grew by {format_time(slow.grew_ns)}{kernel}."
    )


def _of_ranks(ranks: Sequence[str], text: str) -> str:
    return f"rank {', '.join(ranks)}: {text}"


def _reasons(why: Sequence[tuple[int | None, str]]) -> list[str]:
    """Why nothing was found, each reason once with the ranks it is about."""
    texts: dict[str, list[str]] = {}
    for rank, text in why:
        texts.setdefault(text, []).append("?" if rank is None else str(rank))
    return [
        text if len(why) == 1 else reworded(text, partial(_of_ranks, ranks))
        for text, ranks in texts.items()
    ]
