"""nsightpy trace"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, name_option, top_option
from nsightpy.cli.streamed import show_listing


@click.command("trace")
@common_options
@click.option("--api", is_flag=True, help="CUDA API calls, as cuda_api_trace.")
@click.option("--nvtx-ranges", is_flag=True, help="NVTX ranges on the GPU, as nvtx_gpu_proj_trace.")
@click.option("--launches", is_flag=True, help="Call, queue and kernel, as cuda_kern_exec_trace.")
@name_option
@top_option
def command(**options: Any) -> None:
    """List every operation in time order, as `nsys stats --report cuda_gpu_trace` does.

    csv, json and parquet are written while the reports are read, however many rows there are; a
    table for people shows the first 200.
    """
    from nsightpy.commands.trace.command import trace

    show_listing(asked(trace, options), options)
