"""Which of the given files are of a whole system, which are ncu's, which are memory snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, Unpack

from nsightpy.commands.info.ncu_rows import split_by_tool
from nsightpy.errors import UsageError
from nsightpy.query.request import Common, reading_options
from nsightpy.readers.torch.snapshot_process import is_snapshot_file
from nsightpy.report_sets.rank_opening import open_ranks
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.report_sets.report_files import files_of, is_system_report
from nsightpy.reports.memory_snapshot import MemorySnapshot
from nsightpy.reports.ncu import NcuReport, is_ncu_file
from nsightpy.reports.system import SystemReport

Item: TypeAlias = "str | Path | SystemReport | NcuReport | MemorySnapshot"
MixedPaths: TypeAlias = "Item | RankSet | Iterable[Item]"


@dataclass(frozen=True)
class Inputs:
    """The reports of one page by kind; `ranks` is None where none is of a whole system."""

    ranks: RankSet | None
    compute: list[str | Path | NcuReport] = field(default_factory=list)
    snapshots: list[str | Path | MemorySnapshot] = field(default_factory=list)
    common: Common = field(default_factory=Common)

    @classmethod
    def of(cls, reports: MixedPaths, **common: Unpack[Common]) -> Inputs:
        """Open what is given; a folder or glob may hold all kinds. Raises ReportError."""
        if isinstance(reports, RankSet):
            return cls(reports, common=common)
        single = isinstance(reports, str | Path | SystemReport | NcuReport | MemorySnapshot)
        given: list[Item] = [reports] if single else list(reports)  # type: ignore[list-item,arg-type]
        if not given:
            raise UsageError("no reports given")
        snapshots: list[str | Path | MemorySnapshot] = []
        others: list[str | Path | SystemReport | NcuReport] = []
        for item in given:
            if isinstance(item, MemorySnapshot):
                snapshots.append(item)
            elif isinstance(item, SystemReport | NcuReport):
                others.append(item)
            else:
                snapshot_files = snapshots_in(item)
                snapshots += snapshot_files
                if not snapshot_files or _holds_more(item):
                    others.append(item)
        systems, compute, _ = split_by_tool(others)
        use_cache = common.get("use_cache", True)
        ranks = None
        if systems or not (compute or snapshots):
            ranks = open_ranks(systems, use_cache=use_cache, **reading_options(common))
        return cls(ranks, compute, snapshots, common)


def snapshots_in(given: str | Path) -> list[Path]:
    """The memory snapshots that a path, folder or glob stands for."""
    files = files_of(given)
    return sorted(
        file
        for file in ([Path(given)] if files is None else files)
        if is_snapshot_file(file) and not is_ncu_file(file)
    )


def _holds_more(given: str | Path) -> bool:
    """Whether a folder or glob holds reports of other kinds, too."""
    files = files_of(given) or []
    return any(is_ncu_file(file) or is_system_report(file) for file in files)
