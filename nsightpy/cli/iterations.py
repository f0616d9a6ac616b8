"""nsightpy iterations"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import (
    asked,
    common_options,
    communication_option,
    show_or_draw,
    top_option,
)


@click.command("iterations")
@common_options
@communication_option
@top_option
def command(**options: Any) -> None:
    """Find the iterations of a run, and divide the time of each.

    They are the instances of the range that --nvtx names, else of ranges that are called steps or
    hold the work, else a repeated collective or kernel sequence; not layers, not single launches.
    The source is named, and what else repeats. Warm-up and what the profiler cut off are no
    part of the steady state. -o FILE.png, .svg or .pdf draws them.
    """
    from nsightpy.commands.iterations import iterations
    from nsightpy.render.plots.iterations_plot import iterations_figure

    show_or_draw(asked(iterations, options), iterations_figure, options)
