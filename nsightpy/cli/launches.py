"""nsightpy launches"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli import launch_queues, sync_waits
from nsightpy.cli.delivery import show
from nsightpy.cli.options import asked, common_options, name_option, top_option
from nsightpy.errors import UsageError


@click.command("launches")
@common_options
@click.option("--queue", is_flag=True, hidden=True, help="The old name of launch-queues.")
@click.option("--sync", is_flag=True, hidden=True, help="The old name of sync-waits.")
@name_option
@top_option
def command(**options: Any) -> None:
    """Medians of the phases of a launch: the API call, the wait in the queue, the kernel.

    A kernel and a call belong together when process and correlation id agree. The queue median is
    over the launches that waited. launch-queues and sync-waits show what launching and waiting did
    to the devices.
    """
    if options["queue"] and options["sync"]:
        raise UsageError("--queue and --sync are two tables: ask for one at a time")
    if options["queue"]:
        click.get_current_context().invoke(launch_queues.command, **options)
    elif options["sync"]:
        click.get_current_context().invoke(sync_waits.command, **options)
    else:
        from nsightpy.commands.launches import launches

        show(asked(launches, options), options)
