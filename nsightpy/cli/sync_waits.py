"""nsightpy sync-waits"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, show, top_option


@click.command("sync-waits")
@common_options
@top_option
def command(**options: Any) -> None:
    """Rank the calls in which the host waited by how long the device did nothing in them.

    Synchronisations, copies that block, frees. idle_share is the part of the device's window; the
    rest of a call waited for work that was running.
    """
    from nsightpy.commands.sync_waits import sync_waits

    show(asked(sync_waits, options), options)
