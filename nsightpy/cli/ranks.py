"""nsightpy ranks"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, communication_option, show


@click.command("ranks")
@common_options
@communication_option
def command(**options: Any) -> None:
    """Put every rank on one clock and say how well; how long each waits, and who is waited for.

    offset_ns is how far a rank's clock was ahead of the first rank's when its session began, found
    from the ends of shared collectives, with percentiles of what remains. A straggler is named
    only where one rank is last far beyond chance, waits least, and delays the others.
    """
    from nsightpy.commands.ranks import ranks

    show(asked(ranks, options), options)
