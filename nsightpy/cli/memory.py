"""nsightpy memory"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli import memory_usage
from nsightpy.cli.delivery import show
from nsightpy.cli.options import asked, common_options, top_option
from nsightpy.errors import UsageError


@click.command("memory")
@common_options
@click.option(
    "--by",
    metavar="LIST",
    default="",
    help="Split by rank, device, process, stream, memory (pageable, pinned, managed).",
)
@click.option("--usage", is_flag=True, hidden=True, help="The old name of memory-usage.")
@top_option
def command(**options: Any) -> None:
    """Rank copies and memory sets by time, with sizes and throughput.

    Figures are those of `nsys stats` cuda_gpu_mem_time_sum and cuda_gpu_mem_size_sum; MB is 10^6
    bytes. --by adds splits in front, and at the end how long no kernel ran beside the copies.
    """
    if options["usage"]:
        if options["by"]:
            raise UsageError("--by splits copies; --usage has rows of its own")
        click.get_current_context().invoke(memory_usage.command, **{**options, "by": None})
        return
    from nsightpy.commands.memory import memory

    show(asked(memory, options), options)
