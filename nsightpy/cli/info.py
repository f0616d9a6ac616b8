"""nsightpy info"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.delivery import deliver_text, show, tell
from nsightpy.cli.options import asked, common_options

MOST_CARDS = 4


@click.command("info")
@common_options
def command(**options: Any) -> None:
    """Show what each REPORT is, with the evidence for its rank and what to be careful about."""
    from nsightpy.commands.info.command import info, overview

    table = asked(info, options)
    if options["format_"] != "table" or len(table) > MOST_CARDS:
        show(overview(table) if options["format_"] == "table" else table, options)
        return
    from nsightpy.render.text.terminal import print_cards

    deliver_text(lambda out: print_cards(table, out), options)
    tell(table, options)
