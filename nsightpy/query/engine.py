"""Questions about reports: the work on each of them, and what is made of the parts.

Any number of questions about the same reports is answered in one loop: each report is opened once,
every work runs on it, then every question combines its parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from nsightpy.errors import NsightpyError, ReportError, unforeseen
from nsightpy.query.request import Request
from nsightpy.query.scope import Scope
from nsightpy.report_sets.rank_set import RankSet, map_runs
from nsightpy.report_sets.report_set import log_fault
from nsightpy.reports.system import SystemReport
from nsightpy.results import Table
from nsightpy.workers.outcomes import LOG

if TYPE_CHECKING:
    from nsightpy.query.rank_alignment import CommonClock, RankPart

T = TypeVar("T")
A = TypeVar("A")
Work: TypeAlias = Callable[[SystemReport, Scope], Any]


@dataclass(frozen=True)
class Question(Generic[A]):
    """Work on each report, and what is made of its parts: an answer, or a question about more.

    `work(report, scope)` runs where the report is, so that it must be importable; `combine(parts)`
    runs here. `ranked`: the work asks for the ranks of processes; `identified`: only what is made
    of its parts does. `clock`: moments of several reports are put on one clock. `top`: so many
    rows of a table, `of_each` value of that column. `presented`: a table as its command shows it.
    """

    work: Work
    combine: Callable[[Parts[Any]], A | Question[A]]
    ranked: bool = False
    identified: bool = False
    clock: bool = False
    of_each: str = ""
    top: int | None = None
    presented: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Parts(Generic[T]):
    """What the work gave, by report; `failures` are the reports in which it could not be done."""

    request: Request
    results: list[tuple[SystemReport, T]]
    failures: list[ReportError] = field(default_factory=list)

    @property
    def values(self) -> list[T]:
        return [value for _, value in self.results]

    @property
    def ranks(self) -> RankSet:
        """All reports, those that failed among them."""
        return self.request.ranks

    @property
    def scope(self) -> Scope:
        return self.request.scope

    @property
    def clock(self) -> CommonClock:
        """The clock that all reports share."""
        from nsightpy.query.rank_alignment import common_clock

        return common_clock(self.ranks)

    def placed(self) -> tuple[list[tuple[SystemReport, T]], list[str]]:
        """The results of reports that the common clock places, of captures that come twice once;
        what is said of those that it does not."""
        from nsightpy.query.rank_alignment import once

        clock, results = self.clock, once(self.ranks, self.results)
        lost = [f"left out, no clock: {r.path}" for r, _ in results if not clock.places(r)]
        return [each for each in results if clock.places(each[0])], lost


def answers(request: Request, questions: Sequence[Question[Any]]) -> list[Any]:
    """What each question says: its answer, or the error that left it without one.

    Raises that error where there is but one question, or none has an answer.
    """
    answered: list[Any] = list(questions)
    while waiting := [n for n, each in enumerate(answered) if isinstance(each, Question)]:
        try:
            parts = _parts(request, [answered[number] for number in waiting])
        except ReportError as error:
            if len(waiting) == len(answered):
                raise
            parts = [error] * len(waiting)
        for number, part in zip(waiting, parts, strict=True):
            answered[number] = _combined(answered[number], part, questions[number])
    if len(answered) == 1 and isinstance(answered[0], NsightpyError):
        raise answered[0]
    return answered


def answer(request: Request, question: Question[A]) -> A:
    """What the question says. Raises ReportError, and what its work and combining raise."""
    result: A = answers(request, [question])[0]
    return result


def answer_each(requests: Sequence[Request], question: Question[A]) -> list[A]:
    """What the question says of each of several jobs, whose reports are read in one loop.

    All of them are asked about the same part of theirs. Raises what its work and combining raise.
    """
    scope = requests[0].scope
    bounds = {path: own for each in requests for path, own in each.scope.own_bounds.items()}
    ask: Callable[..., Any] = question.work
    work = partial(ask, scope=replace(scope, own_bounds=bounds))
    jobs = [request.ranks for request in requests]
    mapped = map_runs(jobs, work, ranked=question.ranked or scope.ranks is not None)
    result: list[Any] = list(map(question.combine, map(Parts, requests, mapped)))
    return result


def _combined(
    question: Question[Any], parts: Parts[Any] | ReportError, first: Question[Any]
) -> Any:
    """What a question makes of its parts: a table has its inputs and all that must be said."""
    if isinstance(parts, ReportError):
        return parts
    try:
        result = question.combine(parts)
    except NsightpyError as error:
        return error
    if not isinstance(result, Table):
        return result
    table = result if first.presented is None else first.presented(result)
    table = parts.request.finish(table, *(error.left_out for error in parts.failures))
    return table.first(first.top, of_each=question.of_each)


def _parts(request: Request, questions: list[Question[Any]]) -> list[Parts[Any] | ReportError]:
    """One loop over the reports: what the work of each question gave."""
    works = [question.work for question in questions]
    clock = len(request.ranks) > 1 and any(question.clock for question in questions)
    ranked = any(question.ranked for question in questions)
    mapped = request.map(
        partial(_each, scope=request.scope, works=works, clock=clock),
        ranked=ranked,
        identified=not ranked and (clock or any(question.identified for question in questions)),
    )
    if clock:
        from nsightpy.query.rank_alignment import align_parts, once

        ranks, logs = request.ranks, [(r, log) for r, (_, log) in mapped.results if log]
        ranks.derived("alignment", lambda: align_parts(once(ranks, logs)))
    outcomes = [(report, values) for report, (values, _) in mapped.results]
    return [_part(request, outcomes, place) for place in range(len(works))]


def _part(
    request: Request, outcomes: Sequence[tuple[SystemReport, list[Any]]], place: int
) -> Parts[Any] | ReportError:
    """The parts of one question; the error where its work failed in every report."""
    results, failures = [], []
    for report, values in outcomes:
        outcome = values[place]
        log_fault(outcome)
        if isinstance(outcome, ReportError):
            failures.append(outcome)
        else:
            results.append((report, outcome))
    return failures[0] if failures and not results else Parts(request, results, failures)


def _each(
    report: SystemReport, *, scope: Scope, works: Sequence[Work], clock: bool
) -> tuple[list[Any], RankPart | None]:
    """What each work gives of a report, or its error; raises one where all of them fail."""
    outcomes = [_outcome(work, report, scope) for work in works]
    failed = [outcome for outcome in outcomes if isinstance(outcome, ReportError)]
    if failed and len(failed) == len(outcomes):
        raise failed[0]
    if not clock:
        return outcomes, None
    from nsightpy.query.rank_alignment import collective_part

    return outcomes, collective_part(report)


def _outcome(work: Work, report: SystemReport, scope: Scope) -> Any:
    since = time.time()
    try:
        return work(report, scope)
    except ReportError as error:
        return error
    except NsightpyError:
        raise
    except Exception as error:  # noqa: BLE001 - one question fails, the others are answered
        LOG.info("%s: where it happened:", report.path, exc_info=error)
        return unforeseen(report.path, error, since)
