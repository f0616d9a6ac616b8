"""nsightpy breakdown"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import common_of, common_options, show


@click.command("breakdown")
@common_options
@click.option(
    "--communication",
    metavar="RE",
    multiple=True,
    help="Kernels whose name matches count as communication, too; may be repeated.",
)
def command(**options: Any) -> None:
    """Divide the time of every rank and device into compute, communication, copies and idle.

    Every figure is a length of time, united over all streams. The window runs from the first
    start to the last end of the device's work, or from --from to --to.
    """
    from nsightpy.verbs.breakdown import breakdown

    table = breakdown(
        options["reports"], communication=options["communication"], **common_of(options)
    )
    show(table, options)
