"""nsightpy launches"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import common_of, common_options, name_option, show, top_option


@click.command("launches")
@common_options
@name_option
@top_option
def command(**options: Any) -> None:
    """Medians of the phases of a launch: the API call, the wait in the queue, the kernel.

    A kernel and a call belong together when process and correlation id agree. The queue median is
    over the launches that waited.
    """
    from nsightpy.verbs.launches import launches

    table = launches(
        options["reports"], name=options["name"], top=options["top"], **common_of(options)
    )
    show(table, options)
