"""Opening the reports of one job: what files, folders and patterns stand for, as a rank set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, TypeAlias

from nsightpy.errors import ReportError, UsageError
from nsightpy.readers.nsys.identity import rank_expression
from nsightpy.readers.tools.file_check import resolved
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.report_sets.report_files import first_hand, is_no_report, natural, reports_behind
from nsightpy.report_sets.report_set import SKIP, Progress
from nsightpy.reports.nsys import NSYS_SUFFIXES, NsysReport
from nsightpy.reports.one_file import MemorySnapshot, NcuReport
from nsightpy.reports.opening import open_report
from nsightpy.reports.system import SystemReport

Paths: TypeAlias = str | Path | SystemReport | RankSet | Iterable[str | Path | SystemReport]


def open_ranks(
    paths: Paths,
    *,
    use_cache: bool = True,
    rank_regex: str | None = None,
    jobs: int | None = None,
    dask: object = None,
    on_error: str = SKIP,
    progress: Progress | None = None,
) -> RankSet:
    """Open reports, folders and globs as one rank set, in natural order of their names.

    Each report counts once: however often it is named, and when its own export lies beside it.
    jobs: worker processes; dask: a scheduler's address or file, or a Client.
    Raises ReportError when nothing there is a report.
    """
    if isinstance(paths, RankSet):
        return paths
    if rank_regex is not None:
        rank_expression(rank_regex)
    given = [paths] if isinstance(paths, str | Path | SystemReport) else list(paths)
    paths_given = [item for item in given if isinstance(item, str | Path)]
    named = set(map(Path, paths_given))
    chosen, others = _files_of(paths_given)
    settings: dict[str, Any] = {
        "use_cache": use_cache,
        "rank_regex": rank_regex,
        "progress": progress,
        "threads": 1 if jobs == 1 else None,
    }
    opened = [item for item in given if isinstance(item, SystemReport)]
    for path, earlier_cycles in chosen.items():
        report = _opened(path, len(chosen) == 1 or path in named, settings)
        report.earlier_cycles = earlier_cycles
        opened.append(report)
    reports: dict[Path, SystemReport] = {}
    for ranked in opened:
        reports.setdefault(resolved(ranked.path), ranked)
    if not reports:
        raise UsageError("no reports given")
    ordered = sorted(reports.values(), key=lambda report: natural(str(report.path)))
    _refuse_mixture(ordered)
    ranks = RankSet(ordered, jobs=jobs, dask=dask, on_error=on_error, progress=progress)
    ranks.passed_by = tuple(sorted(others))
    ranks.folders = tuple(sorted(path for path in named if path.is_dir()))
    return ranks


def _files_of(given: Iterable[str | Path]) -> tuple[dict[Path, int], set[Path]]:
    """The reports that are meant, with their earlier cycles, and files beside them that are none.

    Where there are only such files, each is to be opened and refused for what it is.
    """
    files: dict[Path, int] = {}
    for item in given:
        files |= reports_behind(item)
    chosen = first_hand(files, NSYS_SUFFIXES)
    others = {path for path in chosen if len(chosen) > 1 and is_no_report(path)}
    if len(others) == len(chosen):
        others = set()
    return {path: files[path] for path in chosen if path not in others}, others


def _opened(path: Path, is_wanted: bool, settings: dict[str, Any]) -> SystemReport:
    """One report. Raises ReportError where it is of another kind, or wanted and damaged."""
    try:
        report = open_report(path, **settings)
    except ReportError:
        if is_wanted:
            raise
        # it fails again when it is read, and is left out then as any damaged report
        return NsysReport(path, **settings)
    if not isinstance(report, SystemReport):
        raise _other_question(report)
    return report


def _other_question(report: NcuReport | MemorySnapshot) -> ReportError:
    """What to say of a report that other commands read."""
    if isinstance(report, NcuReport):
        problem = "is an Nsight Compute report, and this needs Nsight Systems reports"
        command = "roofline"
    else:
        problem = "is a memory snapshot of PyTorch, and this needs reports or traces"
        command = "memory-usage"
    advice = f"`nsightpy {command} {quote(str(report.path))}` reads it."
    return ReportError(report.path, problem, advice)


def _refuse_mixture(reports: Sequence[SystemReport]) -> None:
    """Raise ReportError for a rank set of both tools: their clocks and names have little in
    common."""
    traces = [report for report in reports if report.kind != NsysReport.kind]
    others = [report for report in reports if report.kind == NsysReport.kind]
    if traces and others:
        problem = f"is a PyTorch trace, and {others[0].path} is a report of Nsight Systems"
        advice = "one rank set holds reports of one tool: give the files of one of them."
        raise ReportError(traces[0].path, problem, advice)
