"""headroom: what ncu measured, brought back to the kernels of nsys, as ceilings of what to gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Unpack

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.intervals import Spans, clip
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.selection.headroom import StepParts, step_parts
from nsightpy.analysis.selection.headroom_join import LOOSE, match
from nsightpy.analysis.selection.launch_places import COLUMNS, Variant
from nsightpy.analysis.time_budget import places_of
from nsightpy.commands.headroom.gains import FIELDS, Headroom, gains, row_of
from nsightpy.commands.headroom.notes import headroom_notes
from nsightpy.commands.roofline.command import roofline
from nsightpy.frames import GPU_FRAMES, Frame
from nsightpy.query.command import command
from nsightpy.query.options import Common, Communication, Option, Top
from nsightpy.query.request import Request, running_options
from nsightpy.query.scope import Scope
from nsightpy.query.steady_state import is_steady, steady_notes, steady_states
from nsightpy.report_sets.one_file_sets import NcuPaths
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results.keys import VARIANT, row_keys
from nsightpy.results.rooflines import Roofline, RooflineVariant

PLACED = ("start_ns", "end_ns", "pid", "device")
WORTH_A_ROW = 0.01


@command(
    *FIELDS,
    keys=row_keys(VARIANT, "name", "grid", "block"),
    members={
        "step_ns": {"type": "integer"},
        "ceiling_share": {"type": ["number", "null"]},
        "unmatched": {"type": "array", "items": {"type": "object"}},
    },
    picture="nsightpy.render.plots.headroom_plot:headroom_figure",
)
def headroom(
    reports: Paths,
    *,
    ncu: Annotated[
        NcuPaths | Roofline,
        Option(
            "What ncu measured: .ncu-rep or ncu --csv files, folders, globs; up to the next "
            "option.",
            "NCU...",
            several=True,
        ),
    ],
    communication: Communication = (),
    whole: Annotated[bool, Option("Count warm-up, too, not the steady state only.")] = False,
    top: Top = None,
    **common: Unpack[Common],
) -> Headroom:
    """Kernels joined by name and shape with their measurements, the largest ceiling first.

    ceiling_share = share of the step x (1 - achieved / nearest roof): what reaching that roof
    would save, at most; never a forecast. The picture has lines of equal gain.
    """
    profiled = ncu if isinstance(ncu, Roofline) else roofline(ncu, **running_options(common))
    measured = profiled.variants
    request = Request.of(reports, **common)
    chosen = request.scope.nvtx is not None or request.scope.iteration is not None
    work = partial(
        part_of,
        scope=request.scope,
        measured=measured,
        communication=tuple(communication),
        whole=whole or chosen,
    )
    parts, clocks, states = zip(*request.map(work).values, strict=True)
    kernels = gains(parts, measured, max(clocks))
    step = sum(part.step_ns for part in parts)
    hit = {id(kernel.match.measured) for kernel in kernels if kernel.match is not None}
    worth = [k for k in kernels if k.match is not None or k.covered_ns >= WORTH_A_ROW * step]
    made = Headroom(
        "headroom",
        FIELDS,
        tuple(row_of(kernel, step) for kernel in worth),
        kernels=tuple(kernels),
        step_ns=step,
        unit="step" if all(states) else "window",
        unmatched=tuple(kernel for kernel in measured if id(kernel) not in hit),
    ).first(top)
    steady = steady_notes(state for of_report in states for state in of_report)
    return request.finish(made, *headroom_notes(made), *steady)


def part_of(
    report: SystemReport,
    *,
    scope: Scope,
    measured: Sequence[RooflineVariant],
    communication: tuple[str, ...],
    whole: bool,
) -> tuple[StepParts, int, list[SteadyState]]:
    """What one report adds to the step, the highest clock of its devices in Hz (0: not known)."""
    states = {} if whole else steady_states(report, scope)
    columns = tuple(dict.fromkeys((*COLUMNS, "device", *scope.columns)))
    kernels = scope.narrow(report, report.frame("kernels", columns))
    kernels = kernels.take(is_steady(kernels, states))
    kernels = kernels.take(~is_communication(kernels.labels("name"), communication))

    def distance(variant: Variant) -> float | None:
        matched = match(variant, measured)
        exact = matched if matched is not None and matched.way != LOOSE else None
        roof = None if exact is None else exact.measured.typical.nearest_roof
        return None if roof is None else roof.distance

    clocks = report.frame("devices").ints("clock_hz")
    parts = step_parts(kernels, _windows(report, scope, states), distance)
    return parts, int(clocks.max(initial=0)), list(states.values())


def _windows(
    report: SystemReport, scope: Scope, states: Mapping[int, SteadyState]
) -> Mapping[tuple[int, int], Spans]:
    """Per process and device the time that counts: steady state, else first start to last end."""
    chosen = scope.windows(report)
    columns = tuple(dict.fromkeys((*PLACED, *scope.columns)))
    frames = [scope.within(report, report.frame(name, columns)) for name in GPU_FRAMES]
    done = Frame.concatenate([frame.select(PLACED) for frame in frames])
    first, last = scope.bounds(report)
    windows = {}
    for pid, device in places_of(done):
        rows = done.rows_at(pid=pid, device=device)
        low = int(done.ints("start_ns")[rows].min()) if first is None else first
        high = int(done.ints("end_ns")[rows].max()) if last is None else last
        if pid in states:
            low, high = states[pid].start_ns, states[pid].end_ns
        if chosen is None:
            windows[pid, device] = Spans.of(low, max(low, high))
        elif (pid, device) in chosen:
            windows[pid, device] = clip(chosen[pid, device], low, high)
    return windows
