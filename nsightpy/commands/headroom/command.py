"""headroom: what ncu measured, brought back to the kernels of nsys, as ceilings of what to gain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.intervals import Spans, clip, union
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.selection.headroom import StepParts, nearest_roof, step_parts
from nsightpy.analysis.selection.headroom_join import LOOSE, MeasuredKernel, match, measurements
from nsightpy.analysis.selection.launch_places import COLUMNS, Variant
from nsightpy.analysis.time_budget import places_of
from nsightpy.commands.headroom.gains import FIELDS, Headroom, gains, row_of
from nsightpy.commands.headroom.notes import headroom_notes
from nsightpy.commands.roofline.command import roofline
from nsightpy.frames import GPU_FRAMES, Frame
from nsightpy.query.request import Common, Request, running_options
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.query.steady_state import is_steady, steady_notes, steady_states
from nsightpy.report_sets.one_file_sets import NcuPaths
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results.rooflines import Roofline

PLACED = ("start_ns", "end_ns", "pid", "device")
WORTH_A_ROW = 0.01
# What its document holds beside rows; see Headroom.members.
MEMBERS = {
    "step_ns": {"type": "integer"},
    "ceiling_share": {"type": ["number", "null"]},
    "unmatched": {"type": "array", "items": {"type": "object"}},
}


@command_function
def headroom(
    reports: Paths,
    *,
    ncu: NcuPaths | Roofline,
    communication: str | Iterable[str] = (),
    whole: bool = False,
    top: int | None = None,
    **common: Unpack[Common],
) -> Headroom:
    """The kernels of nsys reports with what `ncu` measured of them, largest ceiling first; ns.

    share is a kernel's part of the step: the union of its launches over the devices' windows,
    those of the steady state unless `whole` (or a stretch of time or an NVTX range is given).
    ceiling_share = share x (1 - roof_fraction): what reaching the nearest roof would save, at most.
    Measurements are matched by mangled name and geometry, by function and geometry, else loosely.
    `ncu` may be what `roofline` made of the measurements. Raises UsageError and ReportError.
    """
    profiled = ncu if isinstance(ncu, Roofline) else roofline(ncu, **running_options(common))
    measured = measurements(profiled.variants)
    request = Request.of(reports, **common)
    work = partial(
        part_of,
        scope=request.scope,
        measured=measured,
        communication=(communication,) if isinstance(communication, str) else tuple(communication),
        whole=whole or request.scope.nvtx is not None or request.scope.iteration is not None,
    )
    of_reports = request.map(work).values
    clock = max((part.clock_hz for part in of_reports), default=0)
    kernels = gains([part.parts for part in of_reports], measured, clock)
    step = sum(part.parts.step_ns for part in of_reports)
    hit = {kernel.match.measured.number for kernel in kernels if kernel.match is not None}
    unmatched = tuple(kernel for kernel in measured if kernel.number not in hit)
    worth = [k for k in kernels if k.match is not None or k.covered_ns >= WORTH_A_ROW * step]
    made = Headroom(
        "headroom",
        FIELDS,
        tuple(row_of(kernel, step) for kernel in worth),
        kernels=tuple(kernels),
        step_ns=step,
        unit="step" if all(part.steady for part in of_reports) else "window",
        unmatched=unmatched,
    )
    devices = sum(part.devices for part in of_reports)
    steady = steady_notes(state for part in of_reports for state in part.steady)
    return request.finish(made.first(top), *headroom_notes(made, devices), *steady)


@dataclass(frozen=True, slots=True)
class Part:
    """One report's parts of the step, its devices and their highest clock in Hz (0: not known)."""

    parts: StepParts
    devices: int
    clock_hz: int
    steady: list[SteadyState]


def part_of(
    report: SystemReport,
    *,
    scope: Scope,
    measured: Sequence[MeasuredKernel],
    communication: tuple[str, ...],
    whole: bool,
) -> Part:
    """What one report adds to the step; what other processes send back."""
    columns = tuple(dict.fromkeys((*COLUMNS, "device", *scope.columns)))
    whole_frame = report.frame("kernels", (*PLACED, "correlation_id", "name"))  # held: read once
    states = {} if whole else steady_states(report, scope)
    windows = _windows(report, scope, states)
    kernels = scope.narrow(report, report.frame("kernels", columns))
    kernels = kernels.take(is_steady(kernels, states))
    del whole_frame
    talking = is_communication(kernels.labels("name"), communication)
    distances: dict[Variant, float | None] = {}

    def distance(variant: Variant) -> float | None:
        if variant not in distances:
            matched = match(variant, measured)
            exact = matched if matched is not None and matched.way != LOOSE else None
            roof = None if exact is None else nearest_roof(exact.measured.typical)
            distances[variant] = None if roof is None else roof.distance
        return distances[variant]

    clocks = report.frame("devices").ints("clock_hz")
    parts = step_parts(kernels.take(~talking), windows, distance)
    return Part(parts, len(windows), int(clocks.max(initial=0)), list(states.values()))


def _windows(
    report: SystemReport, scope: Scope, states: Mapping[int, SteadyState]
) -> Mapping[tuple[int, int], Spans]:
    """Per process and device the time that counts: steady state, else first start to last end."""
    chosen = scope.windows(report)
    columns = tuple(dict.fromkeys((*PLACED, *scope.columns)))
    frames = [scope.within(report, report.frame(name, columns)) for name in GPU_FRAMES]
    done = Frame.concatenate([frame.select(PLACED) for frame in frames])
    clipped = {}
    for pid, device in places_of(done):
        mine = done.rows_at(pid=pid, device=device)
        start, end = done.ints("start_ns")[mine], done.ints("end_ns")[mine]
        first, last = scope.bounds(report)
        low = int(start.min()) if first is None else first
        high = int(end.max()) if last is None else last
        if pid in states:
            low, high = states[pid].start_ns, states[pid].end_ns
        whole = union(start[:1] * 0 + low, end[:1] * 0 + max(low, high))
        if chosen is None:
            clipped[pid, device] = whole
        elif (pid, device) in chosen:
            clipped[pid, device] = clip(chosen[pid, device], low, high)
    return clipped
