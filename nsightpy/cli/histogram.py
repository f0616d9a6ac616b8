"""nsightpy histogram"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, name_option, show_or_draw, top_option


@click.command("histogram")
@common_options
@click.option("--of", metavar="NAME", help="Only this name; * stands for anything.")
@click.option(
    "--kind",
    type=click.Choice(["kernel", "collective", "range", "projection"]),
    default="kernel",
    show_default=True,
    help="Whose durations; projection: what a range launched, on the GPU.",
)
@name_option
@top_option
def command(**options: Any) -> None:
    """Show how the durations of kernels, ranges or collectives are distributed, and their modes.

    Of the 10 names with most time, --top N, or those that --of means. A terminal shows one row a
    name with its modes; the files have bins of equal ratio, eight a doubling of the duration.
    -o FILE.png, .svg or .pdf draws them.
    """
    from nsightpy.commands.histogram import by_name, histogram
    from nsightpy.render.plots.drawing import is_picture
    from nsightpy.render.plots.histogram_plot import histogram_figure

    table = asked(histogram, options)
    if options["format_"] == "table" and not is_picture(options["output"]):
        from nsightpy.cli.options import show

        show(by_name(table), options)
        return
    show_or_draw(table, histogram_figure, options)
