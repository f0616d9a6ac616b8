"""nsightpy utilization"""

import click

from nsightpy.cli.options import communication_option
from nsightpy.cli.table_command import table_command


@table_command(
    "utilization",
    communication_option,
    click.option(
        "--bins",
        type=click.IntRange(1, 100_000),
        default=200,
        show_default=True,
        help="Into so many equal stretches time is divided.",
    ),
    plot="utilization_plot",
    people="by_device",
)
def command() -> None:
    """Show how busy every device was over time, and with what, on the clock of all ranks.

    Shares of each stretch of time: busy, compute, communication, copies; where the capture sampled
    them, SM and tensor activity, DRAM and NVLink bandwidth as shares of their peak, and what the
    network interfaces carried. -o FILE.png, .svg or .pdf draws rank over time. A terminal shows one
    row a device; the files have every stretch.
    """
