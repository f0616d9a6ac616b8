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
from nsightpy.frames import API_CALLS, GPU_FRAMES, Frame
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
        version, gpus = self.report.tool_version, {}
        rows = self.report.frame("devices").tuples(*GPU_COLUMNS)
        for pid, device, sms, major, name, memory in rows:
            gpus[pid, device] = Gpu(sms, major, name, measured_by_ncu(name, version)), memory
        return gpus

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


def device_evidence(source: DeviceSource, budget: RankedBudget) -> Evidence:
    """The row of one device."""
    place, window, launched = budget.place, budget.budget.window, source.followed
    on_device = source.work.kernels.rows_at(pid=place[0], device=place[1])
    frames = [frame.at(pid=place[0], device=place[1]) for frame in source.work]
    kernels, operations, graphs = frames
    apart = source.communicates[on_device]
    # by the device alone where processes are not distinguished
    gpu, memory = source.gpus.get(place) or source.gpus.get((0, place[1])) or (Gpu(), 0)
    row = Evidence(
        *(budget.rank, budget.device, budget.budget, gpu),
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
    calls = Frame.empty(API_CALLS, ("start_ns", "end_ns", "tid", "name"))
    if launched is not None:
        chain = launched.chain
        calls = chain.frame(chain.notable[chain.pid[chain.notable] == place[0]])
    row = _with_begin(row, source, frames, place, calls)
    gaps = source.gaps.get(place)
    if launched is None or gaps is None:
        return without_causes(row, window - (spans_of(kernels) | others))
    # rows of the gaps are those of all kernels
    waits = launching_ns(source.work.kernels, source.communicates | ~on_device, gaps)
    short = replace(row["short"], alone_ns=row["short"].busy_ns + waits)
    row = with_idle(row.having({"short": short}), launched, gaps, calls, source.events[place[0]])
    launch = launched.launch[: len(on_device)][on_device]
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
    calls: Frame,
) -> Evidence:
    """A device's row with what is known of its iterations, and of what came before them.

    `calls` are the notable ones of its process.
    """
    first, last = bounds_of(frames) or (0, 0)
    steady, launched, queued, called = source.steady.get(place), source.followed, 0, None
    if launched is not None:
        # work that was launched before the capture is done first
        first_rows = (launched.place == launched.places.index(place)) & (launched.start == first)
        by = launched.launched_by[first_rows & (launched.launched_by >= 0)]
        queued = max(first - int(launched.chain.end[by].min(initial=first)), 0)
        begins = launched.chain.start[launched.chain.pid == place[0]]
        called = int(begins.min()) if len(begins) else None
    lead = None if called is None else max(first - queued - called, 0)
    whole = max(last - first, row.window_ns)
    return row.having(
        {"loading": _loading(calls, called, first if steady is None else row.budget.start_ns)},
        iterations=None if steady is None else steady.count,
        first_ns=first,
        whole_ns=whole,
        lead_ns=lead,
        capture_ns=max(source.captured_ns - queued, whole + (lead or 0)),
    )


def _loading(calls: Frame, called: int | None, before: int) -> Group:
    """The time from when code was first loaded or the context made to a moment, and which call did.

    The first call of a process (at `called`) makes the context, whatever it is.
    """
    start, lasted = calls.ints("start_ns"), calls.ints("end_ns") - calls.ints("start_ns")
    makes_context = (start == called) & (lasted >= CONTEXT_NS)
    loads = calls.take(makes_context | (kinds_of_calls(calls.labels("name")) == MODULE)).ordered()
    if not loads.rows or loads.ints("start_ns")[0] >= before:
        return NONE
    began = int(loads.ints("start_ns")[0])
    worst = Place(began, before - began)
    parts = {"start-up": worst.duration_ns}
    return Group(alone_ns=before - began, name=loads.labels("name")[0], worst=worst, by_name=parts)
