"""nsightpy launch-queues"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, show_or_draw, top_option


@click.command("launch-queues")
@common_options
@top_option
def command(**options: Any) -> None:
    """Show how much work waited on each stream, and where launching set the pace.

    An operation waits from the begin of its launch call until it begins to run. launch_bound: at
    least 20 kernels in a row ran shorter than their launch calls, the host never pausing.
    -o FILE.png, .svg or .pdf draws the queues over time.
    """
    from nsightpy.commands.launch_queues import launch_queues
    from nsightpy.render.plots.queue_plot import queue_figure

    show_or_draw(asked(launch_queues, options), queue_figure, options)
