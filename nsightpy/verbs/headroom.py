"""headroom: what ncu measured, brought back to the kernels of nsys, as ceilings of what to gain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Unpack

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.intervals import Spans, clip, union
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.selection.headroom import (
    APART,
    Roof,
    StepParts,
    nearest_roof,
    step_parts,
    unlike,
)
from nsightpy.analysis.selection.headroom_join import LOOSE, Match, Measured, match, measurements
from nsightpy.analysis.selection.launch_places import COLUMNS, Variant, variant_of
from nsightpy.analysis.tally import merge
from nsightpy.analysis.time_budget import places_of
from nsightpy.frames import Frame
from nsightpy.rank_set import NcuPaths, Paths
from nsightpy.reports import NsysReport
from nsightpy.results import Field, Table, Value
from nsightpy.units import format_time
from nsightpy.verbs.request import Common, Request
from nsightpy.verbs.roofline import roofline
from nsightpy.verbs.scope import Scope
from nsightpy.verbs.selection.plan import shaped
from nsightpy.verbs.steady_windows import is_steady, steady_notes, steady_states

FIELDS = (
    Field("name", "text"),
    Field("share", "ratio", 4),
    Field("nsys_med_ns", "ns", 1),
    Field("ncu_ns", "ns"),
    Field("sol_compute_pct", "%", 1),
    Field("sol_memory_pct", "%", 1),
    Field("roof_fraction", "ratio", 4),
    Field("classification", "text"),
    Field("ceiling_share", "ratio", 4),
    Field("duration_ratio", "ratio", 2),
    Field("matched_by", "text"),
    Field("roof", "text"),
    Field("grid", "text"),
    Field("block", "text"),
    Field("instances"),
    Field("reason", "text"),
)
GPU_FRAMES = ("kernels", "memory_operations", "graph_launches")
PLACED = ("start_ns", "end_ns", "pid", "device")
WORTH_A_ROW = 0.01


@dataclass(frozen=True, slots=True)
class Kernel:
    """One variant: its part of the step, ns over all devices, and its measurement if any."""

    variant: Variant
    covered_ns: int
    disjoint_ns: int
    instances: int
    median_ns: float
    match: Match | None
    roof: Roof | None
    reason: str = ""

    @property
    def ncu_ns(self) -> int | None:
        return None if self.match is None else self.match.measured.typical.duration_ns

    @property
    def ratio(self) -> float | None:
        """ncu's duration / that of nsys."""
        return self.ncu_ns / self.median_ns if self.ncu_ns and self.median_ns else None

    @property
    def is_measured(self) -> bool:
        """Whether it has a roof, and from a launch of the same geometry."""
        return self.roof is not None and self.match is not None and self.match.way != LOOSE

    @property
    def gain_ns(self) -> float | None:
        """The ceiling: time of the step that reaching the roof would save."""
        return None if self.roof is None else self.covered_ns * self.roof.distance


@dataclass(frozen=True)
class Headroom(Table):
    """The table of `nsightpy headroom`, and behind it kernels, step and what matched nothing.

    `step_ns` sums the windows of all devices; `unmatched` are measurements of no kernel seen.
    """

    kernels: tuple[Kernel, ...] = ()
    step_ns: int = 0
    unmatched: tuple[Measured, ...] = field(default_factory=tuple)

    @property
    def measured(self) -> tuple[Kernel, ...]:
        """The kernels that have a roof of their own: not one matched loosely."""
        return tuple(kernel for kernel in self.kernels if kernel.is_measured)

    @property
    def ceiling_share(self) -> float | None:
        """The ceiling of all measured kernels together, as a share of the step; disjoint time."""
        if not self.step_ns:
            return None
        gains = (k.disjoint_ns * k.roof.distance for k in self.measured if k.roof is not None)
        return sum(gains) / self.step_ns


