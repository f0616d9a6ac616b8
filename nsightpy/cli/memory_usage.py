"""nsightpy memory-usage"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, show_or_draw, top_option


@click.command("memory-usage")
@common_options
@click.option(
    "--by",
    metavar="WHAT",
    help="Of snapshots: group by stack, file or function, not by line.",
)
@click.option("--diff", is_flag=True, help="Compare two snapshots, place by place.")
@top_option
def command(**options: Any) -> None:
    """Show allocated memory over time: the peak, and who holds it.

    Reads nsys captures with --cuda-memory-usage=true, and memory snapshots of PyTorch
    (torch.cuda.memory._dump_snapshot), in which nothing is ever run. -o FILE.png, .svg or .pdf
    draws live memory over time.
    """
    from nsightpy.commands.memory_usage.command import memory_usage
    from nsightpy.render.plots.memory_plot import memory_figure

    show_or_draw(asked(memory_usage, options), memory_figure, options)
