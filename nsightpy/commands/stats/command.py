"""stats: a report of nsys stats by its own name, over all reports: sums, and traces."""

from typing import Annotated

from nsightpy.commands.stats import communication, launches, operations, ranges, unified_memory
from nsightpy.commands.stats.reports import OF_SEVERAL, Reports
from nsightpy.errors import require_choice
from nsightpy.query import NAME_COLUMNS, NameStyle, Option, Question
from nsightpy.query.command import command
from nsightpy.results import Table

REPORTS: Reports = {
    **operations.REPORTS,
    **launches.REPORTS,
    **ranges.REPORTS,
    **communication.REPORTS,
    **unified_memory.REPORTS,
}


@command(layouts=tuple(about.fields for about in REPORTS.values()), more=OF_SEVERAL)
def stats(
    *,
    report: Annotated[
        str, Option("Its name, and :base or :mangled for other names.", "NAME", "--report -r")
    ],
    name: NameStyle = "demangled",
) -> Question[Table]:
    """Columns and figures are those of `nsys stats --report NAME`, in the newest layout.

    NAME, of sums: cuda_gpu_kern_sum, cuda_api_sum, cuda_gpu_mem_time_sum, cuda_gpu_mem_size_sum,
    cuda_gpu_sum, cuda_api_gpu_sum, cuda_kern_exec_sum, nvtx_sum, nvtx_pushpop_sum,
    nvtx_startend_sum, nvtx_kern_sum, nvtx_gpu_proj_sum, osrt_sum, mpi_event_sum, mpi_msg_size_sum,
    openacc_sum, openmp_sum, syscall_sum, um_sum, um_total_sum,
    um_cpu_page_faults_sum.

    Of lists in time order, whose rows are written while the reports are read: cuda_gpu_trace,
    cuda_api_trace, cuda_kern_exec_trace, nvtx_gpu_proj_trace, nvtx_pushpop_trace, mpi_event_trace.
    Of several reports, times are on the clock of all ranks, and rank and report
    come behind the columns of nsys.
    """
    report, _, style = report.partition(":")
    require_choice("report", report, REPORTS)
    require_choice(f"names of {report}", style or name, NAME_COLUMNS)
    about = REPORTS[report]
    return about.explained(about.question("stats", NAME_COLUMNS[style or name]))
