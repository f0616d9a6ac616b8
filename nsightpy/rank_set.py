"""Many reports of one job: which rank each is, and one function run over all of them."""

from __future__ import annotations

import glob
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from nsightpy.errors import ReportError, UsageError
from nsightpy.ncu_reports import NCU_SUFFIXES, NcuReport, is_ncu_file
from nsightpy.readers.identity import (
    GUESS,
    decide_ranks,
    evidence_for,
    rank_by_regex,
    rank_expression,
    rank_in_name,
)
from nsightpy.reports import NSYS_SUFFIXES, SQLITE_SUFFIXES, NsysReport, Progress, open_report

T = TypeVar("T")
LOG = logging.getLogger("nsightpy")
Paths: TypeAlias = "str | Path | NsysReport | RankSet | Iterable[str | Path | NsysReport]"
NcuPaths: TypeAlias = "str | Path | NcuReport | Iterable[str | Path | NcuReport]"

ON_ERROR = ("skip", "raise")


@dataclass(frozen=True)
class Mapped(Generic[T]):
    """One function's results over a rank set, in the order of the reports, and what failed."""

    results: list[tuple[NsysReport, T]]
    failures: list[ReportError] = field(default_factory=list)

    @property
    def values(self) -> list[T]:
        return [value for _, value in self.results]


class RankSet:
    """Reports of one job in natural order, each process with its rank and the evidence for it."""

    def __init__(
        self,
        reports: Sequence[NsysReport],
        *,
        jobs: int | None = None,
        on_error: str = "skip",
        progress: Progress | None = None,
    ) -> None:
        if on_error not in ON_ERROR:
            raise UsageError(f"on_error must be one of {', '.join(ON_ERROR)}, not {on_error!r}")
        self.reports = list(reports)
        self.jobs = jobs
        self.on_error = on_error
        self._progress = progress
        self._failures: dict[Path, ReportError] = {}
        self._ranked = False

    def __len__(self) -> int:
        return len(self.reports)

    def __iter__(self) -> Iterator[NsysReport]:
        return iter(self.reports)

    def __repr__(self) -> str:
        return f"RankSet({[str(report.path) for report in self.reports]})"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The reports' paths as given."""
        return tuple(str(report.path) for report in self.reports)

    @property
    def failures(self) -> list[ReportError]:
        """The reports that could not be read so far, in their order, each with its reason."""
        return [self._failures[r.path] for r in self.reports if r.path in self._failures]

    @property
    def notes(self) -> list[str]:
        """Notes of all reports; with several, those that name the same fact are counted."""
        failed = [f"left out: {error.path}: {error.problem}" for error in self.failures]
        readable = [r for r in self.reports if r.path not in self._failures]
        told: dict[str, list[str]] = {}
        for report in readable:
            for note in report.notes:
                told.setdefault(note, []).append(report.path.name)
            report.close()
        return failed + [_attributed(note, names, len(readable)) for note, names in told.items()]

    def map(
        self, function: Callable[[NsysReport], T], *, ranked: bool = False, jobs: int | None = None
    ) -> Mapped[T]:
        """Run a function on every report; with jobs > 1 in that many processes.

        `ranked` finds the ranks first. The function and its result must be picklable for jobs > 1.
        A report that fails is tallied, or raised with on_error="raise", or when it is the only
        one. Raises ReportError when every report fails.
        """
        if ranked:
            self.find_ranks()
        reports = [report for report in self.reports if report.path not in self._failures]
        workers = min(jobs or self.jobs or 1, len(reports))
        outcomes = (
            _in_processes(function, reports, workers)
            if workers > 1
            else ((report, _attempt(function, report)) for report in reports)
        )
        by_path: dict[Path, T] = {}
        for report, outcome in self._followed(outcomes, len(reports)):
            if isinstance(outcome, ReportError):
                self._failed(report, outcome)
            else:
                by_path[report.path] = outcome[0]
        results = [(report, by_path[report.path]) for report in reports if report.path in by_path]
        if not results and self._failures:
            raise self.failures[0]
        return Mapped(results, self.failures)

    def _followed(self, outcomes: Iterable[T], total: int) -> Iterator[T]:
        """The same outcomes, each told to whoever wants to see progress."""
        for done, outcome in enumerate(outcomes, start=1):
            yield outcome
            if self._progress is not None and total > 1:
                self._progress(done / total, f"reading reports, {done} of {total}")

    def find_ranks(self) -> None:
        """Give every process of every report its rank, from all the evidence at once."""
        if self._ranked:
            return
        readable = []
        for report in self.reports:
            outcome = _attempt(_identify, report)
            if isinstance(outcome, ReportError):
                self._failed(report, outcome)
            else:
                readable.append(report)
        assign_ranks(readable)
        self._ranked = True

    def _failed(self, report: NsysReport, error: ReportError) -> None:
        if self.on_error == "raise" or len(self.reports) == 1:
            raise error
        self._failures[report.path] = error


