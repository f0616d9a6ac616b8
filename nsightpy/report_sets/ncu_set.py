"""Many Nsight Compute reports, each with the rank in its file name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from nsightpy.errors import UsageError
from nsightpy.report_sets.report_files import find_ncu_reports, natural
from nsightpy.report_sets.report_set import FailureHandling, Progress, ReportSet
from nsightpy.reports.ncu import NcuReport
from nsightpy.reports.one_file import name_ranks

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
    name_ranks(ordered, rank_regex)
    return ReportSet(ordered, jobs=jobs, dask=dask, on_error=on_error, progress=progress)
