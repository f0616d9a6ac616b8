"""The evidence about each of a report's devices, in one pass over its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.findings.copy_evidence import graph_group, with_copies
from nsightpy.analysis.findings.evidence import NONE, Evidence, Gpu, Group, Place
from nsightpy.analysis.findings.idle_evidence import with_idle, without_causes
from nsightpy.analysis.findings.kernel_evidence import launching_ns, with_kernels
from nsightpy.analysis.findings.thresholds import CONTEXT_NS, LEAST_SHARE
from nsightpy.analysis.intervals import spans_of, union_of
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.memory.allocations import usages
from nsightpy.analysis.ranks.overlap_cost import overlap_costs
from nsightpy.analysis.time_budget import TimeBudget
from nsightpy.analysis.work_graph.host_activity import HostEvents
from nsightpy.analysis.work_graph.host_chain import MODULE, kinds_of_calls
from nsightpy.analysis.work_graph.idle_intervals import IdleIntervals
from nsightpy.analysis.work_graph.launched_work import LaunchedWork, Work
from nsightpy.frames import API_CALLS, GPU_FRAMES, Frame, Ints
from nsightpy.names import measured_by_ncu
from nsightpy.query import Scope
from nsightpy.query.device_time import RankedBudget, memory_events
from nsightpy.readers.activity import bounds_of
from nsightpy.reports.system import HOST_FRAMES, SystemReport
from nsightpy.units import format_time

# The memory of a GPU among the kinds that allocations are of.
DEVICE_MEMORY = "Device"
GPU_COLUMNS = ("pid", "device", "sm_count", "compute_major", "name", "memory_bytes")


@dataclass(frozen=True)
class DeviceSource:
    """One report's work with its calls (None: not recorded), and what its host did beside.

    `traits` are fields of the evidence that are the same of all its devices.
    """

    report: SystemReport
    scope: Scope
    work: Work
    communicates: NDArray[np.bool_]
    followed: LaunchedWork | None
    gaps: Mapping[tuple[int, int], IdleIntervals]
    events: Mapping[int, HostEvents]
    steady: Mapping[tuple[int, int], SteadyState]
    traits: Mapping[str, Any]

    @cached_property
    def captured_ns(self) -> int:
        """How long anything was recorded, in ns: calls may last beyond the capture."""
        names = (*GPU_FRAMES, *HOST_FRAMES, "os_calls", "mpi_calls")
        frames = (self.report.frame(name, ("start_ns", "end_ns")) for name in names)
        first, last = bounds_of(frames) or (0, 0)
        whole = self.report.session.duration_ns
        return last - first if whole is None else min(last, whole) - max(first, 0)

    @cached_property
    def gpus(self) -> dict[tuple[int, int], tuple[Gpu, int]]:
        """The GPUs and the size of their memory."""
        rows = self.report.frame("devices").tuples(*GPU_COLUMNS)
        return {(pid, device): (Gpu(*facts), memory) for pid, device, *facts, memory in rows}

    @cached_property
    def peaks(self) -> dict[tuple[int, int], int]:
        """The most memory of each device that was live at a time, where that was recorded."""
        peaks: dict[tuple[int, int], int] = {}
        events = memory_events(self.report, self.scope) if self.report.has_memory_usage else None
        for pid, device, memory, _, used in [] if events is None else usages(events):
            if memory == DEVICE_MEMORY:
                held = max(used.peak_bytes, int(used.reserved.max(initial=0)))
                peaks[pid, device] = max(peaks.get((pid, device), 0), held)
        return peaks

    def calls(self, pid: int) -> tuple[int | None, Frame]:
        """When a process first called the API (None: never), and its notable calls."""
        if self.followed is None:
            return None, Frame.empty(API_CALLS, ("start_ns", "end_ns", "tid", "name"))
        chain = self.followed.chain
        begins = chain.start[chain.pid == pid]
        first = int(begins.min()) if len(begins) else None
        return first, chain.frame(chain.notable[chain.pid[chain.notable] == pid])


def device_evidence(source: DeviceSource, budget: RankedBudget) -> Evidence:
    """The row of one device."""
    place, window = budget.place, budget.budget.window
    on_device = source.work.kernels.rows_at(pid=place[0], device=place[1])
    frames = [frame.at(pid=place[0], device=place[1]) for frame in source.work]
    kernels, operations, graphs = frames
    apart = source.communicates[on_device]
    # by the device alone where processes are not distinguished
    gpu, memory = source.gpus.get(place) or source.gpus.get((0, place[1])) or (Gpu(), 0)
    row = Evidence(
        *(budget.rank, budget.device, budget.budget),
        gpu=replace(gpu, ncu=measured_by_ncu(gpu.name, source.report.tool_version)),
        groups={
            "graphs": graph_group(graphs, window),
            "slowed": _slowed(kernels, apart, budget.budget),
        },
        peak_bytes=source.peaks.get(place, 0),
        memory_bytes=memory,
        **source.traits,
    )
    others = union_of([spans_of(operations), spans_of(graphs)])
    row = with_kernels(row, kernels, apart, others)
    row = with_copies(row, operations, spans_of(kernels) | spans_of(graphs))
    called, calls = source.calls(place[0])
    row = _with_begin(row, source, frames, place, called, calls)
    gaps = source.gaps.get(place)
    if source.followed is None or gaps is None:
        return without_causes(row, window - (spans_of(kernels) | others))
    # rows of the gaps are those of all kernels
    waits = launching_ns(source.work.kernels, source.communicates | ~on_device, gaps)
    short = replace(row["short"], alone_ns=row["short"].busy_ns + waits)
    row = row.having({"short": short})
    row = with_idle(row, source.followed, gaps, calls, source.events[place[0]])
    return _with_launches(row, source.followed.launch[: len(on_device)][on_device])


def _with_launches(row: Evidence, launch: Ints) -> Evidence:
    """A device's row with what is known of when its kernels were launched."""
    lacking = int(np.count_nonzero(launch == NO_TIME))
    same_call = (np.diff(launch) == 0) & (launch[1:] != NO_TIME)
    also = f"{lacking:,} of {len(launch):,} kernels have no recorded launch" if lacking else ""
    return row.having(
        {"unknown": replace(row["unknown"], also=also)},
        in_graphs=2 * int(np.count_nonzero(same_call)) > len(launch),
    )


