"""Long tables: written row by row where they are for machines, their beginning for people."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nsightpy.cli.options import on_terminal, output_of, show, tell

if TYPE_CHECKING:
    from nsightpy.results import Table

# So many rows of a long table go into a pipe for people who do not ask for a number.
SHOWN = 200


def show_listing(table: Table, options: dict[str, Any]) -> None:
    """Print or write a long table in the wanted format; notes as `show` does."""
    from nsightpy.errors import UsageError
    from nsightpy.render import streams
    from nsightpy.render.output import STDOUT

    writer = streams.WRITERS.get(options["format_"])
    if writer is None:
        asked_for = options["top"] is not None or options["format_"] != "table"
        rows = len(table) if asked_for or on_terminal(options) else SHOWN
        more = len(table) - rows
        said = (f"and {more:,} more rows (--top N, --format csv)",) if more > 0 else ()
        shown = replace(table, rows=table.rows[:rows], notes=(*said, *table.notes))
        show(shown, options)
        return
    if options["output"] == STDOUT:
        if options["format_"] == "parquet" and sys.stdout.isatty():
            raise UsageError("Parquet is not for terminals: give -o FILE")
        sys.stdout.flush()
        writer(table, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        with output_of(options) as file:
            writer(table, file)
    tell(table, options)
