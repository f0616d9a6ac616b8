"""What info says of Nsight Compute reports, and which of several files are such."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias, Unpack

from nsightpy.errors import ReportError
from nsightpy.query.request import Common
from nsightpy.rank_set import RankSet, default_jobs, find_ncu_reports, open_ncu_reports
from nsightpy.reports.ncu import NcuReport, is_ncu_file, map_reports
from nsightpy.reports.nsys import NSYS_SUFFIXES, SQLITE_SUFFIXES
from nsightpy.reports.system import SystemReport
from nsightpy.results import Value

Item: TypeAlias = "str | Path | SystemReport | NcuReport"
AnyPaths: TypeAlias = "Item | RankSet | Iterable[Item]"
InfoRow: TypeAlias = "tuple[Value, ...]"


def split_by_tool(
    reports: AnyPaths,
) -> tuple[RankSet | list[str | Path | SystemReport], list[str | Path | NcuReport]]:
    """What is given for Nsight Systems, and what for Nsight Compute; a folder may hold both."""
    if isinstance(reports, RankSet):
        return reports, []
    given = (
        [reports] if isinstance(reports, str | Path | SystemReport | NcuReport) else list(reports)
    )
    systems: list[str | Path | SystemReport] = []
    compute: list[str | Path | NcuReport] = []
    for item in given:
        if isinstance(item, NcuReport):
            compute.append(item)
        elif isinstance(item, SystemReport):
            systems.append(item)
        else:
            _sort_in(item, systems, compute)
    return systems, compute


def ncu_rows(
    reports: list[str | Path | NcuReport], **common: Unpack[Common]
) -> tuple[list[InfoRow], list[str], list[str]]:
    """The rows of info, the inputs, and what was left out."""
    opened = open_ncu_reports(reports, rank_regex=common.get("rank_regex"))
    mapped = map_reports(
        _row,
        opened,
        jobs=common.get("jobs") or default_jobs(),
        on_error=common.get("on_error", "skip"),
        progress=common.get("progress"),
    )
    failures = [f"left out: {error.path}: {error.problem}" for error in mapped.failures]
    return [row for _, row in mapped.results], [str(one.path) for one in opened], failures


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
        if any(each.suffix in NSYS_SUFFIXES + SQLITE_SUFFIXES for each in path.iterdir()):
            systems.append(item)
    elif not path.exists() and glob.has_magic(str(item)):
        found = [Path(name) for name in glob.glob(str(item), recursive=True)]  # noqa: PTH207
        theirs = [each for each in found if each.is_file() and is_ncu_file(each)]
        if theirs:
            compute += find_ncu_reports(item)
        if len(theirs) < len(found) or not found:
            systems += [each for each in found if each not in theirs] or [item]
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
