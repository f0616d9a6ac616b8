"""nsightpy iterations"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import common_of, common_options, deliver, say, show


@click.command("iterations")
@common_options
@click.option(
    "--communication",
    metavar="RE",
    multiple=True,
    help="Kernels whose name matches count as communication, too; may be repeated.",
)
def command(**options: Any) -> None:
    """Find the iterations of a run, and divide the time of each.

    They are the instances of the range that --nvtx names, else of a repeated top-level NVTX
    range, else a repeated collective or kernel sequence; the source is said. Warm-up and what the
    profiler cut off are told from the steady part. -o FILE.png, .svg or .pdf draws them.
    """
    from nsightpy.render.plots import is_picture
    from nsightpy.verbs.iterations import iterations

    table = iterations(
        options["reports"], communication=options["communication"], **common_of(options)
    )
    if not is_picture(options["output"]):
        show(table, options)
        return
    from nsightpy.render.iterations_plot import iterations_figure
    from nsightpy.render.plots import picture

    deliver(picture(iterations_figure(table), options["output"]), options)
    for note in table.notes:
        say(note, options)
