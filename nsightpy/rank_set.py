"""Many reports of one job: which rank each is, and one function run over all of them."""

from __future__ import annotations

import contextlib
import glob
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from nsightpy.dask_workers import on_dask
from nsightpy.errors import ReportError, UsageError
from nsightpy.readers.nsys.identity import (
    GUESS,
    decide_ranks,
    evidence_for,
    rank_by_regex,
    rank_expression,
    rank_in_name,
)
from nsightpy.readers.torch.sniff import TRACE_SUFFIXES, is_torch_trace
from nsightpy.reports.memory_snapshot import MemorySnapshot
from nsightpy.reports.ncu import NCU_SUFFIXES, NcuReport, is_ncu_file
from nsightpy.reports.nsys import NSYS_SUFFIXES, SQLITE_SUFFIXES
from nsightpy.reports.opening import open_report
from nsightpy.reports.system import Progress, SystemReport
from nsightpy.reports.torch import TorchTrace
from nsightpy.workers import Outcomes, Workers, default_jobs, here, one_reading_thread, travels

T = TypeVar("T")
Paths: TypeAlias = "str | Path | SystemReport | RankSet | Iterable[str | Path | SystemReport]"
NcuPaths: TypeAlias = "str | Path | NcuReport | Iterable[str | Path | NcuReport]"

Runner: TypeAlias = Callable[[Callable[[SystemReport], Any], Sequence[SystemReport]], Outcomes[Any]]

ON_ERROR = ("skip", "raise")
# So many captures that come twice are named, the others counted.
MOST_REPEATED = 3


@dataclass(frozen=True)
class Mapped(Generic[T]):
    """One function's results over a rank set, in the order of the reports, and what failed."""

    results: list[tuple[SystemReport, T]]
    failures: list[ReportError] = field(default_factory=list)

    @property
    def values(self) -> list[T]:
        return [value for _, value in self.results]


