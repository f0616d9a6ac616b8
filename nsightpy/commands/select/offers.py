"""What each report has to offer: its variants with representative launches, and their weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.ranking import durations
from nsightpy.analysis.selection.coverage import ProfiledProcess
from nsightpy.analysis.selection.launch_places import (
    COLUMNS,
    Launches,
    Mask,
    Portion,
    portions,
    variant_launches,
)
from nsightpy.commands.select.nvtx_filter import NvtxFilter, range_filter
from nsightpy.commands.select.settings import Criteria
from nsightpy.errors import UsageError
from nsightpy.frames import Frame
from nsightpy.names import measured_by_ncu
from nsightpy.query.iteration_search import PLACED
from nsightpy.query.scope import Scope, numbers
from nsightpy.query.steady_state import is_steady, steady_states
from nsightpy.readers.nsys.capture_start import CaptureStart
from nsightpy.reports.system import SystemReport

Offer = tuple[ProfiledProcess, Portion]


@dataclass(frozen=True, slots=True)
class ReportOffers:
    """What one report has to offer; times in ns. `ncu`: ncu measures its GPUs."""

    report: str
    offers: list[Offer]
    communication_ns: int
    kernels_ns: int
    opaque_launches: int
    opaque_ns: int
    ranges: NvtxFilter
    processes: int
    host: str
    steady: dict[int, SteadyState]
    start: CaptureStart
    ncu: bool


def offered(report: SystemReport, *, scope: Scope, criteria: Criteria) -> ReportOffers:
    """The variants of one report with their representatives; what other processes send back."""
    states = {} if criteria.whole else steady_states(report, scope)
    done, weighed, ranges = launches_in(report, scope, states)
    talking = is_communication(done.frame.labels("name"), criteria.communication) & weighed
    length = durations(done.frame)
    graphs = scope.narrow(
        report, report.frame("graph_launches", ("start_ns", "end_ns", "pid", "device"))
    )
    counted = weighed if criteria.with_communication else weighed & ~talking
    chosen = portions(done, counted, warm_up=criteria.warm_up, outlier=criteria.outlier)
    return ReportOffers(
        str(report.path),
        [(unit_of(report, portion.pid), portion) for portion in chosen],
        int(length[talking].sum()),
        int(length[weighed].sum()),
        graphs.rows,
        int(durations(graphs).sum()),
        ranges.without_mask(),
        len(report.pids),
        report.session.host,
        states,
        report.capture_start,
        measured_by_ncu(report.tool_version, *report.frame("devices").labels("name").values),
    )


def launches_in(
    report: SystemReport, scope: Scope, states: Mapping[int, SteadyState]
) -> tuple[Launches, Mask, NvtxFilter]:
    """All launches of a report, which of them count, and the NVTX filter that finds them."""
    ranges = range_filter(report, report.frame("kernels", PLACED), scope.nvtx)
    done = variant_launches(report.frame("kernels", _columns(scope)), ranges.visible)
    numbered = Frame({**done.frame, "row": np.arange(done.frame.rows, dtype=np.int64)})
    weighed = np.zeros(done.frame.rows, dtype=np.bool_)
    inside = scope.in_iterations(report, scope.within(report, numbered))
    weighed[inside.ints("row")] = True
    return done, weighed & done.visible & is_steady(done.frame, states), ranges


def _columns(scope: Scope) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*PLACED, *COLUMNS, *scope.columns)))


def unit_of(report: SystemReport, pid: int) -> ProfiledProcess:
    """Where a process was seen: its report, its rank and the evidence for that."""
    rank, source = report.rank_of(pid)
    return ProfiledProcess(str(report.path), rank, pid, source)


def of_ranks(offers: list[Offer], spec: str | int | None) -> list[Offer]:
    """The same offers, with samples only where they may be profiled. Raises UsageError."""
    ranks = numbers(spec, "rank")
    if ranks is None:
        return offers
    if not any(unit.rank in ranks for unit, _ in offers):
        raise UsageError(f"--profile-rank {spec}: no report is of that rank")
    return [
        (unit, portion if unit.rank in ranks else replace(portion, samples=()))
        for unit, portion in offers
    ]
