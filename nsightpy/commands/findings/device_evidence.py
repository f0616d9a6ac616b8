"""The evidence about each of a report's devices, in one pass over its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.findings.copy_evidence import copy_groups, graph_group
from nsightpy.analysis.findings.evidence import Evidence, Repetition
from nsightpy.analysis.findings.groups import Gpu, Group
from nsightpy.analysis.findings.kernel_evidence import (
    gpu_of_kernels,
    kernel_evidence,
    short_cost_ns,
)
from nsightpy.analysis.findings.thresholds import CONTEXT_NS, LEAST_SHARE
from nsightpy.analysis.idle.gpu_work import Work
from nsightpy.analysis.idle.host_activity import HostEvents
from nsightpy.analysis.idle.host_calls import MODULE, kinds_of_calls
from nsightpy.analysis.intervals import Spans, spans_of, union_of
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.memory.allocations import usages
from nsightpy.analysis.overlap_cost import OverlapCost, overlap_costs
from nsightpy.analysis.work_graph.idle_intervals import IdleIntervals
from nsightpy.analysis.work_graph.launched_work import LaunchedWork
from nsightpy.commands.findings.host_evidence import idle_evidence, without_causes
from nsightpy.frames import API_CALLS, GPU_FRAMES, Frame, Ints
from nsightpy.query.device_time import RankedBudget, memory_events
from nsightpy.query.scope import Scope
from nsightpy.readers.extent import bounds_of
from nsightpy.reports.system import HOST_FRAMES, SystemReport
from nsightpy.units import format_time

Place = tuple[int, int]
# The memory of a GPU among the kinds that allocations are of.
DEVICE_MEMORY = "Device"
MEMORY = ("pid", "device", "memory_bytes")


@dataclass(frozen=True)
class DeviceSource:
    """One report's work with its calls (None: not recorded), and what its host did beside.

    `costly` is what the profiler adds to each operator, for people.
    """

    report: SystemReport
    scope: Scope
    work: Work
    communicates: NDArray[np.bool_]
    followed: LaunchedWork | None
    events: Mapping[int, HostEvents]
    steady: Mapping[Place, SteadyState]
    has_ranges: bool = False
    costly: str = ""

    @cached_property
    def captured_ns(self) -> int:
        """How long anything was recorded, in ns: calls may last beyond the capture."""
        names = (*GPU_FRAMES, *HOST_FRAMES, "os_calls", "mpi_calls")
        frames = (self.report.frame(name, ("start_ns", "end_ns")) for name in names)
        first, last = bounds_of(frames) or (0, 0)
        whole = self.report.session.duration_ns
        return last - first if whole is None else min(last, whole) - max(first, 0)

    @property
    def launch(self) -> Ints | None:
        """When each kernel was launched, ns."""
        if self.followed is None:
            return None
        return self.followed.work.launch[: self.work.kernels.rows]

    def calls(self, pid: int) -> tuple[int | None, Frame]:
        """When a process first called the API (None: never), and its notable calls."""
        if self.followed is None:
            return None, Frame.empty(API_CALLS, ("start_ns", "end_ns", "tid", "name"))
        chain = self.followed.chain
        mine = chain.start[chain.pid == pid]
        first = int(mine.min()) if len(mine) else None
        return first, chain.frame(chain.notable[chain.pid[chain.notable] == pid])


def device_evidence(
    source: DeviceSource, gaps: Mapping[Place, IdleIntervals], rows: Sequence[RankedBudget]
) -> dict[Place, Evidence]:
    """A row for each device."""
    columns = ("pid", "device", "sm_count", "compute_major", "name")
    devices = source.report.frame("devices")
    gpus = {(pid, device): Gpu(*facts) for pid, device, *facts in devices.tuples(*columns)}
    sizes = {(pid, device): size for pid, device, size in devices.tuples(*MEMORY)}
    peaks = _peaks(source)
    evidence = {}
    for row in rows:
        # by the device alone where processes are not distinguished
        gpu = gpus.get(row.place) or gpus.get((0, row.device)) or Gpu()
        found = _device(source, row, gpu, gaps.get(row.place))
        memory = sizes.get(row.place) or sizes.get((0, row.device)) or 0
        evidence[row.place] = replace(
            found, peak_bytes=peaks.get(row.place, 0), memory_bytes=memory
        )
    return evidence


def _peaks(source: DeviceSource) -> dict[Place, int]:
    """The most memory of each device that was live at a time, where allocations were recorded."""
    if not source.report.has_memory_usage:
        return {}
    peaks: dict[Place, int] = {}
    for pid, device, memory, _, used in usages(memory_events(source.report, source.scope)):
        if memory == DEVICE_MEMORY:
            held = max(used.peak_bytes, int(used.reserved.max(initial=0)))
            peaks[pid, device] = max(peaks.get((pid, device), 0), held)
    return peaks


def _device(
    source: DeviceSource, row: RankedBudget, gpu: Gpu, gaps: IdleIntervals | None
) -> Evidence:
    place, window = row.place, row.budget.window
    on_device = source.work.kernels.rows_at(pid=place[0], device=place[1])
    kernels, operations, graphs = (frame.at(pid=place[0], device=place[1]) for frame in source.work)
    apart = source.communicates[on_device]
    gpu = gpu_of_kernels(gpu, kernels, source.report.tool_version)
    others = union_of([spans_of(operations), spans_of(graphs)])
    ran = kernel_evidence(kernels, apart, window, others, gpu)
    called, calls = source.calls(row.pid)
    if gaps is None or source.followed is None:
        short, idle = 0, without_causes(window - (spans_of(kernels) | others))
    else:
        # rows of the gaps are those of all kernels
        elsewhere = source.communicates | ~on_device
        short = short_cost_ns(source.work.kernels, elsewhere, window, gaps)
        about = (calls, window, source.events[row.pid])
        idle = idle_evidence(source.followed, gaps, *about)
    slowed, overlap = _slowed(kernels, apart, row)
    copies = copy_groups(operations, spans_of(kernels) | spans_of(graphs), window)
    return Evidence(
        row.rank,
        row.device,
        row.budget,
        gpu=gpu,
        idle=idle,
        groups={**ran.groups, **copies, "graphs": graph_group(graphs, window), "slowed": slowed},
        names=ran.names,
        latency=ran.latency,
        short_ns=short,
        begun_ns=ran.begun_ns,
        in_graphs=_in_graphs(source.launch, on_device),
        directives=ran.directives,
        overlap=overlap,
        repetition=_repetition(source, row, (kernels, operations, graphs), called, calls),
        has_ranges=source.has_ranges,
        traced=source.report.kind == "torch",
        costly=source.costly,
    )


def _slowed(
    kernels: Frame, apart: NDArray[np.bool_], row: RankedBudget
) -> tuple[Group, OverlapCost | None]:
    """What communication beside them costs the kernels of a window, and the one it costs most."""
    window = row.budget.window
    if row.budget.overlap_ns < LEAST_SHARE * window.total:
        return Group(), None
    inside = window.holds(kernels.ints("start_ns"))
    costs = overlap_costs(kernels.take(inside & ~apart), spans_of(kernels.take(apart)))
    if not costs:
        return Group(), None
    excess = round(sum(cost.excess_ns for cost in costs))
    return Group(work_ns=excess, count=sum(cost.beside for cost in costs)), costs[0]


def _in_graphs(launch: Ints | None, on_device: NDArray[np.bool_]) -> bool:
    """Whether most kernels were launched by the call that launched the one before, too."""
    if launch is None:
        return False
    launch = launch[on_device]
    shared = (np.diff(launch) == 0) & (launch[1:] != NO_TIME)
    return 2 * int(np.count_nonzero(shared)) > len(launch)


def _repetition(
    source: DeviceSource,
    row: RankedBudget,
    frames: Sequence[Frame],
    called: int | None,
    calls: Frame,
) -> Repetition:
    """What is known of a device's iterations, and of what came before them."""
    bounds = bounds_of(frames)
    if bounds is None:
        return Repetition()
    first, last = bounds
    steady = source.steady.get(row.place)
    begin = first if steady is None else int(steady.window.starts[0])
    loading, call = _loading(calls, called, begin)
    queued = _queued(source, place=row.place, first=first)
    return Repetition(
        None if steady is None else steady.count,
        outside="" if steady is None else _outside(frames, row.budget.window),
        lead_ns=None if called is None else max(first - queued - called, 0),
        loading_ns=loading,
        loading_call=call,
        first_ns=first,
        whole_ns=last - first,
        capture_ns=source.captured_ns - queued,
    )


