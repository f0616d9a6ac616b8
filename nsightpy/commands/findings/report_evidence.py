"""What the checks of `findings` need to know of a report, all of it found in one go."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from nsightpy.analysis.collectives.log import NO_LOG
from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.findings.evidence import Evidence
from nsightpy.analysis.findings.thresholds import LEAST_SHARE
from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.work_graph.host_activity import most_sampled
from nsightpy.analysis.work_graph.launched_work import Work
from nsightpy.commands.findings.device_evidence import DeviceSource, device_evidence
from nsightpy.frames import Frame
from nsightpy.query import Scope, SystemReport
from nsightpy.query.device_time import (
    SAMPLE_COLUMNS,
    followed_work,
    host_events,
    idle_intervals,
    rank_budgets,
    short_modules,
)
from nsightpy.query.rank_alignment import RankPart, clocks_in, mpi_log, rank_part
from nsightpy.query.work_reading import Recorded, recorded

# The ranges that PyTorch's autograd makes of every operator.
_OPERATOR = re.compile(r", (?:seq|op_id) = \d")
SHARED = (
    "{} processes share one {}: each is judged by itself, so what is idle for one may be used by "
    "another."
)
LONGER = "makes that longer than it is without"


@dataclass(frozen=True)
class ReportEvidence:
    """What one report contributes: its devices by process and number, and what all share.

    `recorded` is what its work can be replayed by, `host` what its threads did where there is no
    GPU work, `shared` notes on GPUs of several processes.
    """

    recorded: Recorded
    devices: Mapping[tuple[int, int], Evidence]
    steady: Mapping[tuple[int, int], SteadyState] = field(default_factory=dict)
    host: str = ""
    shared: tuple[str, ...] = ()


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
    communicates = is_communication(work.kernels.labels("name"), communication)
    followed = followed_work(report, work, communicates) if report.calls.recorded else None
    steady = scope.steady_places(report, work) or {}
    windows = {place: state.window for place, state in steady.items()} or None
    budgets = rank_budgets(report, scope, work, communication, windows)
    events = host_events(report, ranges)
    windows = {row.place: row.budget.window for row in budgets}
    gaps = {} if followed is None else idle_intervals(followed, windows, events)
    source = DeviceSource(
        *(report, scope, work, communicates, followed, gaps, events, steady),
        traits={
            "has_ranges": scope.narrow(report, ranges).rows > 0,
            "traced": report.kind == "torch",
            "costly": _costly(report, ranges),
        },
    )
    matters = communicates.any() and any(
        not scope.alone or row.exposed_communication_ns >= LEAST_SHARE * row.window_ns
        for row in (each.budget for each in budgets)
    )
    clocks = RankPart(tuple(clocks_in(report)), NO_LOG, mpi_log(report))
    part = rank_part(report, scope) if matters else clocks
    return ReportEvidence(
        recorded(report, scope, work=work, is_steady=bool(steady), part=part),
        {budget.place: device_evidence(source, budget) for budget in budgets},
        steady,
        host="" if budgets else _sampled(report),
        shared=_shared(report, windows),
    )


def _costly(report: SystemReport, ranges: Frame) -> str:
    """What the profiler adds to each operator, for people; empty where it adds little."""
    if report.kind == "torch" and report.frame("python_functions", ("start_ns",)).rows:
        return f"recording Python's stacks (with_stack) {LONGER}"
    if any(map(_OPERATOR.search, ranges.labels("name").values)):
        return f"a range for each operator (emit_nvtx) {LONGER}"
    return ""


def _shared(report: SystemReport, places: Container[tuple[int, int]]) -> tuple[str, ...]:
    """What is said where several processes worked on one GPU."""
    gpus: dict[str, tuple[str, set[int]]] = {}
    devices = report.frame("devices").tuples("pid", "device", "name", "uuid")
    for pid, device, name, uuid in devices:
        if (pid, device) in places and uuid:
            gpus.setdefault(uuid, (name, set()))[1].add(pid)
    return tuple(SHARED.format(len(pids), name) for name, pids in gpus.values() if len(pids) > 1)


def _sampled(report: SystemReport) -> str:
    """The functions in which a report's CPU samples were taken most often."""
    samples = short_modules(report.frame("cpu_samples", SAMPLE_COLUMNS))
    if not samples.rows:
        return ""
    at = samples.ints("time_ns")
    return most_sampled(Spans.of(int(at.min()), int(at.max()) + 1), samples)
