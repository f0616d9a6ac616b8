"""nsightpy memory-usage"""

import click

from nsightpy.cli.options import top_option
from nsightpy.cli.table_command import table_command


@table_command(
    "memory-usage",
    click.option(
        "--by",
        metavar="WHAT",
        help="Of snapshots: group by stack, file or function, not by line.",
    ),
    click.option("--diff", is_flag=True, help="Compare two snapshots, place by place."),
    top_option,
    plot="memory_plot",
)
def command() -> None:
    """Show allocated memory over time: the peak, and who holds it.

    Reads nsys captures with --cuda-memory-usage=true, and memory snapshots of PyTorch
    (torch.cuda.memory._dump_snapshot), in which nothing is ever run. -o FILE.png, .svg or .pdf
    draws live memory over time.
    """
