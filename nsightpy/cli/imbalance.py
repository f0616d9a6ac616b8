"""nsightpy imbalance"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import common_of, common_options, name_option, show, top_option


@click.command(
    "imbalance", short_help="Kernels whose time differs between ranks, and the slowest rank."
)
@common_options
@click.option(
    "--communication",
    metavar="RE",
    multiple=True,
    help="Kernels whose name matches count as communication, too; may be repeated.",
)
@name_option
@top_option
def command(**options: Any) -> None:
    """Compare the time of every kernel between the ranks that do the same work.

    max_over_mean is the slowest rank's time over the mean. Communication kernels are left out:
    their time holds waiting, which `ranks` and `collectives` tell apart.
    """
    from nsightpy.commands.imbalance import imbalance

    show(
        imbalance(
            options["reports"],
            communication=options["communication"],
            name=options["name"],
            top=options["top"],
            **common_of(options),
        ),
        options,
    )
