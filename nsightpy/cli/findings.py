"""nsightpy findings"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.delivery import deliver_text, show, tell
from nsightpy.cli.options import asked, common_options, communication_option, top_option


@click.command("findings")
@common_options
@communication_option
@top_option
def command(**options: Any) -> None:
    """List what stands out in the REPORTs, the most severe first.

    In order of severity (error, warning, info), and in each the largest share of a device's time
    first. Each bound is a ceiling for that finding alone; ceilings overlap and must not be added.
    It is per iteration where iterations are known, else for the whole window.
    """
    from nsightpy.commands.findings.command import findings

    table = asked(findings, options)
    if options["format_"] != "table":
        show(table, options)
        return
    from dataclasses import replace

    from nsightpy.render.text.findings import print_findings
    from nsightpy.render.text.summary import unsaid

    deliver_text(lambda out: print_findings(table, out), options)
    said = [str(text) for text in table.column("evidence")]
    tell(replace(table, notes=tuple(unsaid(table.notes, said))), options)
