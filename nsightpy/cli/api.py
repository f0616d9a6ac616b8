"""nsightpy api"""

import click

from nsightpy.cli.options import top_option
from nsightpy.cli.table_command import table_command


@table_command(
    "api",
    click.option(
        "--library",
        type=click.Choice(["cuda", "mpi", "cublas", "cudnn", "osrt"]),
        default="cuda",
        show_default=True,
        help="Whose calls; osrt is the operating system's.",
    ),
    click.option("--by", metavar="LIST", default="", help="Split by rank, process."),
    top_option,
)
def command() -> None:
    """Rank API functions by total host time, as `nsys stats --report cuda_api_sum` does.

    With --library osrt the figures are those of osrt_sum; --library mpi --by rank shows how long
    each rank was in each MPI call.
    """
