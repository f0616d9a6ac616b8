"""nsightpy kernels"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, name_option, show, top_option


@click.command("kernels")
@common_options
@click.option(
    "--by", metavar="LIST", default="", help="Split by rank, device, process, stream, grid, block."
)
@name_option
@top_option
def command(**options: Any) -> None:
    """Rank kernels by total GPU time over all REPORTs.

    The columns and figures are those of `nsys stats --report cuda_gpu_kern_sum`. Time (%) is a
    share of all kernel time, not of wall time.
    """
    from nsightpy.commands.kernels import kernels

    show(asked(kernels, options), options)
