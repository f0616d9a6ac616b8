"""nsightpy modules"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.delivery import show
from nsightpy.cli.nvtx import indented
from nsightpy.cli.options import asked, common_options, top_option


@click.command("modules")
@common_options
@click.option("--depth", metavar="N", type=click.IntRange(1), help="Only so many levels.")
@top_option
def command(**options: Any) -> None:
    """Device time of modules inside modules, with the backward pass of each.

    Modules are the nn.Module calls of a PyTorch trace (with_stack, with_modules) or the NVTX
    ranges of an Nsight Systems report. What autograd's thread launched for a module is attributed
    to it: by sequence numbers in traces, by time in reports.
    """
    from nsightpy.commands.modules import modules

    table = asked(modules, options)
    show(indented(table) if options["format_"] == "table" else table, options)
