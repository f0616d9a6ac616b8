"""nsightpy launches"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nsightpy.cli.options import (
    common_of,
    common_options,
    name_option,
    show,
    show_or_draw,
    top_option,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@click.command("launches")
@common_options
@click.option(
    "--queue",
    is_flag=True,
    help="Queue lengths of the streams, and launch-bound stretches; -o FILE.png draws them.",
)
@click.option(
    "--sync",
    is_flag=True,
    help="Synchronising calls instead, and how long the device did nothing in them.",
)
@name_option
@top_option
def command(**options: Any) -> None:
    """Medians of the phases of a launch: the API call, the wait in the queue, the kernel.

    A kernel and a call belong together when process and correlation id agree. The queue median is
    over the launches that waited. --queue and --sync show what launching and waiting did to the
    devices.
    """
    if options["queue"] or options["sync"]:
        _devices(options)
        return
    from nsightpy.commands.launches import launches

    table = launches(
        options["reports"], name=options["name"], top=options["top"], **common_of(options)
    )
    show(table, options)


def _devices(options: dict[str, Any]) -> None:
    from nsightpy.errors import UsageError

    if options["queue"] and options["sync"]:
        raise UsageError("--queue and --sync are two tables: ask for one at a time")
    if options["sync"]:
        from nsightpy.commands.sync_waits import sync_waits

        show(sync_waits(options["reports"], top=options["top"], **common_of(options)), options)
        return
    from nsightpy.commands.launch_queues import launch_queues

    table = launch_queues(options["reports"], top=options["top"], **common_of(options))

    def figure() -> Figure:
        from nsightpy.render.plots.queue_plot import queue_figure

        return queue_figure(table)

    show_or_draw(table, figure, options)
