"""nsightpy graphs"""

import click

from nsightpy.cli.options import top_option
from nsightpy.cli.table_command import table_command


@table_command(
    "graphs",
    click.option("--by", metavar="WHAT", default="graph", help="A row per graph, replay or node."),
    top_option,
)
def command() -> None:
    """CUDA graphs: how long each replay took, was busy and had gaps, and what its launch cost.

    With --by node the operations of the graphs, and the code ranges in which they were captured.
    """
