"""nsightpy api"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, show, top_option


@click.command("api")
@common_options
@click.option(
    "--library",
    type=click.Choice(["cuda", "mpi", "cublas", "cudnn", "osrt"]),
    default="cuda",
    show_default=True,
    help="Whose calls; osrt is the operating system's.",
)
@click.option("--by", metavar="LIST", default="", help="Split by rank, process.")
@top_option
def command(**options: Any) -> None:
    """Rank API functions by total host time, as `nsys stats --report cuda_api_sum` does.

    With --library osrt the figures are those of osrt_sum; --library mpi --by rank shows how long
    each rank was in each MPI call.
    """
    from nsightpy.commands.api import api

    show(asked(api, options), options)
