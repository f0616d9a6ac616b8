"""nsightpy pace"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, name_option, show_or_draw

kind_option = click.option(
    "--kind",
    type=click.Choice(["any", "kernel", "collective", "range", "projection"]),
    default="any",
    show_default=True,
    help="What has the name; projection: what a range launched, on the GPU.",
)


@click.command("pace")
@common_options
@click.option("--of", metavar="NAME", required=True, help="Whose instances; * is anything.")
@kind_option
@name_option
def command(**options: Any) -> None:
    """Show one kernel, range or collective instance by instance, over iterations and ranks.

    NAME is a kernel's name, a collective's operation (AllReduce) or RANGE[@DOMAIN]. A terminal
    shows one row a rank; the files have every instance with its iteration, on the clock of all
    ranks. -o FILE.png, .svg or .pdf draws duration over time.
    """
    from nsightpy.commands.pace import by_rank, pace
    from nsightpy.render.plots.drawing import is_picture
    from nsightpy.render.plots.pace_plot import pace_figure

    table = asked(pace, options)
    people = options["format_"] == "table" and not is_picture(options["output"])
    show_or_draw(by_rank(table) if people else table, pace_figure, options)