def _queued(source: DeviceSource, place: Place, first: int) -> int:
    """How long the first operation of a device had been launched before it began, in ns.

    The device did what was launched before the capture.
    """
    if source.followed is None:
        return 0
    launched = source.followed
    work, by = launched.work, launched.launched_by
    rows = (work.place == work.places.index(place)) & (work.start == first) & (by >= 0)
    return max(first - int(launched.chain.end[by[rows]].min(initial=first)), 0)


def _loading(calls: Frame, called: int | None, before: int) -> tuple[int, str]:
    """How long before a moment code was first loaded or the context made, and by which call.

    The first call of a process makes the context, whatever it is.
    """
    start, lasted = calls.ints("start_ns"), calls.ints("end_ns") - calls.ints("start_ns")
    makes_context = (start == called) & (lasted >= CONTEXT_NS)
    loads = calls.take(makes_context | (kinds_of_calls(calls.labels("name")) == MODULE)).ordered()
    if not loads.rows or loads.ints("start_ns")[0] >= before:
        return 0, ""
    return before - int(loads.ints("start_ns")[0]), loads.labels("name")[0]


def _outside(frames: Sequence[Frame], window: Spans) -> str:
    """What a device did before its steady state, for people; empty where that is little."""
    if not len(window):
        return ""
    before = int(window.starts[0])
    early = [frame.take(frame.ints("start_ns") < before) for frame in frames[:2]]
    kernels, copies = (spans_of(frame).total for frame in early)
    parts = [
        f"{format_time(length)} of {what}"
        for length, what in ((copies, "one-off copies"), (kernels, "kernels"))
        if length > LEAST_SHARE * window.total
    ]
    return f"before it: {' and '.join(parts)}" if parts else ""