class RankSet:
    """Reports of one job in natural order, each process with its rank and the evidence for it."""

    def __init__(
        self,
        reports: Sequence[SystemReport],
        *,
        jobs: int | None = None,
        dask: object = None,
        on_error: str = "skip",
        progress: Progress | None = None,
    ) -> None:
        if on_error not in ON_ERROR:
            raise UsageError(f"on_error must be one of {', '.join(ON_ERROR)}, not {on_error!r}")
        self.reports = list(reports)
        self.jobs = jobs
        self.dask = dask
        self.on_error = on_error
        self._progress = progress
        self._failures: dict[Path, ReportError] = {}
        self._ranked = False

    def __len__(self) -> int:
        return len(self.reports)

    def __iter__(self) -> Iterator[SystemReport]:
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
        failed += self._rank_notes()
        readable = [r for r in self.reports if r.path not in self._failures]
        told: dict[str, list[str]] = {}
        for report in readable:
            for note in report.notes:
                told.setdefault(note, []).append(report.path.name)
            report.close()
        return failed + [_attributed(note, names, len(readable)) for note, names in told.items()]

    def map(
        self,
        function: Callable[[SystemReport], T],
        *,
        ranked: bool = False,
        identified: bool = False,
        jobs: int | None = None,
    ) -> Mapped[T]:
        """Run a function on every report: on `jobs` processors, or on Dask.

        By default as many workers as processors and memory allow, if there is enough to read. The
        function and its result then travel, so it must be importable; others run here. `ranked`
        finds the ranks first, `identified` after, for functions that need none. A report that
        fails is tallied, or raised with on_error="raise", or when it is the only one. Raises
        ReportError when every report fails.
        """
        with contextlib.ExitStack() as stack:
            run = self._runner(function, jobs, stack)
            if ranked:
                self._find_ranks(run)
            work = partial(_identified, function=function) if identified else function
            values = self._outcomes(run, work, progress=self._progress)
        if identified:
            self._decide_ranks()
        results = [
            (report, values[report.path]) for report in self.reports if report.path in values
        ]
        if not results and self._failures:
            raise self.failures[0]
        return Mapped(results, self.failures)

    def _runner(
        self, function: Callable[[SystemReport], T], jobs: int | None, stack: contextlib.ExitStack
    ) -> Runner:
        """How functions are run over reports; workers live as long as the stack."""
        reports = [report for report in self.reports if report.path not in self._failures]
        if self.dask is not None and travels(function):
            return partial(_to_dask, address=self.dask)
        wanted = jobs or self.jobs
        count = min(wanted or default_jobs(reports), len(reports))
        if wanted == 1:
            stack.enter_context(one_reading_thread())
        if count < 2 or not sys.executable or not travels(function):
            return here
        return stack.enter_context(Workers(count)).run

    def _outcomes(
        self,
        run: Runner,
        function: Callable[[SystemReport], T],
        progress: Progress | None = None,
    ) -> dict[Path, T]:
        """What the function returns, by path; failures are tallied."""
        reports = [report for report in self.reports if report.path not in self._failures]
        values: dict[Path, T] = {}
        for done, (report, outcome) in enumerate(run(function, reports), start=1):
            if isinstance(outcome, ReportError):
                self._failed(report, outcome)
            else:
                if outcome.facts is not None:
                    report.adopt(outcome.facts)
                values[report.path] = outcome.value
            if progress is not None and len(reports) > 1:
                progress(done / len(reports), f"reading reports, {done} of {len(reports)}")
        self._raise_wanted()
        return values

    def find_ranks(self) -> None:
        """Give every process of every report its rank, from all the evidence at once."""
        self._find_ranks(here)

    def _find_ranks(self, run: Runner) -> None:
        if not self._ranked:
            self._outcomes(run, _identify)
            self._decide_ranks()

    def _decide_ranks(self) -> None:
        if not self._ranked:
            assign_ranks([report for report in self.reports if report.path not in self._failures])
            self._ranked = True

    @property
    def repeated(self) -> dict[Path, Path]:
        """Reports that hold the same processes of the same session as an earlier one."""
        seen: dict[tuple[object, ...], Path] = {}
        found: dict[Path, Path] = {}
        for report in self.reports:
            if report.path in self._failures:
                continue
            own = report.session
            moment = (own.host, own.utc_ns, own.system_clock_ns, own.duration_ns)
            if not own.uuid and own.utc_ns is None:
                continue
            key = (own.uuid or moment, tuple(report.pids))
            if seen.setdefault(key, report.path) != report.path:
                found[report.path] = seen[key]
        return found

    def _rank_notes(self) -> list[str]:
        """Captures that come twice, ranks that several reports claim, ranks that are missing."""
        if not self._ranked or len(self.reports) < 2:
            return []
        repeated = self.repeated
        notes = [f"{again} repeats the capture of {first}" for again, first in repeated.items()]
        if (many := len(notes) - MOST_REPEATED) > 1:
            notes[MOST_REPEATED:] = [f"{many} more reports repeat the capture of an earlier one"]
        owners: dict[int, list[str]] = {}
        guessed = False
        for report in self.reports:
            if report.path in repeated or report.path in self._failures:
                continue
            for rank, source in report.ranks.values():
                if rank is not None:
                    owners.setdefault(rank, []).append(report.path.name)
                    guessed |= source.startswith(GUESS)
        for rank, names in sorted(owners.items()):
            if len(names) > 1:
                shown = ", ".join(dict.fromkeys(names))
                notes.append(f"rank {rank} is claimed {len(names)} times: {shown}")
        missing = sorted(set(range(max(owners, default=-1) + 1)) - set(owners))
        if missing and not guessed:
            more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
            shown = ", ".join(map(str, missing[:8]))
            notes.append(f"ranks without a report here: {shown}{more}")
        return notes

    def _failed(self, report: SystemReport, error: ReportError) -> None:
        self._failures[report.path] = error

    def _raise_wanted(self) -> None:
        """Raise the first failure, in the order of the reports, where failures end the work."""
        if self._failures and (self.on_error == "raise" or len(self.reports) == 1):
            raise self.failures[0]


