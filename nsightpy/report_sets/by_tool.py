"""Which of several files are of Nsight Systems, of Nsight Compute, or memory snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from nsightpy.readers.tools.file_check import is_regular
from nsightpy.readers.torch.snapshot_process import is_snapshot_file
from nsightpy.report_sets.one_file_sets import open_snapshots
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.report_sets.report_files import files_of, find_ncu_reports, is_system_report
from nsightpy.reports.memory_snapshot import MemorySnapshot
from nsightpy.reports.ncu import NcuReport, is_ncu_file
from nsightpy.reports.system import SystemReport

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
