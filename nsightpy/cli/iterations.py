"""nsightpy iterations"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nsightpy.cli.options import common_of, common_options, show_or_draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@click.command("iterations")
@common_options
@click.option(
    "--communication",
    metavar="RE",
    multiple=True,
    help="Kernels whose name matches count as communication, too; may be repeated.",
)
def command(**options: Any) -> None:
    """Find the iterations of a run, and divide the time of each.

    They are the instances of the range that --nvtx names, else of a repeated top-level NVTX
    range, else a repeated collective or kernel sequence; the source is said. Warm-up and what the
    profiler cut off are told from the steady part. -o FILE.png, .svg or .pdf draws them.
    """
    from nsightpy.commands.iterations import iterations

    table = iterations(
        options["reports"], communication=options["communication"], **common_of(options)
    )

    def figure() -> Figure:
        from nsightpy.render.plots.iterations_plot import iterations_figure

        return iterations_figure(table)

    show_or_draw(table, figure, options)