def open_ranks(
    paths: Paths,
    *,
    use_cache: bool = True,
    rank_regex: str | None = None,
    jobs: int | None = None,
    dask: object = None,
    on_error: str = "skip",
    progress: Progress | None = None,
) -> RankSet:
    """Open reports, directories and globs as one rank set, in natural order of their names.

    Each report counts once: however often it is named, and when its own export lies beside it.
    jobs: worker processes; dask: a scheduler's address or file, or a Client.
    Raises ReportError when nothing there is a report.
    """
    if isinstance(paths, RankSet):
        return paths
    if rank_regex is not None:
        rank_expression(rank_regex)
    given = [paths] if isinstance(paths, str | Path | SystemReport) else list(paths)
    opened = [item for item in given if isinstance(item, SystemReport)]
    found = [p for item in given if isinstance(item, str | Path) for p in find_reports(item)]
    for path in _without_exports(found):
        report = open_report(path, use_cache=use_cache, rank_regex=rank_regex, progress=progress)
        if isinstance(report, NcuReport):
            problem = "is an Nsight Compute report, and this needs Nsight Systems reports"
            raise ReportError(path, problem, f"`nsightpy roofline {path.name}` reads it.")
        if isinstance(report, MemorySnapshot):
            problem = "is a memory snapshot of PyTorch, and this needs reports or traces"
            raise ReportError(path, problem, f"`nsightpy memory-usage {path.name}` reads it.")
        opened.append(report)
    reports: dict[Path, SystemReport] = {}
    for one in opened:
        reports.setdefault(one.path.resolve(), one)
    if not reports:
        raise UsageError("no reports given")
    ordered = sorted(reports.values(), key=lambda report: natural(str(report.path)))
    _refuse_mixture(ordered)
    return RankSet(ordered, jobs=jobs, dask=dask, on_error=on_error, progress=progress)


def find_reports(given: str | Path) -> list[Path]:
    """The report files behind one path: itself, those in a directory, or those of a glob."""
    path = Path(given)
    if path.is_dir():
        found = [p for p in path.iterdir() if _is_report_file(p)]
        if not found:
            deeper = sorted(p.parent for p in path.rglob("*") if _is_report_file(p))
            advice = (
                f"{deeper[0]} does."
                if deeper
                else "give a .nsys-rep file, or what `nsys export --type sqlite REPORT` writes."
            )
            raise ReportError(path, "holds no Nsight Systems report and no PyTorch trace", advice)
    elif not path.exists() and glob.has_magic(str(given)):
        found = [Path(name) for name in glob.glob(str(given), recursive=True)]  # noqa: PTH207
        found = [p for p in found if p.is_file()]
        if not found:
            raise ReportError(path, "matches no file", "check the pattern.")
    else:
        return [path]
    return sorted(_without_exports(found), key=lambda p: natural(str(p)))


def _is_report_file(path: Path) -> bool:
    """Whether a file of a folder is a report: by its name, or as a trace by what it holds."""
    if path.suffix in NSYS_SUFFIXES + SQLITE_SUFFIXES:
        return True
    return path.name.lower().endswith(TRACE_SUFFIXES) and is_torch_trace(path)


def _refuse_mixture(reports: Sequence[SystemReport]) -> None:
    """Raise ReportError for a rank set of both tools: their clocks and names have little in
    common."""
    traces = [report for report in reports if report.kind == TorchTrace.kind]
    others = [report for report in reports if report.kind != TorchTrace.kind]
    if traces and others:
        problem = f"is a PyTorch trace, and {others[0].path} is a report of Nsight Systems"
        advice = "one rank set holds reports of one tool: give the files of one of them."
        raise ReportError(traces[0].path, problem, advice)


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


def assign_ranks(reports: Sequence[SystemReport]) -> None:
    """Give every process of these reports a rank, from all their evidence at once."""
    by_path = {str(report.path): report for report in reports}
    told = {
        (path, pid): evidence_for(report.evidence, pid)
        for path, report in by_path.items()
        for pid in report.pids
    }
    for (path, pid), decision in decide_ranks(told).items():
        by_path[path].ranks[pid] = decision


def _identify(report: SystemReport) -> None:
    _ = report.evidence


def _identified(report: SystemReport, *, function: Callable[[SystemReport], T]) -> T:
    """The function's result, with the evidence for ranks found on the way."""
    _identify(report)
    return function(report)


def _to_dask(
    function: Callable[[SystemReport], T], reports: Sequence[SystemReport], *, address: object
) -> Outcomes[T]:
    return on_dask(function, reports, address)


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
