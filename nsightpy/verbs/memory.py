"""memory: copies and sets by time and size, as nsys stats cuda_gpu_mem_time_sum and _size_sum."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from nsightpy.analysis import ranking
from nsightpy.analysis.tally import Tally, merge
from nsightpy.rank_set import Paths
from nsightpy.reports import NsysReport
from nsightpy.results import Table
from nsightpy.verbs.request import Common, Request
from nsightpy.verbs.scope import Scope

_COLUMNS = ("start_ns", "end_ns", "operation", "bytes")


def memory(reports: Paths, *, top: int | None = None, **common: Unpack[Common]) -> Table:
    """Memory operations by total time: time in ns, size in MB (10^6 bytes), GB/s = bytes per ns."""
    request = Request.of(reports, **common)
    tallies = request.map(partial(_tallies, scope=request.scope)).values
    time = merge([time for time, _ in tallies]).statistics()
    sizes = merge([sizes for _, sizes in tallies]).statistics()
    return request.finish(ranking.rank_memory(time, sizes, top))


def _tallies(report: NsysReport, *, scope: Scope) -> tuple[Tally, Tally]:
    frame = report.frame("memory_operations", (*_COLUMNS, *scope.columns))
    frame = scope.narrow(report, frame)
    by = ["operation"]
    return ranking.tally_durations(frame, by), ranking.tally_bytes(frame, by)
