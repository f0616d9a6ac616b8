"""nsightpy summarize"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.delivery import deliver, deliver_text, show
from nsightpy.cli.options import asked, common_options, top_option


@click.command("summarize")
@common_options
@top_option
def command(**options: Any) -> None:
    """Say in one screen what the GPUs did, what to look at first, and the command to run next.

    csv, markdown and parquet hold the findings; json holds every section by name.
    """
    from nsightpy.commands.summarize.command import summarize, summary_findings
    from nsightpy.output.formats import summary_json

    summary = asked(summarize, options)
    if options["format_"] == "json":
        deliver(summary_json(summary), options)
    elif options["format_"] == "table":
        from nsightpy.render.text.summary import print_summary

        deliver_text(lambda out: print_summary(summary, out), options)
    else:
        show(summary_findings(summary), options)
