"""nsightpy report"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nsightpy.cli.options import asked, output_of, picture_options


@click.command("report")
@picture_options
@click.option("--timeline", is_flag=True, help="Embed the timeline, to zoom and search in.")
def command(**options: Any) -> None:
    """Everything that the commands say of these reports, on one offline page (-o FILE.html).

    Reports of one job or traces of PyTorch; beside them, reports of Nsight Compute and memory
    snapshots of PyTorch. Folders may hold all of them. The page has at most 1 MB without
    --timeline, loads nothing, and can be read without JavaScript.
    """
    from nsightpy.commands.report.command import report
    from nsightpy.errors import UsageError

    output = options["output"]
    if output is None or Path(output).suffix.lower() not in (".html", ".htm"):
        what = "give -o FILE.html" if output is None else f"{output}: the name must end with .html"
        raise UsageError(what)
    made = asked(report, options)
    with output_of(options) as file:
        from nsightpy.render.page.page import write_page

        write_page(made, file)
