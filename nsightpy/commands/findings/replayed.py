"""The graph of the work that findings are about: which stretches of it, and whether it is sure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.findings.facts import DeviceFacts, Facts
from nsightpy.analysis.findings.gains import Replayable
from nsightpy.analysis.work_graph.critical_path import CriticalPath, critical_path
from nsightpy.analysis.work_graph.graph import WorkGraph
from nsightpy.analysis.work_graph.part import GraphPart
from nsightpy.analysis.work_graph.thresholds import MOST_OPERATIONS
from nsightpy.analysis.work_graph.trust import Trust, chosen, trust_of
from nsightpy.commands.findings.report_facts import ReportFacts
from nsightpy.query.common_clock import CommonClock
from nsightpy.query.engine import Parts, Question
from nsightpy.query.scope import Scope
from nsightpy.query.work_reading import Stretch, graph_parts
from nsightpy.reports.system import SystemReport
from nsightpy.results import Finding

A = TypeVar("A")
# (report, process, device)
Device = tuple[str, int, int]
NO_GAINS = "What mending would gain is not known, so that bounds give the order: {}."
REASONS = {
    "identity": "a replay of the recorded work is off by {identity:.1%}",
    "unexplained": "no recorded dependency explains {unexplained:.0%} of the critical path",
    "unlaunched": "of {unlaunched:.0%} of the operations the launching call is not known",
    "alone": "{alone:.0%} of the time is communication with ranks that are not captured",
}
CHOSEN = "Gains are of {} iterations of {}, evenly chosen."


@dataclass(frozen=True)
class Job:
    """All reports of a question: their facts, by device too, and what puts them on one clock.

    `sampled`: not all collectives were looked at.
    """

    facts: Facts
    results: Sequence[tuple[SystemReport, ReportFacts]]
    devices: Mapping[Device, DeviceFacts]
    alignment: Alignment | None
    one_job: bool
    sampled: bool

    def doubt(self, scope: Scope, findings: Sequence[Finding]) -> str:
        """Why its work is not replayed, for people; empty where it may be."""
        if not self.facts.has_calls:
            return "no API calls were recorded"
        if scope.is_part:
            return "that needs whole captures, not a part of the time"
        if not self.one_job:
            return "the captures are of several jobs"
        if self.sampled:
            return "the capture holds too many collectives"
        hides = (finding.name for finding in findings if finding.severity == "error")
        return next(hides, "")


@dataclass(frozen=True)
class Replayed:
    """What is known of the work of all ranks: to replay, where that is sure, and its path.

    `notes` say why it is not, or which part of it was looked at.
    """

    work: Replayable | None = None
    path: CriticalPath | None = None
    notes: tuple[str, ...] = ()


def replayed(
    job: Job,
    scope: Scope,
    communication: tuple[str, ...],
    findings: Sequence[Finding],
    then: Callable[[Replayed], A],
) -> A | Question[A]:
    """What `then` makes of the graph, for which the reports are asked once more."""
    try:
        iterations, of, stretches = _stretches(job, scope, findings)
    except _NoGainsError as error:
        return then(Replayed(notes=(NO_GAINS.format(error),)))

    def joined(parts: Parts[list[GraphPart]]) -> A:
        made = [part for of_report in parts.values for part in of_report if len(part)]
        known = _replayable(job, WorkGraph.of(made, job.alignment), iterations)
        cut = (CHOSEN.format(iterations, of),) if iterations < of and known.work else ()
        return then(replace(known, notes=(*cut, *known.notes)))

    return Question(partial(_parts_of, stretches=stretches, communication=communication), joined)


class _NoGainsError(Exception):
    """Why work is not replayed, for people."""


def _parts_of(
    report: SystemReport,
    _: Scope,
    *,
    stretches: Mapping[str, Sequence[Stretch]],
    communication: tuple[str, ...],
) -> list[GraphPart]:
    return graph_parts(report, stretches.get(str(report.path), ()), communication)


def _stretches(
    job: Job, scope: Scope, findings: Sequence[Finding]
) -> tuple[int, int, dict[str, Sequence[Stretch]]]:
    """The iterations that are looked at, and of how many; and when they are, by report."""
    if doubt := job.doubt(scope, findings):
        raise _NoGainsError(doubt)
    if any(part.steps for _, part in job.results):
        return _iterations(job)
    if sum(part.operations for _, part in job.results) > MOST_OPERATIONS:
        raise _NoGainsError("there are no steady iterations, and too many operations to see all")
    return 0, 0, {str(report.path): (None,) for report, _ in job.results}


def _iterations(job: Job) -> tuple[int, int, dict[str, Sequence[Stretch]]]:
    """Which steady iterations of all ranks to look at: how many, of how many, when by report."""
    if not all(part.steps for _, part in job.results if part.operations):
        raise _NoGainsError("some reports have no steady iterations")
    clock = CommonClock() if job.alignment is None else CommonClock.of(job.alignment)
    steps = {
        (str(report.path), pid): (start, end, clock.moment(str(report.path), pid, int(start[0])))
        for report, part in job.results
        for pid, (start, end) in part.steps.items()
    }
    # the steady state of all begins with that of the last one
    begin = max(first for _, _, first in steps.values())
    own = {}
    for process, (start, end, first) in steps.items():
        away = np.abs(start - start[0] + first - begin)
        at = int(np.argmin(away))
        if 2 * away[at] > np.median(end - start):
            raise _NoGainsError("the steady iterations of the ranks are not of the same time")
        own[process] = start[at:], end[at:]
    count = min(len(start) for start, _ in own.values())
    taken = chosen(count, sum(part.operations for _, part in job.results))
    stretches: dict[str, Sequence[Stretch]] = {}
    for path in dict.fromkeys(path for path, _ in own):
        mine = [times for (report, _), times in own.items() if report == path]
        stretches[path] = [
            (min(int(s[low]) for s, _ in mine), max(int(e[high - 1]) for _, e in mine))
            for low, high in taken
        ]
    return sum(high - low for low, high in taken), count, stretches


def _replayable(job: Job, graph: WorkGraph, iterations: int) -> Replayed:
    """What can be done with a graph, as far as it explains what was recorded."""
    path = critical_path(graph)
    trust = trust_of(graph, path)
    if reason := _doubt(trust):
        return Replayed(notes=(NO_GAINS.format(reason),))
    units = {
        (job.devices[unit].rank, job.devices[unit].device): number
        for number, unit in enumerate(graph.work.units)
        if unit in job.devices
    }
    return Replayed(Replayable(graph, iterations, units), path)


def _doubt(trust: Trust) -> str:
    """Why a replay is not sure, for people; empty where it is."""
    return REASONS[trust.reason].format(**vars(trust)) if trust.reason else ""
