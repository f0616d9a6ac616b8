"""What the checks of `findings` need to know about each of a report's devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.findings.copy_use import copy_uses, streams_in_turn
from nsightpy.analysis.findings.facts import LEAST_SHARE, DeviceFacts, Place
from nsightpy.analysis.findings.kernel_use import (
    Gpu,
    KernelUse,
    gpu_of_kernels,
    kernel_use,
    short_cost_ns,
)
from nsightpy.analysis.idle.gpu_work import Work
from nsightpy.analysis.idle.host_activity import HostEvents
from nsightpy.analysis.intervals import Spans, measure_before, spans_of, union_of
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.work_graph.idle_intervals import IdleIntervals
from nsightpy.commands.findings.host_facts import idle_facts, without_causes
from nsightpy.commands.findings.repetition_facts import repetition_of
from nsightpy.frames import API_CALLS, Frame, Ints
from nsightpy.query.device_time import RankedBudget
from nsightpy.query.idle_time import FollowedWork
from nsightpy.reports.system import SystemReport


@dataclass(frozen=True)
class DeviceSource:
    """One report's work with its calls (None: not recorded), and what its host did beside."""

    report: SystemReport
    work: Work
    communicates: NDArray[np.bool_]
    followed: FollowedWork | None
    events: Mapping[int, HostEvents]
    steady: Mapping[tuple[int, int], SteadyState]

    @property
    def launch(self) -> Ints | None:
        """When each kernel was launched, ns."""
        if self.followed is None:
            return None
        return self.followed.launched.work.launch[: self.work.kernels.rows]

    def calls(self, pid: int) -> tuple[int | None, Frame]:
        """When a process first called the API (None: never), and its notable calls."""
        if self.followed is None:
            return None, Frame.empty(API_CALLS, ("start_ns", "end_ns", "tid", "name"))
        chain = self.followed.launched.chain
        mine = chain.start[chain.pid == pid]
        first = int(mine.min()) if len(mine) else None
        return first, chain.frame(chain.notable[chain.pid[chain.notable] == pid])


def device_facts(
    source: DeviceSource,
    gaps: Mapping[tuple[int, int], IdleIntervals],
    rows: Sequence[RankedBudget],
) -> dict[tuple[int, int], DeviceFacts]:
    """What is known of each device."""
    gpus, facts = _gpus(source.report), {}
    for row in rows:
        gpu = gpus.get(row.place) or gpus.get((0, row.device)) or Gpu()
        facts[row.place] = _device(source, row, gpu, gaps.get(row.place))
    return facts


def _gpus(report: SystemReport) -> dict[tuple[int, int], Gpu]:
    """The GPU behind each place; by the device alone where processes are not distinguished."""
    columns = ("pid", "device", "sm_count", "compute_major", "name")
    devices = report.frame("devices").tuples(*columns)
    return {(pid, device): Gpu(*facts) for pid, device, *facts in devices}


def _device(
    source: DeviceSource,
    row: RankedBudget,
    gpu: Gpu,
    gaps: IdleIntervals | None,
) -> DeviceFacts:
    place, window = row.place, row.budget.window
    rows = _rows_of_place(source.work.kernels, place)
    kernels, communicates = source.work.kernels, source.communicates
    mine = kernels if rows is None else kernels.take(rows)
    gpu = gpu_of_kernels(gpu, mine, source.report.tool_version)
    mask = communicates if rows is None else communicates[rows]
    called, calls = source.calls(row.pid)

    operations, graphs = (
        frame.at(pid=place[0], device=place[1])
        for frame in (source.work.operations, source.work.graphs)
    )

    if gaps is None or source.followed is None:
        ran = union_of(map(spans_of, (mine, operations, graphs)))
        short, idle = 0, without_causes(window - ran)
    else:
        # rows of the gaps are those of all kernels
        elsewhere = np.ones(kernels.rows, dtype=np.bool_) if rows is not None else communicates
        if rows is not None:
            elsewhere[rows] = communicates[rows]
        short = short_cost_ns(kernels, elsewhere, window, gaps)
        about = (calls, window, source.events[row.pid])
        idle = idle_facts(source.followed.launched, gaps, *about)
    return DeviceFacts(
        row.rank,
        row.device,
        row.budget,
        gpu=gpu,
        idle=idle,
        kernels=kernel_use(mine, mask, window, gpu) if mine.rows and len(window) else KernelUse(),
        short_cost_ns=short,
        in_graphs=_in_graphs(source, rows),
        # nothing can be copied beside the union of kernels
        copies=copy_uses(operations, spans_of(mine) | spans_of(graphs), window),
        exposed=_exposed(row, mine, mask, union_of([spans_of(operations), spans_of(graphs)])),
        opaque=_longest(graphs, window),
        in_turn=streams_in_turn(operations, mine, window) if _copies(row) else 0,
        repetition=repetition_of(
            (mine, operations, graphs),
            called,
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


def _in_graphs(source: DeviceSource, rows: NDArray[np.int64] | None) -> bool:
    """Whether most kernels were launched by the call that launched the one before, too."""
    if source.launch is None:
        return False
    launch = source.launch if rows is None else source.launch[rows]
    shared = (np.diff(launch) == 0) & (launch[1:] != NO_TIME)
    return 2 * int(np.count_nonzero(shared)) > len(launch)


def _rows_of_place(frame: Frame, place: tuple[int, int]) -> NDArray[np.int64] | None:
    """The rows of one place; None for all of them."""
    mine = frame.rows_at(pid=place[0], device=place[1])
    return None if frame.rows and mine.all() else np.flatnonzero(mine)
