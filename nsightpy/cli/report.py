"""nsightpy report"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nsightpy.cli.delivery import output_of
from nsightpy.cli.options import asked, picture_options
from nsightpy.cli.sides import SIDES, WithSides


class WithReports(WithSides):
    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", "REPORT...", "|", "BEFORE... -- AFTER..."]


@click.command("report", cls=WithReports)
@picture_options
@click.option("--timeline", is_flag=True, help="Embed the timeline, to zoom and search in.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Everything that the commands say of these reports, on one offline page (-o FILE.html).

    Reports of one job or traces of PyTorch; beside them, reports of Nsight Compute and memory
    snapshots of PyTorch. Folders may hold all of them. The page has at most 1 MB without
    --timeline, loads nothing, and can be read without JavaScript.

    With -- each report or folder is a run, as of compare: the page is about the first one behind
    it, and begins with what changed.
    """
    from nsightpy.commands.report.command import report
    from nsightpy.errors import UsageError

    output = options["output"]
    if output is None or Path(output).suffix.lower() not in (".html", ".htm"):
        what = "give -o FILE.html" if output is None else f"{output}: the name must end with .html"
        raise UsageError(what)
    sides = context.meta.get(SIDES)
    runs = {} if sides is None else {"before": sides[0], "reports": sides[1]}
    made = asked(report, options, **runs)
    with output_of(options) as file:
        from nsightpy.render.page.page import write_page

        write_page(made, file)
