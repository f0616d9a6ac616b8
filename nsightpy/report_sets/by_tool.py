"""Which of several files are of Nsight Systems, of Nsight Compute, or memory snapshots; sets of the
latter two, whose rank only their name gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias, TypeVar

from nsightpy.errors import UsageError
from nsightpy.readers.tools.file_check import is_regular, resolved
from nsightpy.readers.torch.snapshot import is_snapshot_file
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.report_sets.report_files import (
    files_of,
    find_ncu_reports,
    find_snapshots,
    is_system_report,
    natural,
)
from nsightpy.report_sets.report_set import SKIP, Progress, ReportSet
from nsightpy.reports.one_file import MemorySnapshot, NcuReport, OneFile, is_ncu_file, name_ranks
from nsightpy.reports.system import SystemReport

NcuPaths: TypeAlias = str | Path | NcuReport | Iterable[str | Path | NcuReport]
F = TypeVar("F", bound=OneFile)


def open_ncu_reports(
    paths: NcuPaths,
    *,
    rank_regex: str | None = None,
    jobs: int | None = None,
    dask: object = None,
    on_error: str = SKIP,
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


Item: TypeAlias = str | Path | SystemReport | NcuReport | MemorySnapshot
AnyPaths: TypeAlias = Item | RankSet | Iterable[Item]


def split_by_tool(
    reports: AnyPaths,
) -> tuple[
    RankSet | list[str | Path | SystemReport], list[str | Path | NcuReport], list[MemorySnapshot]
]:
    """What is given for Nsight Systems, for Nsight Compute, and memory snapshots.

    A folder may hold all of them.
    """
    if isinstance(reports, RankSet):
        return reports, [], []
    single = isinstance(reports, str | Path | SystemReport | NcuReport | MemorySnapshot)
    given: list[Item] = [reports] if single else list(reports)  # type: ignore[arg-type, list-item]
    systems: list[str | Path | SystemReport] = []
    compute: list[str | Path | NcuReport] = []
    snapshots: list[MemorySnapshot] = []
    for item in given:
        if isinstance(item, NcuReport):
            compute.append(item)
        elif isinstance(item, SystemReport):
            systems.append(item)
        elif isinstance(item, MemorySnapshot):
            snapshots += open_snapshots([item])
        else:
            of_systems, of_compute, pickles = _behind(item)
            systems += of_systems
            compute += of_compute
            snapshots += open_snapshots(pickles)
    return systems, compute, snapshots


def _behind(path: str | Path) -> tuple[list[str | Path], list[Path], list[Path]]:
    """What a path stands for of each: of systems where it is of neither other kind."""
    files = files_of(path)
    regular = [file for file in files or [Path(path)] if is_regular(file)]
    compute = [file for file in regular if is_ncu_file(file)]
    snapshots = [file for file in regular if is_snapshot_file(file) and file not in compute]
    if not (compute or snapshots):
        return [path], [], []
    others: list[str | Path] = [file for file in regular if file not in (*compute, *snapshots)]
    if Path(path).is_dir():
        others = [path] if any(is_system_report(Path(file)) for file in others) else []
    return others, find_ncu_reports(path) if compute else [], sorted(snapshots)
