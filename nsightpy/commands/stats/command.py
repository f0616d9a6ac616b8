"""stats: a summary of nsys stats by its own name, over all reports."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Unpack

from nsightpy.analysis.tally import merge
from nsightpy.commands.stats import host_and_device, launches, mpi, ranges, unified_memory
from nsightpy.commands.stats.summary import Summary, Tallies
from nsightpy.commands.trace.command import LISTINGS
from nsightpy.commands.trace.executions import unlaunched
from nsightpy.errors import UsageError, require_choice
from nsightpy.query.capture_advice import not_recorded
from nsightpy.query.parameters import NAME_COLUMNS
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Table

SUMMARIES: Mapping[str, Summary] = {
    **host_and_device.SUMMARIES,
    **launches.SUMMARIES,
    **ranges.SUMMARIES,
    **mpi.SUMMARIES,
    **unified_memory.SUMMARIES,
}
LAYOUTS = tuple(summary.fields for summary in SUMMARIES.values())
# Summaries that are commands of their own, with more to ask about.
COMMANDS = {
    "cuda_gpu_kern_sum": "kernels",
    "cuda_api_sum": "api",
    "cuda_gpu_mem_time_sum": "memory",
    "cuda_gpu_mem_size_sum": "memory",
}


@command_function
def stats(
    reports: Paths, *, report: str, top: int | None = None, **common: Unpack[Common]
) -> Table:
    """A summary of `nsys stats --report NAME` over all reports, columns and figures as there.

    `report` is its name: cuda_gpu_sum, cuda_api_gpu_sum, cuda_kern_exec_sum, nvtx_sum,
    nvtx_pushpop_sum, nvtx_startend_sum, nvtx_kern_sum, nvtx_gpu_proj_sum, osrt_sum, mpi_event_sum,
    mpi_msg_size_sum, openacc_sum, openmp_sum, syscall_sum, nvvideo_api_sum, um_sum, um_total_sum,
    um_cpu_page_faults_sum. Those of kernels take :base or :mangled behind it, for other names of
    theirs. Times in ns. Raises UsageError.
    """
    report, _, names = report.partition(":")
    if report in COMMANDS:
        raise UsageError(f"{report} is a command of its own: nsightpy {COMMANDS[report]}")
    if report in LISTINGS:
        raise UsageError(f"{report} is a listing: nsightpy trace -r {report}")
    require_choice("report", report, SUMMARIES)
    require_choice(f"names of {report}", names or "demangled", NAME_COLUMNS)
    summary = SUMMARIES[report]
    request = Request.of(reports, **common)
    work = partial(
        _tallies, name=report, scope=request.scope, label=NAME_COLUMNS[names or "demangled"]
    )
    parts = request.map(work).values
    merged = [merge(list(tallies)).statistics() for tallies in zip(*parts, strict=True)]
    fields, rows = summary.shown(merged)
    nothing = not_recorded("The capture holds nothing of it.", summary.records, "records it")
    notes: list[str] = [] if rows else [nothing]
    if not rows and report in launches.SUMMARIES:
        notes = unlaunched(request.ranks.readable, request.scope) or notes
    return request.finish(Table("stats", fields, tuple(rows)).first(top), *notes)


def _tallies(report: SystemReport, *, name: str, scope: Scope, label: str) -> Tallies:
    return SUMMARIES[name].tally(report, scope, label)
