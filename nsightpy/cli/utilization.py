"""nsightpy utilization"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, communication_option, show_or_draw


@click.command("utilization")
@common_options
@communication_option
@click.option(
    "--bins",
    type=click.IntRange(1, 100_000),
    default=200,
    show_default=True,
    help="Into so many equal stretches time is divided.",
)
def command(**options: Any) -> None:
    """Show how busy every device was over time, and with what, on the clock of all ranks.

    Shares of each stretch of time: busy, compute, communication, copies; where the capture sampled
    them, SM and tensor activity, DRAM and NVLink bandwidth as shares of their peak, and what the
    network interfaces carried. -o FILE.png, .svg or .pdf draws rank over time. A terminal shows one
    row a device; the files have every stretch.
    """
    from nsightpy.commands.utilization import by_device, utilization
    from nsightpy.render.plots.drawing import is_picture
    from nsightpy.render.plots.utilization_plot import utilization_figure

    table = asked(utilization, options)
    people = options["format_"] == "table" and not is_picture(options["output"])
    show_or_draw(by_device(table) if people else table, utilization_figure, options)
