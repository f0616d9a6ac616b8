"""Which of the given files are of a whole system, which are ncu's, which are memory snapshots."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

from nsightpy.query.options import Common
from nsightpy.query.request import reading_options
from nsightpy.report_sets.by_tool import AnyPaths, split_by_tool
from nsightpy.report_sets.rank_opening import open_ranks
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.reports.memory_snapshot import MemorySnapshot
from nsightpy.reports.ncu import NcuReport
from nsightpy.units import counted


@dataclass(frozen=True)
class Inputs:
    """The reports of one page by kind; `ranks` is None where none is of a whole system."""

    ranks: RankSet | None
    compute: list[str | Path | NcuReport] = field(default_factory=list)
    snapshots: list[MemorySnapshot] = field(default_factory=list)
    common: Common = field(default_factory=Common)

    @property
    def others(self) -> tuple[str, ...]:
        """The files that are not of a whole system."""
        return tuple(str(getattr(each, "path", each)) for each in (*self.compute, *self.snapshots))

    @property
    def kinds(self) -> list[str]:
        """How many of them there are of each kind."""
        kinds = (
            (len(self.compute), "measurement of Nsight Compute", "measurements of Nsight Compute"),
            (len(self.snapshots), "memory snapshot of PyTorch", "memory snapshots of PyTorch"),
        )
        return [counted(*kind) for kind in kinds if kind[0]]

    @classmethod
    def of(cls, reports: AnyPaths, **common: Unpack[Common]) -> Inputs:
        """Open what is given; a folder or glob may hold all kinds. Raises ReportError."""
        systems, compute, snapshots = split_by_tool(reports)
        if isinstance(systems, RankSet):
            return cls(systems, common=common)
        ranks = None
        if systems or not (compute or snapshots):
            use_cache = common.get("use_cache", True)
            ranks = open_ranks(systems, use_cache=use_cache, **reading_options(common))
        return cls(ranks, compute, snapshots, common)
