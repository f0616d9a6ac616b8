"""nsightpy breakdown"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, communication_option, show_or_draw


@click.command("breakdown")
@common_options
@communication_option
def command(**options: Any) -> None:
    """Divide the time of every rank and device into compute, communication, copies and idle.

    Every figure is a length of time, united over all streams. The window runs from the first
    start to the last end of the device's work, or from --from to --to. Time without compute is
    divided by cause: nothing launched, blocked by another operation, or stalled. -o FILE.png,
    .svg or .pdf draws it.
    """
    from nsightpy.commands.breakdown import breakdown
    from nsightpy.render.plots.budget_plot import breakdown_figure

    show_or_draw(asked(breakdown, options), breakdown_figure, options)