def _slowed(kernels: Frame, apart: NDArray[np.bool_], budget: TimeBudget) -> Group:
    """What communication beside them costs the kernels of a window, most of all one of them."""
    if budget.overlap_ns < LEAST_SHARE * budget.window_ns:
        return NONE
    inside = budget.window.holds(kernels.ints("start_ns"))
    costs = overlap_costs(kernels.take(inside & ~apart), spans_of(kernels.take(apart)))
    if not costs:
        return NONE
    worst = costs[0]
    return Group(
        alone_ns=round(sum(cost.excess_ns for cost in costs)),
        count=sum(cost.beside for cost in costs),
        name=worst.name,
        also=f"{format_time(worst.beside_med_ns)} for {format_time(worst.alone_med_ns)} alone",
    )


def _with_begin(
    row: Evidence,
    source: DeviceSource,
    frames: Sequence[Frame],
    place: tuple[int, int],
    called: int | None,
    calls: Frame,
) -> Evidence:
    """A device's row with what is known of its iterations, and of what came before them.

    `called` is when its process first called the API, `calls` are the notable ones.
    """
    bounds, steady = bounds_of(frames), source.steady.get(place)
    if bounds is None:
        return row
    first, last = bounds
    queued = 0 if source.followed is None else _queued(source.followed, place, first)
    lead = None if called is None else max(first - queued - called, 0)
    whole = max(last - first, row.window_ns)
    return row.having(
        {"loading": _loading(calls, called, first if steady is None else row.budget.start_ns)},
        iterations=None if steady is None else steady.count,
        outside="" if steady is None else _outside(frames, row.budget.start_ns, row.window_ns),
        first_ns=first,
        whole_ns=whole,
        lead_ns=lead,
        capture_ns=max(source.captured_ns - queued, whole + (lead or 0)),
    )


def _queued(launched: LaunchedWork, place: tuple[int, int], first: int) -> int:
    """How long the first operation of a device had been launched before it began, in ns.

    The device did what was launched before the capture.
    """
    by = launched.launched_by
    of_place = launched.place == launched.places.index(place)
    rows = of_place & (launched.start == first) & (by >= 0)
    return max(first - int(launched.chain.end[by[rows]].min(initial=first)), 0)


def _loading(calls: Frame, called: int | None, before: int) -> Group:
    """The time from when code was first loaded or the context made to a moment, and which call did.

    The first call of a process makes the context, whatever it is.
    """
    start, lasted = calls.ints("start_ns"), calls.ints("end_ns") - calls.ints("start_ns")
    makes_context = (start == called) & (lasted >= CONTEXT_NS)
    loads = calls.take(makes_context | (kinds_of_calls(calls.labels("name")) == MODULE)).ordered()
    if not loads.rows or loads.ints("start_ns")[0] >= before:
        return NONE
    began, call = int(loads.ints("start_ns")[0]), loads.labels("name")[0]
    lost = before - began
    return Group(alone_ns=lost, name=call, worst=Place(began, lost), by_name={"start-up": lost})


def _outside(frames: Sequence[Frame], before: int, window_ns: int) -> str:
    """What a device did before its steady state, for people; empty where that is little."""
    early = [frame.take(frame.ints("start_ns") < before) for frame in frames[:2]]
    kernels, copies = (spans_of(frame).total for frame in early)
    parts = [
        f"{format_time(length)} of {of}"
        for length, of in ((copies, "one-off copies"), (kernels, "kernels"))
        if length > LEAST_SHARE * window_ns
    ]
    return f"before it: {' and '.join(parts)}" if parts else ""