def open_ranks(
    paths: Paths,
    *,
    use_cache: bool = True,
    rank_regex: str | None = None,
    jobs: int | None = None,
    on_error: str = "skip",
    progress: Progress | None = None,
) -> RankSet:
    """Open reports, directories and globs as one rank set, in natural order of their names.

    Each report counts once: however often it is named, and when its own export lies beside it.
    Raises ReportError when nothing there is a report.
    """
    if isinstance(paths, RankSet):
        return paths
    if rank_regex is not None:
        rank_expression(rank_regex)
    given = [paths] if isinstance(paths, str | Path | NsysReport) else list(paths)
    opened = [item for item in given if isinstance(item, NsysReport)]
    found = [p for item in given if not isinstance(item, NsysReport) for p in find_reports(item)]
    for path in _without_exports(found):
        report = open_report(path, use_cache=use_cache, rank_regex=rank_regex, progress=progress)
        if isinstance(report, NcuReport):
            problem = "is an Nsight Compute report, and this needs Nsight Systems reports"
            raise ReportError(path, problem, f"`nsightpy roofline {path.name}` reads it.")
        opened.append(report)
    reports: dict[Path, NsysReport] = {}
    for one in opened:
        reports.setdefault(one.path.resolve(), one)
    if not reports:
        raise UsageError("no reports given")
    ordered = sorted(reports.values(), key=lambda report: natural(str(report.path)))
    return RankSet(ordered, jobs=jobs, on_error=on_error, progress=progress)


def find_reports(given: str | Path) -> list[Path]:
    """The report files behind one path: itself, those in a directory, or those of a glob."""
    path = Path(given)
    if path.is_dir():
        found = [p for p in path.iterdir() if p.suffix in NSYS_SUFFIXES + SQLITE_SUFFIXES]
        if not found:
            deeper = sorted(
                p.parent for p in path.rglob("*") if p.suffix in NSYS_SUFFIXES + SQLITE_SUFFIXES
            )
            advice = (
                f"{deeper[0]} does."
                if deeper
                else "give a .nsys-rep file, or what `nsys export --type sqlite REPORT` writes."
            )
            raise ReportError(path, "holds no Nsight Systems report", advice)
    elif not path.exists() and glob.has_magic(str(given)):
        found = [Path(name) for name in glob.glob(str(given), recursive=True)]  # noqa: PTH207
        found = [p for p in found if p.is_file()]
        if not found:
            raise ReportError(path, "matches no file", "check the pattern.")
    else:
        return [path]
    return sorted(_without_exports(found), key=lambda p: natural(str(p)))


def _without_exports(found: Sequence[Path]) -> list[Path]:
    """The files without the exports of reports that are among them."""
    stems = {p.with_suffix("") for p in found if p.suffix in NSYS_SUFFIXES}
    return [p for p in found if p.suffix in NSYS_SUFFIXES or p.with_suffix("") not in stems]


