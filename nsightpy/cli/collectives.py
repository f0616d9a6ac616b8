"""nsightpy collectives"""

import click

from nsightpy.cli.options import top_option
from nsightpy.cli.table_command import table_command


@table_command(
    "collectives",
    click.option("--by", metavar="WHAT", default="group", help="A row per group, node or pair."),
    top_option,
    plot="collectives_plot",
)
def command() -> None:
    """Group NCCL operations by size and ranks: transfer apart from waiting, bandwidth, latecomers.

    bytes is the size of the whole operation and bus bandwidth is as nccl-tests counts it. Times
    are medians; abnormal counts the instances far beyond the median of their kind. -o FILE.png,
    .svg or .pdf draws bus bandwidth over message size. --by node sets groups within a node beside
    those that cross nodes. --by pair shows what each rank sent to each other one (experts, pipeline
    stages); with -o FILE.png as a heat map.
    """
