"""The evidence of one report: its devices, in one pass over their work, and what they share."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.collectives.log import NO_LOG
from nsightpy.analysis.findings.evidence import NONE, Evidence, Gpu, Group, Place
from nsightpy.analysis.findings.idle_evidence import with_idle
from nsightpy.analysis.findings.thresholds import CONTEXT_NS
from nsightpy.analysis.findings.work_evidence import (
    graph_group,
    launching_ns,
    with_copies,
    with_kernels,
)
from nsightpy.analysis.intervals import Spans, spans_of, union_of
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.memory.allocations import usages
from nsightpy.analysis.ranks.kernels import overlap_costs
from nsightpy.analysis.thresholds import MATERIAL
from nsightpy.analysis.time_budget import TimeBudget
from nsightpy.analysis.work_graph.host_activity import most_sampled
from nsightpy.analysis.work_graph.host_chain import MODULE, kinds_of_calls
from nsightpy.analysis.work_graph.launched_work import Work
from nsightpy.frames import GPU_FRAMES, Frame
from nsightpy.names import measured_by_ncu
from nsightpy.query import Scope
from nsightpy.query.device_time import (
    SAMPLE_COLUMNS,
    IdleReport,
    RankedBudget,
    idle_report,
    memory_events,
    short_modules,
)
from nsightpy.query.rank_alignment import RankPart, clocks_in, mpi_log, rank_part
from nsightpy.query.work_reading import Recorded, recorded
from nsightpy.readers.activity import bounds_of
from nsightpy.reports.system import HOST_FRAMES, SystemReport
from nsightpy.units import format_time

# The memory of a GPU among the kinds that allocations are of.
DEVICE_MEMORY = "Device"
GPU_COLUMNS = ("pid", "device", "sm_count", "compute_major", "name", "memory_bytes")
# The ranges that PyTorch's autograd makes of every operator.
_OPERATOR = re.compile(r", (?:seq|op_id) = \d")
LONGER = "makes that longer than it is without"


@dataclass(frozen=True)
class ReportEvidence:
    """What one report contributes: its devices by process and number, and what all share.

    `recorded` is what its work can be replayed by, `host` what its threads did where there is no
    GPU work.
    """

    recorded: Recorded
    devices: Mapping[tuple[int, int], Evidence]
    steady: Mapping[tuple[int, int], SteadyState]
    host: str = ""


def report_evidence(
    report: SystemReport,
    scope: Scope,
    work: Work,
    ranges: Frame,
    communication: tuple[str, ...] = (),
) -> ReportEvidence:
    """The facts about each device: over its steady iterations, or else over its whole window.

    `work` has names, kinds of memory and shapes, `ranges` are those of NVTX. The collectives of a
    report that is alone are looked at where nothing hides a material part.
    """
    steady = scope.steady_places(report, work) or {}
    windows = {place: state.window for place, state in steady.items()} or None
    idle = idle_report(report, scope, communication, work, windows, ranges)
    traits = {
        "has_ranges": scope.narrow(report, ranges).rows > 0,
        "traced": report.kind == "torch",
        "costly": _costly(report, ranges),
    }
    source = _Source(report, scope, idle, steady, traits)
    matters = idle.communicates.any() and any(
        not scope.alone or row.exposed_communication_ns >= MATERIAL * row.window_ns
        for row in (each.budget for each in idle.budgets)
    )
    clocks = RankPart(tuple(clocks_in(report)), NO_LOG, mpi_log(report))
    part = rank_part(report, scope) if matters else clocks
    return ReportEvidence(
        recorded(report, scope, work=work, is_steady=bool(steady), part=part),
        {budget.place: _device(source, budget) for budget in idle.budgets},
        steady,
        host="" if idle.budgets else _sampled(report),
    )


def _costly(report: SystemReport, ranges: Frame) -> str:
    """What the profiler adds to each operator, for people; empty where it adds little."""
    if report.kind == "torch" and report.frame("python_functions", ("start_ns",)).rows:
        return f"recording Python's stacks (with_stack) {LONGER}"
    if any(map(_OPERATOR.search, ranges.labels("name").values)):
        return f"a range for each operator (emit_nvtx) {LONGER}"
    return ""


def _sampled(report: SystemReport) -> str:
    """The functions in which a report's CPU samples were taken most often."""
    samples = short_modules(report.frame("cpu_samples", SAMPLE_COLUMNS))
    if not samples.rows:
        return ""
    at = samples.ints("time_ns")
    return most_sampled(Spans.of(int(at.min()), int(at.max()) + 1), samples)


@dataclass(frozen=True)
class _Source:
    """One report's work and why its devices were idle; `traits` are the same of all of them."""

    report: SystemReport
    scope: Scope
    idle: IdleReport
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
                held = int(max(used.live[1:].max(initial=0), used.reserved.max(initial=0)))
                peaks[pid, device] = max(peaks.get((pid, device), 0), held)
        return peaks


def _device(source: _Source, budget: RankedBudget) -> Evidence:
    """The row of one device."""
    place, window, idle = budget.place, budget.budget.window, source.idle
    on_device = idle.work.kernels.rows_at(pid=place[0], device=place[1])
    frames = [frame.at(pid=place[0], device=place[1]) for frame in idle.work]
    kernels, operations, graphs = frames
    apart = idle.communicates[on_device]
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
    chain, gaps = idle.launched.chain, idle.gaps[place]
    calls = chain.frame(chain.notable[chain.pid[chain.notable] == place[0]])
    row = _with_begin(row, source, frames, place, calls)
    if not source.report.calls.recorded:
        idle_time = window - (spans_of(kernels) | others)
        worst = Place.worst(idle_time.starts, idle_time.ends)
        return row.having({"unknown": Group(alone_ns=budget.budget.idle_ns, worst=worst)})
    # rows of the gaps are those of all kernels
    waits = launching_ns(idle.work.kernels, idle.communicates | ~on_device, gaps)
    short = replace(row["short"], alone_ns=row["short"].busy_ns + waits)
    row = row.having({"short": short})
    row = with_idle(row, idle.launched, gaps, calls, idle.events[place[0]])
    launch = idle.launched.launch[: len(on_device)][on_device]
    lacking = int(np.count_nonzero(launch == NO_TIME))
    also = f"{lacking:,} of {len(launch):,} kernels have no recorded launch" if lacking else ""
    return row.having({"unknown": replace(row["unknown"], also=also)})


def _slowed(kernels: Frame, apart: NDArray[np.bool_], budget: TimeBudget) -> Group:
    """What communication beside them costs the kernels of a window, most of all one of them."""
    if budget.overlap_ns < MATERIAL * budget.window_ns:
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
    source: _Source,
    frames: Sequence[Frame],
    place: tuple[int, int],
    calls: Frame,
) -> Evidence:
    """A device's row with what is known of its iterations, and of what came before them."""
    first, last = bounds_of(frames) or (0, 0)
    steady, launched = source.steady.get(place), source.idle.launched
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
