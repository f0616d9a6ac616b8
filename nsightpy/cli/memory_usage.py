"""nsightpy memory-usage"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nsightpy.cli.options import common_of, common_options, show_or_draw, top_option

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    answer(options, by=options["by"], diff=options["diff"])


def answer(options: dict[str, Any], **wanted: Any) -> None:
    """Ask, and show or draw what comes back."""
    from nsightpy.commands.memory_usage.command import memory_usage

    table = memory_usage(options["reports"], top=options["top"], **wanted, **common_of(options))

    def figure() -> Figure:
        from nsightpy.render.plots.memory_plot import memory_figure

        return memory_figure(table)

    show_or_draw(table, figure, options)
