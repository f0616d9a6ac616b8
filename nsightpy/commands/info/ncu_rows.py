"""What info says of Nsight Compute reports, and which of several files are such."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias, Unpack

from nsightpy.errors import ReportError
from nsightpy.query.request import Common, reading_options
from nsightpy.report_sets.one_file_sets import open_ncu_reports, open_snapshots
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.report_sets.report_files import (
    files_of,
    find_ncu_reports,
    find_snapshots,
    is_system_report,
)
from nsightpy.reports.memory_snapshot import MemorySnapshot
from nsightpy.reports.ncu import NcuReport, is_ncu_file
from nsightpy.reports.system import SystemReport
from nsightpy.results import Value

Item: TypeAlias = "str | Path | SystemReport | NcuReport | MemorySnapshot"
AnyPaths: TypeAlias = "Item | RankSet | Iterable[Item]"
InfoRow: TypeAlias = "tuple[Value, ...]"


def split_by_tool(
    reports: AnyPaths,
) -> tuple[
    RankSet | list[str | Path | SystemReport], list[str | Path | NcuReport], list[MemorySnapshot]
]:
    """What is given for Nsight Systems, for Nsight Compute, and memory snapshots.

    A folder may hold the first two.
    """
    if isinstance(reports, RankSet):
        return reports, [], []
    single = isinstance(reports, str | Path | SystemReport | NcuReport | MemorySnapshot)
    given: list[Item] = [reports] if single else list(reports)  # type: ignore[arg-type, list-item]
    snapshots: list[MemorySnapshot] = []
    systems: list[str | Path | SystemReport] = []
    compute: list[str | Path | NcuReport] = []
    for item in given:
        if isinstance(item, NcuReport):
            compute.append(item)
        elif isinstance(item, SystemReport):
            systems.append(item)
        elif isinstance(item, MemorySnapshot) or (snapshot_files := find_snapshots(item)):
            of_item = [item] if isinstance(item, MemorySnapshot) else snapshot_files
            snapshots += open_snapshots(of_item)
        else:
            _sort_in(item, systems, compute)
    return systems, compute, snapshots


def snapshot_row(snapshot: MemorySnapshot) -> InfoRow:
    """The row of info about a memory snapshot of PyTorch."""
    return (
        str(snapshot.path),
        "snapshot",
        snapshot.rank,
        snapshot.rank_source or None,
        *(None, None),
        len(snapshot.devices),
        *(None,) * 6,
        " | ".join([*snapshot.facts, *snapshot.notes]) or None,
    )


def ncu_rows(
    reports: list[str | Path | NcuReport], **common: Unpack[Common]
) -> tuple[list[InfoRow], list[str], list[str]]:
    """The rows of info, the inputs, and what was left out."""
    opened = open_ncu_reports(reports, **reading_options(common))
    rows = opened.map(_row).values
    return rows, list(opened.inputs), opened.failure_notes


def _sort_in(
    item: str | Path,
    systems: list[str | Path | SystemReport],
    compute: list[str | Path | NcuReport],
) -> None:
    path = Path(item)
    if path.is_dir():
        try:
            compute += find_ncu_reports(item)
        except ReportError:
            systems.append(item)
            return
        if any(map(is_system_report, path.iterdir())):
            systems.append(item)
    elif (files := files_of(item)) is not None:
        theirs = [each for each in files if is_ncu_file(each)]
        if theirs:
            compute += find_ncu_reports(item)
        if len(theirs) < len(files) or not files:
            systems += [each for each in files if each not in theirs] or [item]
    elif is_ncu_file(path):
        compute.append(item)
    else:
        systems.append(item)


def _row(report: NcuReport) -> InfoRow:
    launches = report.frame("launches")
    gpus = [name for name in launches.labels("gpu").values if name]
    return (
        str(report.path),
        "ncu",
        report.rank,
        report.rank_source or None,
        None,
        ", ".join(gpus) or None,
        None,
        None,
        report.tool_version or None,
        None,
        None,
        None,
        launches.rows,
        " | ".join(report.notes) or None,
    )
