"""nsightpy nvtx"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nsightpy.cli import nvtx_metrics
from nsightpy.cli.delivery import on_terminal, show
from nsightpy.cli.options import asked, common_options, top_option

if TYPE_CHECKING:
    from nsightpy.results import Table


@click.command("nvtx")
@common_options
@click.option("--tree", is_flag=True, help="Ranges inside ranges, outer ones first.")
@click.option(
    "--fold/--unfold",
    default=None,
    help="Ranges that differ in numbers only as one row: layer *.  [on a terminal]",
)
@click.option("--metrics", is_flag=True, hidden=True, help="The old name of nvtx-metrics.")
@top_option
def command(**options: Any) -> None:
    """Rank NVTX ranges by the GPU time of what they launched.

    A GPU operation belongs to a range when its launch call lies inside the range on the same
    thread. The projected time of an instance runs from the first start to the last end of its
    operations, as in `nsys stats` nvtx_gpu_proj_sum. Instances that frameworks number (`, op_id =
    12`, `, seq = 7`, sizes) are counted together.
    """
    if options["metrics"]:
        click.get_current_context().invoke(nvtx_metrics.command, **options)
        return
    from nsightpy.commands.nvtx import nvtx

    if options["fold"] is None:
        options["fold"] = on_terminal(options) and options["format_"] == "table"
    table = asked(nvtx, options)
    show(indented(table) if options["tree"] and options["format_"] == "table" else table, options)


def indented(table: Table) -> Table:
    """The tree for people: each range under its parent, by its own name only."""
    from dataclasses import replace

    above: list[str] = []
    rows = []
    for path, *rest in table.rows:
        text = str(path)
        while above and not text.startswith(above[-1] + "/"):
            above.pop()
        name = text[len(above[-1]) + 1 :] if above else text
        rows.append(("  " * len(above) + name, *rest))
        above.append(text)
    return replace(table, rows=tuple(rows))
