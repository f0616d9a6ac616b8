"""The step that kernels are a part of: its windows, and what ran in them, report by report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.intervals import Spans, clip, union
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.selection.headroom import StepParts, nearest_roof, step_parts
from nsightpy.analysis.selection.headroom_join import LOOSE, MeasuredKernel, match
from nsightpy.analysis.selection.launch_places import COLUMNS, Variant
from nsightpy.analysis.time_budget import places_of
from nsightpy.frames import GPU_FRAMES, Frame
from nsightpy.query.scope import Scope
from nsightpy.query.steady_state import is_steady, steady_states
from nsightpy.reports.system import SystemReport

PLACED = ("start_ns", "end_ns", "pid", "device")


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
        mine = (done.ints("pid") == pid) & (done.ints("device") == device)
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
