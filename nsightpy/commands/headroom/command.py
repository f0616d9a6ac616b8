"""headroom: what ncu measured, brought back to the kernels of nsys, as ceilings of what to gain."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Unpack

from nsightpy.analysis.selection.headroom_join import measurements
from nsightpy.commands.headroom.gains import FIELDS, Headroom, gains, row_of
from nsightpy.commands.headroom.notes import headroom_notes
from nsightpy.commands.headroom.steps import part_of
from nsightpy.commands.roofline.command import roofline
from nsightpy.ncu_set import NcuPaths
from nsightpy.query.request import Common, Request, running_options
from nsightpy.query.signature import command_function
from nsightpy.query.steady_state import steady_notes
from nsightpy.rank_opening import Paths
from nsightpy.results.rooflines import Roofline

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
        unmatched=unmatched,
    )
    devices = sum(part.devices for part in of_reports)
    steady = steady_notes(state for part in of_reports for state in part.steady)
    return request.finish(made.first(top), *headroom_notes(made, devices), *steady)