def headroom(
    reports: Paths,
    *,
    ncu: NcuPaths,
    communication: Iterable[str] = (),
    whole: bool = False,
    top: int | None = None,
    **common: Unpack[Common],
) -> Headroom:
    """The kernels of nsys reports with what ncu measured of them, largest ceiling first; ns.

    share is a kernel's part of the step: the union of its launches over the devices' windows,
    those of the steady state unless `whole` (or a stretch of time or an NVTX range is given).
    ceiling_share = share x (1 - roof_fraction): what reaching the nearest roof would save, at most.
    Measurements are matched by mangled name and geometry, by function and geometry, else loosely.
    Raises UsageError and ReportError.
    """
    measured = measurements(
        roofline(
            ncu,
            jobs=common.get("jobs"),
            on_error=common.get("on_error", "skip"),
            progress=common.get("progress"),
        ).variants
    )
    request = Request.of(reports, **common)
    work = partial(
        _parts,
        scope=request.scope,
        measured=measured,
        communication=tuple(communication),
        whole=whole or request.scope.nvtx is not None,
    )
    found = request.map(work).values
    clock = max((part.clock_hz for part in found), default=0)
    kernels = _kernels([part.parts for part in found], measured, clock)
    step = sum(part.parts.step_ns for part in found)
    hit = {kernel.match.measured.number for kernel in kernels if kernel.match is not None}
    unmatched = tuple(one for one in measured if one.number not in hit)
    ordered = sorted(kernels, key=_by_gain)
    worth = [k for k in ordered if k.match is not None or k.covered_ns >= WORTH_A_ROW * step]
    made = Headroom(
        "headroom",
        FIELDS,
        tuple(_row(kernel, step) for kernel in worth[:top]),
        request.ranks.inputs,
        kernels=tuple(ordered),
        step_ns=step,
        unmatched=unmatched,
    )
    devices = sum(part.devices for part in found)
    steady = steady_notes(state for part in found for state in part.steady)
    said = [*_notes(made, devices), *steady, *request.finish(made).notes]
    return Headroom(**{**made.__dict__, "notes": tuple(dict.fromkeys(said))})


@dataclass(frozen=True, slots=True)
class Part:
    """One report's parts of the step, its devices and their highest clock in Hz (0: not known)."""

    parts: StepParts
    devices: int
    clock_hz: int
    steady: list[SteadyState]


def _parts(
    report: NsysReport,
    *,
    scope: Scope,
    measured: Sequence[Measured],
    communication: tuple[str, ...],
    whole: bool,
) -> Part:
    columns = tuple(dict.fromkeys((*COLUMNS, "device", *scope.columns)))
    states = {} if whole else steady_states(report, scope)
    kernels = scope.narrow(report, report.frame("kernels", columns))
    kernels = kernels.take(is_steady(kernels, states))
    windows = _windows(report, scope, states)
    talking = is_communication(kernels.labels("name"), communication)
    distances: dict[Variant, float | None] = {}

    def distance(variant: Variant) -> float | None:
        if variant not in distances:
            found = match(variant, measured)
            exact = found if found is not None and found.way != LOOSE else None
            roof = None if exact is None else nearest_roof(exact.measured.typical)
            distances[variant] = None if roof is None else roof.distance
        return distances[variant]

    clocks = report.frame("devices").ints("clock_hz")
    parts = step_parts(kernels.take(~talking), windows, distance)
    return Part(parts, len(windows), int(clocks.max(initial=0)), list(states.values()))


def _windows(
    report: NsysReport, scope: Scope, states: Mapping[int, SteadyState]
) -> Mapping[tuple[int, int], Spans]:
    """Per process and device the time that counts: steady state, else first start to last end."""
    chosen = scope.windows(report)
    columns = tuple(dict.fromkeys((*PLACED, *scope.columns)))
    frames = [scope.within(report, report.frame(name, columns)) for name in GPU_FRAMES]
    done = Frame.concatenate([Frame({name: frame[name] for name in PLACED}) for frame in frames])
    found = {}
    for pid, device in places_of(done):
        mine = (done.ints("pid") == pid) & (done.ints("device") == device)
        start, end = done.ints("start_ns")[mine], done.ints("end_ns")[mine]
        low = int(start.min()) if scope.from_ns is None else scope.from_ns
        high = int(end.max()) if scope.to_ns is None else scope.to_ns
        if pid in states:
            low, high = states[pid].start_ns, states[pid].end_ns
        whole = union(start[:1] * 0 + low, end[:1] * 0 + max(low, high))
        if chosen is None:
            found[pid, device] = whole
        elif (pid, device) in chosen:
            found[pid, device] = clip(chosen[pid, device], low, high)
    return found


