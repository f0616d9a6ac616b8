"""nsightpy breakdown"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.delivery import is_picture, show, show_or_draw
from nsightpy.cli.options import asked, common_options, communication_option, opened, top_option


@click.command("breakdown")
@common_options
@communication_option
@top_option
def command(**options: Any) -> None:
    """Divide the time of every rank and device into compute, communication, copies and idle.

    Every figure is a length of time, united over all streams. The window runs from the first
    start to the last end of the device's work, or from --from to --to. Time without compute is
    divided by cause: nothing launched, blocked by another operation, or stalled. On the terminal
    launch starved is the idle part alone; the files have both. -o FILE.png, .svg or .pdf draws the
    time of each device and, where there are any, of each iteration.
    """
    from nsightpy.commands.breakdown import beside_idle, breakdown

    if not is_picture(options["output"]):
        table = asked(breakdown, options)
        people = options["format_"] == "table"
        show(beside_idle(table) if people else table, options)
        return
    from functools import partial

    from nsightpy.commands.iterations import iterations
    from nsightpy.commands.report.one_pass import answers
    from nsightpy.render.plots.budget_plot import breakdown_figure

    questions = [
        lambda ranks, command=command: asked(command, options, reports=ranks)
        for command in (breakdown, iterations)
    ]
    table, by_iteration = answers(opened(options), questions)
    show_or_draw(table, partial(breakdown_figure, iterations=by_iteration), options)
