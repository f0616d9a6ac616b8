"""nsightpy operators"""

import click

from nsightpy.cli.options import top_option
from nsightpy.cli.table_command import table_command


@table_command(
    "operators",
    click.option(
        "--by", metavar="LIST", default="", help="Split by shape, thread, rank, process, module."
    ),
    top_option,
)
def command() -> None:
    """Operators of PyTorch traces: host and device time; own times are those of key_averages.

    Own device time is that of kernels, copies and sets launched under the operator itself; the
    total adds all that it called. An operator and the one of its own name that is all it calls are
    two calls here and one in key_averages. Where shapes were recorded, the FLOP that matrix
    products, convolutions and attention ask for by their shapes.
    """
