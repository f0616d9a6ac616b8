"""nsightpy pace"""

import click

from nsightpy.cli.options import name_option
from nsightpy.cli.table_command import table_command


@table_command(
    "pace",
    click.option("--of", metavar="NAME", required=True, help="Whose instances; * is anything."),
    click.option(
        "--kind",
        type=click.Choice(["any", "kernel", "collective", "range", "projection"]),
        default="any",
        show_default=True,
        help="What has the name; projection: what a range launched, on the GPU.",
    ),
    name_option,
    plot="pace_plot",
    people="by_rank",
)
def command() -> None:
    """Show one kernel, range or collective instance by instance, over iterations and ranks.

    NAME is a kernel's name, a collective's operation (AllReduce) or RANGE[@DOMAIN]. A terminal
    shows one row a rank; the files have every instance with its iteration, on the clock of all
    ranks. -o FILE.png, .svg or .pdf draws duration over time.
    """
