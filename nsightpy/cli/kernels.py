"""nsightpy kernels"""

import click

from nsightpy.cli.options import name_option, top_option
from nsightpy.cli.table_command import table_command


@table_command(
    "kernels",
    click.option(
        "--by",
        metavar="LIST",
        default="",
        help="Split by rank, device, process, stream, grid, block.",
    ),
    name_option,
    top_option,
)
def command() -> None:
    """Rank kernels by total GPU time over all REPORTs.

    The columns and figures are those of `nsys stats --report cuda_gpu_kern_sum`. Time (%) is a
    share of all kernel time, not of wall time.
    """
