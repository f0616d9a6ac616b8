"""nsightpy memory"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nsightpy.cli.options import common_of, common_options, show, show_or_draw, top_option

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@click.command("memory")
@common_options
@click.option(
    "--by",
    metavar="LIST",
    default="",
    help="Split by rank, device, process, stream, memory (pageable, pinned, managed).",
)
@click.option(
    "--usage",
    is_flag=True,
    help="Allocated memory instead: peaks, and who allocated them; -o FILE.png draws it.",
)
@top_option
def command(**options: Any) -> None:
    """Rank copies and memory sets by time, with sizes and throughput.

    Figures are those of `nsys stats` cuda_gpu_mem_time_sum and cuda_gpu_mem_size_sum; MB is 10^6
    bytes. --by adds splits in front, and at the end how long no kernel ran beside the copies.
    --usage shows device memory over time where the capture has it; -o FILE.png, .svg or .pdf
    draws it.
    """
    if options["usage"]:
        _usage(options)
        return
    from nsightpy.commands.memory import memory

    table = memory(options["reports"], by=options["by"], top=options["top"], **common_of(options))
    show(table, options)


def _usage(options: dict[str, Any]) -> None:
    from nsightpy.commands.memory_usage.command import memory_usage
    from nsightpy.errors import UsageError

    if options["by"]:
        raise UsageError("--by splits copies; --usage has rows of its own")
    table = memory_usage(options["reports"], top=options["top"], **common_of(options))

    def figure() -> Figure:
        from nsightpy.render.plots.memory_plot import memory_figure

        return memory_figure(table)

    show_or_draw(table, figure, options)
