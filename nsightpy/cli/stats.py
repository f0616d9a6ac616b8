"""nsightpy stats"""

import click

from nsightpy.cli.options import top_option
from nsightpy.cli.table_command import table_command


@table_command(
    "stats",
    click.option(
        "-r", "--report", metavar="NAME", required=True, help="cuda_gpu_sum, nvtx_sum, ..."
    ),
    top_option,
)
def command() -> None:
    """A summary of nsys stats by its own name, with all its columns, over all reports.

    NAME: cuda_gpu_sum, cuda_api_gpu_sum, cuda_kern_exec_sum, nvtx_sum, nvtx_pushpop_sum,
    nvtx_startend_sum, nvtx_kern_sum, nvtx_gpu_proj_sum, osrt_sum, mpi_event_sum,
    mpi_msg_size_sum, openacc_sum, openmp_sum, syscall_sum, um_total_sum,
    um_cpu_page_faults_sum.
    """