def _kernels(
    parts: Sequence[StepParts], measured: Sequence[Measured], clock_hz: int
) -> list[Kernel]:
    """The variants of all reports with their measurements."""
    if not parts:
        return []
    statistics = merge([part.times for part in parts]).statistics()
    made = []
    for group, key in enumerate(statistics.keys):
        variant = variant_of(key)
        found = match(variant, measured)
        typical = None if found is None else found.measured.typical
        median = float(statistics.median[group])
        reason = ""
        if typical is not None and found is not None and found.way != LOOSE:
            profiled = typical.machine.sm_hz
            reason = unlike(median, typical.duration_ns or 0, profiled, clock_hz or None)
        made.append(
            Kernel(
                variant,
                sum(part.variants.get(variant, 0) for part in parts),
                sum(part.disjoint.get(variant, 0) for part in parts),
                int(statistics.instances[group]),
                median,
                found,
                None if typical is None else nearest_roof(typical),
                reason,
            )
        )
    return made


def _by_gain(kernel: Kernel) -> tuple[object, ...]:
    return (-(kernel.gain_ns or 0), kernel.match is None, -kernel.covered_ns, kernel.variant.order)


def _row(kernel: Kernel, step_ns: int) -> tuple[Value, ...]:
    typical = None if kernel.match is None else kernel.match.measured.typical
    speed = None if typical is None else typical.speed
    gain = kernel.gain_ns
    return (
        kernel.variant.name or kernel.variant.base or kernel.variant.mangled,
        kernel.covered_ns / step_ns if step_ns else None,
        kernel.median_ns,
        kernel.ncu_ns,
        None if speed is None else speed.compute_pct,
        None if speed is None else speed.memory_pct,
        None if kernel.roof is None else kernel.roof.fraction,
        None if speed is None else speed.classification,
        None if gain is None or not step_ns else gain / step_ns,
        kernel.ratio,
        None if kernel.match is None else kernel.match.way,
        None if kernel.roof is None else kernel.roof.name,
        shaped(kernel.variant.grid),
        shaped(kernel.variant.block),
        kernel.instances,
        kernel.reason or None,
    )


def _notes(made: Headroom, devices: int) -> list[str]:
    """Denominators, the ceiling of all, doubts, and what matched nothing on either side."""
    step = made.step_ns
    meaning = (
        f"share is of the step: {format_time(step)}, the windows of {devices} devices added up "
        "(steady state where there is one, else first start to last end). A ceiling is what "
        "reaching the nearest roof would save at most, never a forecast."
    )
    notes = [meaning]
    together = made.ceiling_share
    if together is not None and made.measured:
        covered = sum(kernel.disjoint_ns for kernel in made.measured) / step
        notes.append(
            f"Together {len(made.measured)} measured kernels take {100 * covered:.1f} % of the "
            f"step, and at most {100 * together:.1f} % of it are to be gained (time in which "
            "several ran counts once)."
        )
    roofless = [k for k in made.kernels if k.match is not None and k.roof is None]
    if roofless:
        why = dict.fromkeys(
            text for k in roofless if k.match for text in k.match.measured.typical.missing
        )
        notes.append(f"{len(roofless)} measured kernels have no roof: {' '.join(why)}")
    apart = [k for k in made.kernels if k.reason]
    if apart:
        notes.append(
            f"{len(apart)} kernels took more than {APART} x as long in one tool as in the other: "
            "see reason. `--clock-control none --cache-control none` brings ncu nearer to nsys."
        )
    loose = [k for k in made.kernels if k.match is not None and k.match.way == LOOSE]
    if loose:
        notes.append(
            f"{len(loose)} kernels are matched loosely (same function, other geometry): their "
            "ceilings are guesses, and no part of the sum."
        )
    alone = [k for k in made.kernels if k.match is None]
    if alone:
        lost = sum(kernel.covered_ns for kernel in alone)
        names = "; ".join(k.variant.base or k.variant.name for k in alone[:3])
        notes.append(
            f"Not measured: {len(alone)} kernels of nsys with {100 * lost / max(step, 1):.1f} % "
            f"of the step ({names}); `nsightpy select` prints the commands for them."
        )
    if made.unmatched:
        names = "; ".join(
            f"{one.base or one.name} {one.grid} {one.block}" for one in made.unmatched[:5]
        )
        notes.append(f"Measured, but not seen by nsys: {len(made.unmatched)} kernels ({names}).")
    return notes
