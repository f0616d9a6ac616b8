"""mcp: the commands as read-only tools of agents, over stdio, and the guide for agents."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from nsightpy.commands.mcp.tools import Roots, guide
from nsightpy.errors import NsightpyError
from nsightpy.query.command import command
from nsightpy.query.options import Option, UseCache


@command()
def mcp(
    *,
    root: Annotated[
        str | Path | Sequence[str | Path],
        Option("A folder whose reports may be read; may be repeated.", "DIR", several=True),
    ] = (),
    skill: Annotated[bool, Option("Print the guide for agents (SKILL.md) instead.")] = False,
    use_cache: UseCache = True,
) -> str:
    """Over stdin and stdout (the Model Context Protocol), until stdin ends.

    Only reports in the --root folders are read, wherever links lead; nothing is written but what
    is kept of reports, no connection is opened, and rows are bounded: 50, or up to 1000 with top.
    """
    if skill:
        return guide()
    roots = Roots.of([root] if isinstance(root, str | Path) else root)
    if find_spec("mcp") is None:
        raise NsightpyError("`nsightpy mcp` needs the package mcp: pip install 'nsightpy[mcp]'")
    from nsightpy.commands.mcp.server import serve

    serve(roots, use_cache=use_cache)
    return ""
