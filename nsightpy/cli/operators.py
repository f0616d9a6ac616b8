"""nsightpy operators"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, show, top_option


@click.command("operators")
@common_options
@click.option("--by", metavar="LIST", default="", help="Split by shape, thread, rank, module.")
@top_option
def command(**options: Any) -> None:
    """Operators of PyTorch traces: host and device time; own times are those of key_averages.

    Own device time is that of kernels, copies and sets launched under the operator itself; the
    total adds all that it called. An operator and the one of its own name that is all it calls are
    two calls here and one in key_averages. Where shapes were recorded, the FLOP that matrix
    products, convolutions and attention ask for by their shapes.
    """
    from nsightpy.commands.operators import operators

    show(asked(operators, options), options)
