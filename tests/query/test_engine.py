"""Many questions about some reports are answered in one loop, and one that fails fails alone."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from simulator import Export

from nsightpy.errors import NsightpyError, ReportError
from nsightpy.query.engine import Parts, Question, answers
from nsightpy.query.request import Request
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Table
from tests.support.samples import TRAINING as JOB


def kernels_in(report: SystemReport, scope: Scope) -> int:
    return scope.narrow(report, report.frame("kernels", ("start_ns", "end_ns"))).rows


def noted(report: SystemReport, scope: Scope, *, into: Path) -> int:
    """Counts how often the work ran, whichever process it ran in."""
    with into.open("a", encoding="utf-8") as file:
        file.write(f"{report.path.name}\n")
    return kernels_in(report, scope)


def refused(report: SystemReport, scope: Scope, *, where: str) -> int:
    if where in report.path.name:
        raise ReportError(report.path, "cannot be counted")
    return kernels_in(report, scope)


def table(parts: Parts[int]) -> Table:
    return Table("kernels", (Field("n"),), tuple((value,) for value in parts.values))


def test_every_question_is_asked_in_one_loop(tmp_path: Path) -> None:
    log = tmp_path / "log"
    question = Question(partial(noted, into=log), lambda parts: sum(parts.values))
    request = Request.of(JOB, jobs=1)
    first, second = answers(request, [question, question])
    assert first == second > 0
    names = log.read_text(encoding="utf-8").split()
    assert names == [name for path in request.ranks.inputs for name in [Path(path).name] * 2]


def test_an_answer_may_be_a_question_about_more() -> None:
    def again(parts: Parts[int]) -> Question[list[int]]:
        return Question(kernels_in, lambda more: [*parts.values, *more.values])

    counts = Question(kernels_in, lambda parts: parts.values)
    once, twice = answers(Request.of(JOB, jobs=1), [counts, Question(kernels_in, again)])
    assert twice == [*once, *once]


def test_a_question_that_fails_in_some_reports_lacks_those_and_in_all_is_its_error() -> None:
    questions = [Question(partial(refused, where=where), table) for where in ("rank1", "rank")]
    some, none, every = answers(Request.of(JOB, jobs=1), [*questions, Question(kernels_in, table)])
    assert (len(some), len(every)) == (3, 4)
    assert [note for note in some.notes if "cannot be counted" in note]
    assert not [note for note in every.notes if "cannot be counted" in note]
    assert isinstance(none, ReportError)


def _impossible(_: Parts[int]) -> Table:
    raise NsightpyError("nothing is called so")


@pytest.mark.parametrize(
    ("work", "combine"),
    [(partial(refused, where="rank"), table), (kernels_in, _impossible)],
)
def test_one_question_alone_raises(
    work: Callable[..., int], combine: Callable[[Parts[int]], Table]
) -> None:
    with pytest.raises(NsightpyError, match=r"cannot be counted|called so"):
        answers(Request.of(JOB, jobs=1), [Question(work, combine)])


@pytest.mark.parametrize(("paths", "clocks"), [(JOB, 4), (JOB / "train_rank0.sqlite", 0)])
def test_the_clock_of_all_ranks_is_there_where_it_is_asked_for(paths: Path, clocks: int) -> None:
    offsets = Question(kernels_in, lambda parts: len(parts.clock.fits), clock=True)
    assert answers(Request.of(paths, jobs=1), [offsets]) == [clocks]


def known_ranks(report: SystemReport, scope: Scope) -> list[int | None]:
    return [report.rank_of(pid)[0] for pid in report.pids]


def test_work_that_asks_for_ranks_has_those_of_all_reports(tmp_path: Path) -> None:
    for number, name in enumerate("abc"):  # no evidence: the rank is the place among the others
        export = Export(tmp_path / f"{name}.sqlite")
        export.kernel(100, 200, "a", process=export.process(100 + number))
        export.write()
    after = Question(kernels_in, lambda parts: len(parts.ranks), identified=True, clock=True)
    first = Question(known_ranks, lambda parts: parts.values, ranked=True)
    _, ranks = answers(Request.of(tmp_path, jobs=1), [after, first])
    assert ranks == [[0], [1], [2]]
