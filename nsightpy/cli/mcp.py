"""nsightpy mcp"""

from __future__ import annotations

import click

from nsightpy.cli.options import cache_option


@click.command("mcp")
@click.option(
    "--root",
    metavar="DIR",
    multiple=True,
    required=True,
    help="A folder whose reports may be read; may be repeated.",
)
@cache_option
def command(root: tuple[str, ...], no_cache: bool) -> None:
    """Serve these commands as read-only tools of agents, over stdin and stdout (MCP).

    Only reports in the --root folders are read, wherever links lead; nothing is written but the
    cache of exports, no connection is opened, and rows are bounded: 50, or up to 1000 with top.
    """
    from nsightpy.commands.mcp.command import mcp

    mcp(root, use_cache=not no_cache)
