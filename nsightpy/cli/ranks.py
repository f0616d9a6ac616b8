"""nsightpy ranks"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nsightpy.cli.delivery import show
from nsightpy.cli.options import asked, common_options, communication_option, top_option

if TYPE_CHECKING:
    from nsightpy.results import Table

UNRELATED = "cannot be one job"
CLOCKS: tuple[str, ...] = (
    "offset_ns",
    "drift_ppm",
    "alignment",
    "residual_p05_ns",
    "residual_p50_ns",
)
CLOCKS += ("residual_p95_ns", "instances")


@click.command("ranks")
@common_options
@communication_option
@top_option
def command(**options: Any) -> None:
    """Put every rank on one clock and say how well; how long each waits, and who is waited for.

    offset_ns is how far a rank's clock was ahead of the first rank's when its session began, found
    from the ends of shared collectives, with percentiles of what remains. A straggler is named
    only where one rank is last far beyond chance, waits least, and delays the others.
    """
    from nsightpy.commands.ranks import ranks

    table = asked(ranks, options)
    show(placed(table) if options["format_"] in ("table", "markdown") else table, options)


def placed(table: Table) -> Table:
    """The table for people: captures that cannot be one job have no clock to share."""
    from dataclasses import replace

    if not any(UNRELATED in note for note in table.notes):
        return table
    kept = [n for n, field in enumerate(table.fields) if field.name not in CLOCKS]
    fields = tuple(table.fields[n] for n in kept)
    return replace(table, fields=fields, rows=tuple(tuple(row[n] for n in kept) for row in table))
