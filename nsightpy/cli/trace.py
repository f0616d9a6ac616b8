"""nsightpy trace"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from nsightpy.cli.delivery import on_terminal, show, stdout_or_file, tell
from nsightpy.cli.options import asked, common_options, name_option, top_option

if TYPE_CHECKING:
    from nsightpy.results import Table

# So many rows of a long table go into a pipe for people who do not ask for a number.
SHOWN = 200


@click.command("trace")
@common_options
@click.option("-r", "--report", metavar="NAME", help="nvtx_pushpop_trace, cuda_api_trace, ...")
@click.option("--api", is_flag=True, help="CUDA API calls, as cuda_api_trace.")
@click.option(
    "--nvtx-ranges",
    is_flag=True,
    help="NVTX ranges on the GPU, as nvtx_gpu_proj_trace.",
)
@click.option("--launches", is_flag=True, help="Call, queue and kernel, as cuda_kern_exec_trace.")
@click.option("--mpi", is_flag=True, help="MPI calls, as mpi_event_trace.")
@name_option
@top_option
def command(**options: Any) -> None:
    """List every operation in time order, as `nsys stats --report cuda_gpu_trace` does.

    NAME is another of its listings: cuda_gpu_trace, cuda_api_trace, cuda_kern_exec_trace,
    nvtx_gpu_proj_trace, nvtx_pushpop_trace, mpi_event_trace, network_congestion.

    csv, json and parquet are written while the reports are read, however many rows there are; a
    table for people shows the first 200.
    """
    from nsightpy.commands.trace.command import trace

    show_listing(asked(trace, options), options)


def show_listing(table: Table, options: dict[str, Any]) -> None:
    """Print or write a long table in the wanted format; notes as `show` does."""
    from nsightpy.output import streams

    writer = streams.WRITERS.get(options["format_"])
    if writer is None:
        asked_for = options["top"] is not None or options["format_"] != "table"
        rows = len(table) if asked_for or on_terminal(options) else SHOWN
        more = len(table) - rows
        said = (f"and {more:,} more rows (--top N, --format csv)",) if more > 0 else ()
        shown = replace(table, rows=table.rows[:rows], notes=(*said, *table.notes))
        show(shown, options)
        return
    with stdout_or_file(options) as file:
        writer(table, file)
    tell(table, options)
