"""What each report has to offer: its variants with representative launches, and their weight."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.ranking import durations
from nsightpy.analysis.selection.launch_places import COLUMNS, Portion, portions, variant_launches
from nsightpy.commands.select.nvtx_filter import range_filter
from nsightpy.names import measured_by_ncu
from nsightpy.query.iteration_search import PLACED
from nsightpy.query.scope import Scope
from nsightpy.query.steady_state import is_steady, steady_states
from nsightpy.readers.nsys.capture_start import CaptureStart
from nsightpy.reports.system import SystemReport


@dataclass(frozen=True, slots=True)
class Offers:
    """What one report has to offer; times in ns. `ncu`: ncu measures its GPUs."""

    portions: list[Portion]
    communication_ns: int
    kernels_ns: int
    opaque_ns: int
    nvtx: tuple[str, ...]
    processes: int
    host: str
    steady: list[SteadyState]
    start: CaptureStart
    ncu: bool


def offers_of(
    report: SystemReport,
    scope: Scope,
    *,
    communication: tuple[str, ...],
    with_communication: bool,
    whole: bool,
) -> Offers:
    """The variants of one report, each process's with the launch that represents them."""
    states = {} if whole else steady_states(report, scope)
    include, visible = range_filter(report, report.frame("kernels", PLACED), scope.nvtx)
    columns = tuple(dict.fromkeys((*PLACED, *COLUMNS)))
    launches = variant_launches(report.frame("kernels", columns), visible)
    frame = launches.frame
    inside = replace(scope, nvtx=None).mask(report, frame)
    weighed = inside & launches.visible & is_steady(frame, states)
    talking = is_communication(frame.labels("name"), communication) & weighed
    graphs = scope.read(report, "graph_launches", PLACED)
    return Offers(
        portions(launches, weighed if with_communication else weighed & ~talking),
        int(durations(frame)[talking].sum()),
        int(durations(frame)[weighed].sum()),
        int(durations(graphs).sum()),
        include,
        len(report.pids),
        report.session.host,
        list(states.values()),
        report.capture_start,
        measured_by_ncu(report.tool_version, *report.frame("devices").labels("name").values),
    )
