"""nsightpy graphs"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, show, top_option


@click.command("graphs")
@common_options
@click.option("--by", metavar="WHAT", default="graph", help="A row per graph, replay or node.")
@top_option
def command(**options: Any) -> None:
    """CUDA graphs: how long each replay took, was busy and had gaps, and what its launch cost.

    With --by node the operations of the graphs, and the code ranges in which they were captured.
    """
    from nsightpy.commands.graphs import graphs

    show(asked(graphs, options), options)
