"""nsightpy breakdown"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nsightpy.cli.options import common_of, common_options, show_or_draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@click.command("breakdown")
@common_options
@click.option(
    "--communication",
    metavar="RE",
    multiple=True,
    help="Kernels whose name matches count as communication, too; may be repeated.",
)
def command(**options: Any) -> None:
    """Divide the time of every rank and device into compute, communication, copies and idle.

    Every figure is a length of time, united over all streams. The window runs from the first
    start to the last end of the device's work, or from --from to --to. Time without compute is
    divided by cause: nothing launched, blocked by another operation, or stalled. -o FILE.png,
    .svg or .pdf draws it.
    """
    from nsightpy.commands.breakdown import breakdown

    table = breakdown(
        options["reports"], communication=options["communication"], **common_of(options)
    )

    def figure() -> Figure:
        from nsightpy.render.plots.budget_plot import breakdown_figure

        return breakdown_figure(table)

    show_or_draw(table, figure, options)
