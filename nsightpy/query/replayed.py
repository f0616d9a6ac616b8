"""The work graph of a job: which stretches of its work are looked at, and whether it is sure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, TypeVar

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.findings.gains import Replayable
from nsightpy.analysis.thresholds import MATERIAL
from nsightpy.analysis.work_graph.critical_path import (
    CriticalPath,
    Trust,
    chosen,
    critical_path,
    trust_of,
)
from nsightpy.analysis.work_graph.graph import WorkGraph
from nsightpy.analysis.work_graph.job_work import job_work
from nsightpy.analysis.work_graph.launched_work import WorkFrames
from nsightpy.analysis.work_graph.thresholds import MOST_OPERATIONS
from nsightpy.query.engine import Parts, Question
from nsightpy.query.rank_alignment import (
    CommonClock,
    align_parts,
    host_meetings,
    once,
)
from nsightpy.query.scope import Scope
from nsightpy.query.work_reading import Recorded, Stretch, graph_parts, recorded
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.reports.system import SystemReport
from nsightpy.units import listed, share_text

A = TypeVar("A")
# From this share of the critical path on it is a rank's as a whole.
LEAST_WHOLE = 0.9
NO_GAINS = "What mending would gain is not known, so that bounds give the order: {}."
REASONS = {
    "identity": "a replay of the recorded work is off by {identity:.1%}",
    "unexplained": "no recorded dependency explains {unexplained:.0%} of the critical path",
    "unlaunched": "of {unlaunched:.0%} of the operations the launching call is not known",
    "alone": "{alone:.0%} of the time is communication with ranks that are not captured",
}
MISSING = {
    "unlaunched": "the launching calls of {:.1%} of the operations",
    "alone": "the other ranks in communication of {:.1%} of the time",
    "opaque": "what runs inside CUDA graphs in {:.1%} of the time",
}
SHARES = tuple(share.name for share in fields(Trust))
SURE = (
    "Gains are by replay of {}: without a change it is off by {:.1%}, and no dependency explains "
    "{:.1%} of the critical path."
)


@dataclass(frozen=True)
class Job:
    """The reports of a question, and what puts them on one clock.

    `hides` says what the captures lack, so that gains would be wrong.
    """

    results: Sequence[tuple[SystemReport, Recorded]]
    alignment: Alignment | None
    one_job: bool
    hides: str = ""


@dataclass(frozen=True)
class Chosen:
    """What of a job is looked at: when by report, and how many iterations of all (0: unknown).

    Where nothing is, `reason` says why, for people.
    """

    stretches: Mapping[str, Sequence[Stretch]] = field(default_factory=dict)
    iterations: int = 0
    of: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Replayed:
    """What is known of the work of all ranks: its graph and path, where one could be made.

    Where it cannot be replayed `reason` says why not, for people. `alignment` is that of the
    graph's collectives.
    """

    reason: str = ""
    found: Replayable | None = None
    path: CriticalPath | None = None
    trust: Trust | None = None
    chosen: Chosen = field(default_factory=Chosen)
    alignment: Alignment | None = None

    @property
    def work(self) -> Replayable | None:
        """What can be replayed."""
        return None if self.reason else self.found

    @property
    def looked_at(self) -> str:
        """What was replayed, for people."""
        if not self.chosen.of:
            return "the whole window"
        return f"{self.chosen.iterations} of {self.chosen.of} iterations"

    @property
    def notes(self) -> tuple[str, ...]:
        """What gains rest on, or why there are none."""
        if self.work is None or self.trust is None:
            return (NO_GAINS.format(self.reason),) if self.reason else ()
        sure = SURE.format(self.looked_at, self.trust.identity, self.trust.unexplained)
        parts = ((text, getattr(self.trust, name)) for name, text in MISSING.items())
        missing = listed(text.format(share) for text, share in parts if share)
        return (f"{sure} Not known: {missing}." if missing else sure,)

    @property
    def path_text(self) -> str | None:
        """What the critical path is made of, for people; None where it is not known."""
        path = self.path
        if path is None or self.found is None or not path.length_ns:
            return None
        shares = [
            f"{name} {share_text(time, path.length_ns)}"
            for name, time in path.totals.items()
            if time >= MATERIAL * path.length_ns
        ]
        ranks = {unit: rank for (rank, _), unit in self.found.units.items() if rank is not None}
        spent = np.bincount(path.unit[path.unit >= 0], path.times.sum(axis=1)[path.unit >= 0])
        longest, whose = int(np.argmax(spent)) if len(spent) else -1, ""
        if len(self.found.units) > 1 and longest in ranks:
            whole = spent[longest] >= LEAST_WHOLE * path.length_ns
            whose = f" ({'' if whole else 'mostly '}rank {ranks[longest]})"
        return ", ".join(shares) + whose

    def record(self) -> dict[str, Any]:
        """The same as data."""
        shares = dict.fromkeys(SHARES) if self.trust is None else vars(self.trust)
        return {
            "iterations": self.chosen.iterations,
            "of_iterations": self.chosen.of,
            **{f"{name}_share": share for name, share in shares.items()},
            "reason": self.reason,
        }


def job_of_work(ranks: RankSet, results: Sequence[tuple[SystemReport, Recorded]]) -> Job:
    """The work of all reports on one clock."""
    results = once(ranks, results)
    parts = [(report, part.rank_part) for report, part in results]
    several = len(parts) > 1 or any(len(part.log) for _, part in parts)
    return Job(results, align_parts(parts) if several and ranks.one_job else None, ranks.one_job)


def path_question(then: Callable[[Replayed], A], communication: tuple[str, ...]) -> Question[A]:
    """What `then` makes of the critical path of the steady state, or of the part that is chosen."""

    def combined(parts: Parts[Recorded]) -> A | Question[A]:
        return replayed(job_of_work(parts.ranks, parts.results), parts.scope, communication, then)

    return Question(recorded, combined, ranked=True)


def replayed(
    job: Job,
    scope: Scope,
    communication: tuple[str, ...],
    then: Callable[[Replayed], A],
    *,
    by_variant: bool = False,
) -> A | Question[A]:
    """What `then` makes of the graph, for which the reports are asked once more."""
    chosen = _chosen(job, scope)
    if chosen.reason:
        return then(Replayed(chosen.reason))
    # gains are per iteration of the steady ones, but of all that a user chose
    wanted = chosen.of if scope.is_part else 1
    scale = wanted / chosen.iterations if chosen.iterations else 1.0

    def joined(parts: Parts[list[WorkFrames]]) -> A:
        blocks = [part for of_report in parts.values for part in of_report]
        if not blocks:
            return then(Replayed("the reports with work on a GPU cannot be read whole"))
        meetings = host_meetings((report, part.rank_part) for report, part in job.results)
        graph = WorkGraph.of(job_work(blocks, job.alignment, meetings))
        path = critical_path(graph)
        trust = trust_of(graph, path)
        reason = job.hides or REASONS.get(trust.reason, "").format(**vars(trust))
        window = "steady" if chosen.iterations and not scope.is_part else "whole"
        reports = {str(report.path): report for report, _ in parts.results}
        units = {
            (reports[path].rank_of(pid)[0], device): unit
            for unit, (path, pid, device) in enumerate(graph.work.units)
        }
        found = Replayable(graph, window, scale, units)
        return then(Replayed(reason, found, path, trust, chosen, job.alignment))

    work = partial(graph_parts, communication=communication, by_variant=by_variant)
    return Question(partial(work, stretches=chosen.stretches), joined)


def _chosen(job: Job, scope: Scope) -> Chosen:
    """The iterations that are looked at, or else the stretch of time."""
    if not job.one_job:
        return Chosen(reason="the captures are of several jobs")
    if not any(part.operations for _, part in job.results):
        return Chosen(reason=job.hides or "there is no GPU work")
    if any(part.steps for _, part in job.results):
        numbers = scope.iteration if isinstance(scope.iteration, frozenset) else frozenset({0})
        skips = max(numbers) - min(numbers) >= len(numbers)
        return _iterations(job, apart=skips or scope.is_timed or scope.nvtx is not None)
    if sum(part.operations for _, part in job.results) > MOST_OPERATIONS:
        return Chosen(reason="there are no steady iterations, and too many operations to see all")
    return Chosen({str(report.path): (part.stretch,) for report, part in job.results})


def _iterations(job: Job, *, apart: bool) -> Chosen:
    """Which of the wanted iterations of all ranks to look at; `apart`: each is a block."""
    if not all(part.steps for _, part in job.results if part.operations):
        return Chosen(reason="some reports have none of these iterations")
    clock = CommonClock() if job.alignment is None else CommonClock.of(job.alignment)
    steps = {
        (str(report.path), pid): (start, end, clock.moment(str(report.path), pid, int(start[0])))
        for report, part in job.results
        for pid, (start, end) in part.steps.items()
    }
    # those of all begin with those of the last one
    begin = max(first for _, _, first in steps.values())
    own = {}
    for process, (start, end, first) in steps.items():
        away = np.abs(start - start[0] + first - begin)
        at = int(np.argmin(away))
        if 2 * away[at] > np.median(end - start):
            return Chosen(reason="the iterations of the ranks are not of the same time")
        own[process] = start[at:], end[at:]
    count = min(len(start) for start, _ in own.values())
    taken = chosen(count, sum(part.operations for _, part in job.results), apart=apart)
    stretches: dict[str, Sequence[Stretch]] = {}
    for path in dict.fromkeys(path for path, _ in own):
        of_report = [times for (report, _), times in own.items() if report == path]
        stretches[path] = [
            (min(int(s[low]) for s, _ in of_report), max(int(e[high - 1]) for _, e in of_report))
            for low, high in taken
        ]
    return Chosen(stretches, sum(high - low for low, high in taken), count)
