"""Many Nsight Compute reports, each with the rank that its file name tells."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from nsightpy.errors import UsageError
from nsightpy.readers.nsys.identity import (
    GUESS,
    decide_ranks,
    rank_by_regex,
    rank_expression,
    rank_in_name,
)
from nsightpy.report_files import find_ncu_reports, natural
from nsightpy.report_set import FailureHandling, Progress, ReportSet
from nsightpy.reports.ncu import NcuReport

NcuPaths: TypeAlias = "str | Path | NcuReport | Iterable[str | Path | NcuReport]"


def open_ncu_reports(
    paths: NcuPaths,
    *,
    rank_regex: str | None = None,
    jobs: int | None = None,
    dask: object = None,
    on_error: str = FailureHandling.SKIP,
    progress: Progress | None = None,
) -> ReportSet[NcuReport]:
    """Open Nsight Compute reports, folders and globs, in natural order, with their ranks.

    Raises ReportError when nothing there is a report.
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
    evidence = {
        (str(report.path), 0): (rank_by_regex(report.path.name, rank_regex) if rank_regex else [])
        + rank_in_name(report.path.name)
        for report in ordered
    }
    decided = decide_ranks(evidence)
    for report in ordered:
        rank, source = decided[str(report.path), 0]
        if not source.startswith(GUESS):
            report.rank, report.rank_source = rank, source
    return ReportSet(ordered, jobs=jobs, dask=dask, on_error=on_error, progress=progress)