def open_ncu_reports(paths: NcuPaths, *, rank_regex: str | None = None) -> list[NcuReport]:
    """Open Nsight Compute reports, directories and globs, in natural order, with their ranks.

    A rank is evident from the file's name only. Raises ReportError when nothing there is a report.
    """
    if rank_regex is not None:
        rank_expression(rank_regex)
    given = [paths] if isinstance(paths, str | Path | NcuReport) else list(paths)
    reports: dict[Path, NcuReport] = {}
    for item in given:
        if isinstance(item, NcuReport):
            reports.setdefault(item.path, item)
            continue
        for path in find_ncu_reports(item):
            reports.setdefault(path, NcuReport(path))
    if not reports:
        raise UsageError("no reports given")
    ordered = sorted(reports.values(), key=lambda report: natural(str(report.path)))
    told = {
        (str(one.path), 0): (rank_by_regex(one.path.name, rank_regex) if rank_regex else [])
        + rank_in_name(one.path.name)
        for one in ordered
    }
    decided = decide_ranks(told)
    for report in ordered:
        rank, source = decided[str(report.path), 0]
        if not source.startswith(GUESS):
            report.rank, report.rank_source = rank, source
    return ordered


def find_ncu_reports(given: str | Path) -> list[Path]:
    """The Nsight Compute files behind one path; of a report and its CSV, the report."""
    path = Path(given)
    if path.is_dir():
        found = [p for p in path.iterdir() if p.is_file() and is_ncu_file(p)]
    elif not path.exists() and glob.has_magic(str(given)):
        matches = [Path(name) for name in glob.glob(str(given), recursive=True)]  # noqa: PTH207
        found = [p for p in matches if p.is_file() and is_ncu_file(p)]
    elif path.suffix in NSYS_SUFFIXES + SQLITE_SUFFIXES:
        problem = "is no Nsight Compute report"
        raise ReportError(path, problem, f"`nsightpy summarize {path.name}` reads it.")
    else:
        return [path]
    if not found:
        advice = "give a .ncu-rep file, or what `ncu --csv --page raw` printed."
        raise ReportError(path, "holds no Nsight Compute report", advice)
    stems = {p.with_suffix("") for p in found if p.suffix in NCU_SUFFIXES}
    kept = [p for p in found if p.suffix in NCU_SUFFIXES or p.with_suffix("") not in stems]
    return sorted(kept, key=lambda p: natural(str(p)))


def natural(text: str) -> tuple[tuple[int, int | str], ...]:
    """A sort key by which rank2 comes before rank10; total, so that rank1 and rank01 have one."""
    parts = re.split(r"(\d+)", text)
    numbered = ((0, int(part)) if part.isdecimal() else (1, part) for part in parts)
    return (*numbered, (-1, text))


def assign_ranks(reports: Sequence[NsysReport]) -> None:
    """Give every process of these reports a rank, from all their evidence at once."""
    by_path = {str(report.path): report for report in reports}
    told = {
        (path, pid): evidence_for(report.evidence, pid)
        for path, report in by_path.items()
        for pid in report.pids
    }
    for (path, pid), decision in decide_ranks(told).items():
        by_path[path].ranks[pid] = decision


def _identify(report: NsysReport) -> None:
    _ = report.evidence


def _attempt(function: Callable[[NsysReport], T], report: NsysReport) -> tuple[T] | ReportError:
    began = time.perf_counter()
    try:
        return (function(report),)
    except ReportError as error:
        return error
    finally:
        report.close()
        LOG.info("%s: %.2f s", report.path, time.perf_counter() - began)


def _in_processes(
    function: Callable[[NsysReport], T], reports: Sequence[NsysReport], workers: int
) -> Iterator[tuple[NsysReport, tuple[T] | ReportError]]:
    with ProcessPoolExecutor(workers) as pool:
        pending = {pool.submit(_attempt, function, report): report for report in reports}
        for done in as_completed(pending):
            yield pending[done], done.result()


def default_jobs() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _attributed(note: str, names: list[str], reports: int) -> str:
    if reports == 1:
        return note
    if len(names) == reports:
        return f"{note} (all {reports} reports)"
    return f"{names[0]}: {note}" if len(names) == 1 else f"{note} ({len(names)} reports)"


__all__ = [
    "Mapped",
    "RankSet",
    "assign_ranks",
    "default_jobs",
    "find_reports",
    "natural",
    "open_ranks",
]
