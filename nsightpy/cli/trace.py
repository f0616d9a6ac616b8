"""nsightpy trace"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsightpy.cli.delivery import on_terminal, show, stdout_or_file, tell
from nsightpy.cli.options import asked, common_options, name_option, top_option

if TYPE_CHECKING:
    from nsightpy.results import Table

# So many rows of a long table go into a pipe for people who do not ask for a number.
SHOWN = 200


class Trace(click.Command):
    """`--nvtx` without a range lists all ranges; with one it narrows, as elsewhere."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = [
            "--nvtx-ranges" if word == "--nvtx" and _is_no_range(args[place + 1 :]) else word
            for place, word in enumerate(args)
        ]
        return super().parse_args(ctx, words)


def _is_no_range(following: list[str]) -> bool:
    """Whether what follows `--nvtx` is nothing, an option or a report."""
    return not following or following[0].startswith("-") or Path(following[0]).exists()


@click.command("trace", cls=Trace)
@common_options
@click.option("-r", "--report", metavar="NAME", help="nvtx_pushpop_trace, cuda_api_trace, ...")
@click.option("--api", is_flag=True, help="CUDA API calls, as cuda_api_trace.")
@click.option(
    "--nvtx-ranges",
    is_flag=True,
    help="NVTX ranges on the GPU, as nvtx_gpu_proj_trace; --nvtx alone is the same.",
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
