"""nsightpy collectives"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, show_or_draw, top_option


@click.command("collectives")
@common_options
@click.option("--by", metavar="WHAT", default="group", help="A row per group, node or pair.")
@top_option
def command(**options: Any) -> None:
    """Group NCCL operations by size and ranks: transfer apart from waiting, bandwidth, latecomers.

    bytes is the size of the whole operation and bus bandwidth is as nccl-tests counts it. Times
    are medians; abnormal counts the instances far beyond the median of their kind. -o FILE.png,
    .svg or .pdf draws bus bandwidth over message size. --by node sets groups within a node beside
    those that cross nodes. --by pair shows what each rank sent to each other one (experts, pipeline
    stages); with -o FILE.png as a heat map.
    """
    from nsightpy.commands.collectives.command import collectives
    from nsightpy.render.plots.collectives_plot import collectives_figure

    show_or_draw(asked(collectives, options), collectives_figure, options)
