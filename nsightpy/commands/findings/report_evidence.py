"""What the checks of `findings` need to know of a report, all of it found in one go."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nsightpy.analysis.collectives.log import NO_LOG
from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.findings.evidence import Evidence
from nsightpy.analysis.findings.thresholds import LEAST_SHARE
from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.work_graph.host_activity import most_sampled
from nsightpy.analysis.work_graph.launched_work import LaunchedWork, Work
from nsightpy.commands.findings.device_evidence import DeviceSource, device_evidence
from nsightpy.frames import Frame
from nsightpy.query.device_time import RankedBudget, rank_budgets
from nsightpy.query.idle_time import (
    SAMPLE_COLUMNS,
    followed_work,
    host_events,
    idle_intervals,
    short_modules,
)
from nsightpy.query.rank_alignment import RankPart, clocks_in, mpi_log, rank_part
from nsightpy.query.scope import Scope
from nsightpy.query.work_reading import Recorded, recorded
from nsightpy.reports.system import SystemReport

# The ranges that PyTorch's autograd makes of every operator.
_OPERATOR = re.compile(r", (?:seq|op_id) = \d")
SHARED = (
    "{} processes share one {}: each is judged by itself, so what is idle for one may be used by "
    "another."
)


@dataclass(frozen=True)
class ReportEvidence:
    """What one report contributes to the facts.

    `recorded` is what its work can be replayed by.
    """

    recorded: Recorded
    devices: Mapping[tuple[int, int], Evidence]
    budgets: Sequence[RankedBudget] = ()
    steady: Mapping[tuple[int, int], SteadyState] = field(default_factory=dict)
    kernels: int = 0
    unlaunched: int = 0
    has_ranges: bool = False
    has_calls: bool = False
    host: str = ""
    shared: tuple[str, ...] = ()


def report_evidence(
    report: SystemReport,
    scope: Scope,
    work: Work,
    ranges: Frame | None = None,
    communication: tuple[str, ...] = (),
) -> ReportEvidence:
    """The facts about each device: over its steady iterations, or else over its whole window.

    `work` has names, kinds of memory and shapes, `ranges` are those of NVTX. The collectives of a
    report that is alone are looked at where nothing hides a material part.
    """
    source, rows = _source(report, scope, work, ranges, communication)
    windows = {row.place: row.budget.window for row in rows}
    followed = source.followed
    gaps = {} if followed is None else idle_intervals(followed, windows, source.events)
    devices = {row.place: device_evidence(source, gaps, row) for row in rows}
    matters = bool(source.communicates.any()) and not (scope.alone and _hidden(rows))
    launch, part = source.launch, _rank_part(report, scope, matters)
    is_steady = bool(source.steady)
    return ReportEvidence(
        recorded(report, scope, work=source.work, is_steady=is_steady, part=part),
        devices,
        rows,
        source.steady,
        kernels=source.work.kernels.rows,
        unlaunched=0 if launch is None else int(np.count_nonzero(launch == NO_TIME)),
        has_ranges=source.has_ranges,
        has_calls=launch is not None,
        host="" if rows else _sampled(report),
        shared=_shared(report, [row.place for row in rows]),
    )


def _source(
    report: SystemReport,
    scope: Scope,
    work: Work,
    ranges: Frame | None,
    communication: tuple[str, ...],
) -> tuple[DeviceSource, Sequence[RankedBudget]]:
    """The work with its calls and steady iterations, and the budgets of its places."""
    communicates = is_communication(work.kernels.labels("name"), communication)
    followed = followed_work(report, work, communicates) if report.calls.recorded else None
    work = _launched(work, followed)
    steady = scope.steady_places(report, work) or {}
    counted = {place: place_steady.window for place, place_steady in steady.items()} or None
    rows = rank_budgets(report, scope, *work, communication=communication, windows=counted)
    source = DeviceSource(
        report,
        scope,
        work,
        communicates,
        followed,
        host_events(report, ranges),
        steady,
        has_ranges=ranges is not None and scope.narrow(report, ranges).rows > 0,
        costly=_costly(report, ranges),
    )
    return source, rows


def _costly(report: SystemReport, ranges: Frame | None) -> str:
    """What the profiler adds to each operator, for people; empty where it adds little."""
    if report.kind == "torch" and report.frame("python_functions", ("start_ns",)).rows:
        return "recording Python's stacks (with_stack) makes that longer than it is without"
    named = ranges is not None and any(map(_OPERATOR.search, ranges.labels("name").values))
    return (
        "a range for each operator (emit_nvtx) makes that longer than it is without"
        if named
        else ""
    )


def _launched(work: Work, followed: LaunchedWork | None) -> Work:
    """The same with when kernels were launched in place of the ids of their launches."""
    if followed is None or work.graphs.rows:
        return work
    kept = {name: work.kernels[name] for name in work.kernels if name != "correlation_id"}
    launch = followed.launch[: work.kernels.rows]
    return work._replace(kernels=Frame({**kept, "launch_ns": launch}))


def _rank_part(report: SystemReport, scope: Scope, communicates: bool) -> RankPart:
    """The clocks of the processes and the MPI calls, with the collectives where they matter."""
    if communicates:
        return rank_part(report, scope)
    return RankPart(tuple(clocks_in(report)), NO_LOG, mpi_log(report))


def _hidden(rows: Sequence[RankedBudget]) -> bool:
    """Whether communication costs no device a material part of its window."""
    return all(
        row.budget.exposed_communication_ns < LEAST_SHARE * row.budget.window_ns for row in rows
    )


def _shared(report: SystemReport, places: Sequence[tuple[int, int]]) -> tuple[str, ...]:
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
