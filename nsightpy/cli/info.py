"""nsightpy info"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import common_of, common_options, show


@click.command("info", short_help="What each report is: rank, host, GPU, versions, warnings.")
@common_options
def command(**options: Any) -> None:
    """Show what each REPORT is, with the evidence for its rank and what to be careful about."""
    from nsightpy.verbs.info import info

    show(info(options["reports"], **common_of(options)), options)
