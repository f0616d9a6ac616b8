"""Files whose rank only their name gives: Nsight Compute reports, memory snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias, TypeVar

from nsightpy.errors import UsageError
from nsightpy.readers.tools.file_check import resolved
from nsightpy.report_sets.report_files import find_ncu_reports, find_snapshots, natural
from nsightpy.report_sets.report_set import FailureHandling, Progress, ReportSet
from nsightpy.reports.memory_snapshot import MemorySnapshot
from nsightpy.reports.ncu import NcuReport
from nsightpy.reports.one_file import OneFile, name_ranks

NcuPaths: TypeAlias = str | Path | NcuReport | Iterable[str | Path | NcuReport]
F = TypeVar("F", bound=OneFile)


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
    reports = _opened(NcuReport, given, find_ncu_reports, rank_regex)
    if not reports:
        raise UsageError("no reports given")
    reports.sort(key=lambda report: natural(str(report.path)))
    return ReportSet(reports, jobs=jobs, dask=dask, on_error=on_error, progress=progress)


def open_snapshots(
    paths: Iterable[str | Path | MemorySnapshot], *, rank_regex: str | None = None
) -> list[MemorySnapshot]:
    """Open memory snapshots, folders and globs, in the order given, with their ranks."""
    return _opened(MemorySnapshot, paths, find_snapshots, rank_regex)


def _opened(
    kind: type[F],
    paths: Iterable[str | Path | F],
    find: Callable[[str | Path], list[Path]],
    rank_regex: str | None,
) -> list[F]:
    """The reports given or found behind paths, each once, with the ranks in their names."""
    reports: dict[Path, F] = {}
    for given in paths:
        for report in map(kind, find(given)) if isinstance(given, str | Path) else [given]:
            reports.setdefault(resolved(report.path), report)
    name_ranks(reports.values(), rank_regex)
    return list(reports.values())
