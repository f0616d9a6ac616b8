"""Reports of one job: which rank each process is, and the frames of all ranks in one: each report's
rows with their ranks, on a common clock."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from nsightpy.readers.nsys.identity import decide_ranks, evidence_for
from nsightpy.report_sets.rank_notes import (
    claim_notes,
    guess_notes,
    notes_by_report,
    other_times,
    repeated_captures,
)
from nsightpy.report_sets.report_set import Mapped, ReportSet
from nsightpy.reports.system import SystemReport
from nsightpy.results import Note
from nsightpy.units import listed
from nsightpy.workers.outcomes import Run, here

T = TypeVar("T")

# So many files that are no reports are named; the others are counted.
MOST_PASSED_BY = 3


class RankSet(ReportSet[SystemReport]):
    """Reports of one job in natural order, each process with its rank and the evidence for it."""

    _ranked = False
    # earlier traces of their processes
    passed_by: tuple[Path, ...] = ()

    @property
    def notes(self) -> list[Note]:
        """Notes of all reports; with several, those that name the same fact are counted."""
        named = []
        for report in self.readable:
            named.append((report.path.name, report.notes))
            report.close()
        return [*self.failure_notes, *self._rank_notes(), *notes_by_report(named)]

    def map(
        self,
        function: Callable[[SystemReport], T],
        *,
        jobs: int | None = None,
        ranked: bool = False,
        identified: bool = False,
    ) -> Mapped[SystemReport, T]:
        """Run a function on every report, as `ReportSet.map` does.

        `ranked` finds the ranks first, `identified` after, for functions that need none. A report
        alone says its own where they are needed: once it is read that costs less.
        """
        after = identified or (ranked and len(self.reports) == 1)
        work = partial(_identified, function=function) if after else function
        with self._engine(function, jobs) as run:
            if ranked and not after:
                self._find_ranks(run)
            values = self._outcomes(run, work, self._progress)
        if after:
            self._decide_ranks()
        return self._mapped(values)

    def find_ranks(self) -> None:
        """Give every process of every report its rank, from all the evidence at once."""
        self._find_ranks(here)

    def _find_ranks(self, run: Run[SystemReport]) -> None:
        if not self._ranked:
            self._outcomes(run, _identify)
            self._decide_ranks()

    def _decide_ranks(self) -> None:
        """Give the processes of readable reports ranks, from all their evidence at once; captures
        of several jobs are told apart by their order where some have no evidence."""
        if self._ranked:
            return
        by_path = {str(report.path): report for report in self.readable}
        evidence = {
            (path, pid): evidence_for(report.evidence, pid)
            for path, report in by_path.items()
            for pid in report.pids
        }
        decided = decide_ranks(evidence)
        if any(rank is None for rank, _ in decided.values()) and not self.one_job:
            decided = decide_ranks(dict.fromkeys(evidence, ()))
        for (path, pid), decision in decided.items():
            by_path[path].ranks[pid] = decision
        self._ranked = True

    @property
    def one_job(self) -> bool:
        """Whether the captures may be of one job; their ranks and clocks mean something then."""
        return not self._other_times

    @property
    def repeated(self) -> dict[Path, Path]:
        """Reports that hold the same processes of the same session as an earlier one."""
        return repeated_captures(self.readable)

    @property
    def _other_times(self) -> list[Note]:
        if len(self.reports) < 2:
            return []
        return self.derived("other times", lambda: other_times(self.readable))

    def _rank_notes(self) -> list[Note]:
        """What is said of the reports together: files passed by, other jobs, ranks."""
        notes: list[Note] = []
        if self.passed_by:
            others = listed((path.name for path in self.passed_by), MOST_PASSED_BY)
            notes.append(Note(f"not read, as later traces of the same processes are: {others}"))
        if self._ranked:
            notes += guess_notes(self.readable)
        if len(self.reports) < 2:
            return notes
        notes += self._other_times
        if self._ranked:
            notes += claim_notes(self.readable, self.repeated)
        return notes


def map_runs(
    runs: Sequence[RankSet], function: Callable[[SystemReport], T], *, ranked: bool = False
) -> list[list[tuple[SystemReport, T]]]:
    """Run a function on every report of several rank sets at once, each with ranks of its own.

    Settings are those of the first set; `ranked` finds the ranks first, else they are found on the
    way. A report that several sets share is read once; what fails is tallied by its sets. Raises
    ReportError where all reports fail.
    """
    every = {report.path: report for run in runs for report in run.reports}
    together = ReportSet(list(every.values()), **runs[0].settings)
    if ranked:
        for run in runs:
            run.find_ranks()
    values = {
        report.path: value
        for report, value in together.map(partial(_identified, function=function)).results
    }
    failures = {failure.path: failure for failure in together.failures}
    for run in runs:
        for report in run.reports:
            if str(report.path) in failures:
                run._failures[report.path] = failures[str(report.path)]
            elif every[report.path] is not report:
                vars(report).update(every[report.path].facts)
        run._decide_ranks()
    return [
        [(report, values[report.path]) for report in run.reports if report.path in values]
        for run in runs
    ]


def _identify(report: SystemReport) -> None:
    _ = report.evidence


def _identified(report: SystemReport, *, function: Callable[[SystemReport], T]) -> T:
    """The function's result, with the evidence for ranks found on the way."""
    result = function(report)
    _identify(report)
    return result
