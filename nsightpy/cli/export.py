"""nsightpy export"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.delivery import say
from nsightpy.cli.options import asked, folder_options


@click.command("export")
@folder_options
def command(**options: Any) -> None:
    """Write every frame of every report into the folder DIR, for DuckDB, polars or pandas.

    Each frame is a folder (kernels, api_calls, ...) with a file for each report; schema.json and
    README.md in DIR say what the columns are. Times are on the clock of all ranks.
    """
    from nsightpy.commands.export.command import export

    table = asked(export, options, file_format=options["format_"])
    rows = sum(int(row[1] or 0) for row in table.rows)
    say(f"{rows:,} rows in {len(table):,} files in {options['output']}", options)
    for note in table.notes:
        say(note, options)
