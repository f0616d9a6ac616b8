"""nsightpy histogram"""

import click

from nsightpy.cli.options import name_option, top_option
from nsightpy.cli.table_command import table_command


@table_command(
    "histogram",
    click.option("--of", metavar="NAME", help="Only this name; * stands for anything."),
    click.option(
        "--kind",
        type=click.Choice(["kernel", "collective", "range", "projection"]),
        default="kernel",
        show_default=True,
        help="Whose durations; projection: what a range launched, on the GPU.",
    ),
    name_option,
    top_option,
    plot="histogram_plot",
    people="by_name",
)
def command() -> None:
    """Show how the durations of kernels, ranges or collectives are distributed, and their modes.

    Of the 10 names with most time, --top N, or those that --of means. A terminal shows one row a
    name with its modes; the files have bins of equal ratio, eight a doubling of the duration.
    -o FILE.png, .svg or .pdf draws them.
    """
