"""mcp: the commands as read-only tools of agents, over stdio."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from nsightpy.commands.mcp.roots import Roots
from nsightpy.errors import NsightpyError
from nsightpy.query.signature import explained


@explained
def mcp(root: str | Path | Sequence[str | Path], *, use_cache: bool = True) -> None:
    """Serve the commands over stdin and stdout, on the reports in the folders `root` alone.

    It reads and never writes but for the cache of exports, opens no
    connection, and ends with stdin. Raises UsageError for what is no folder, NsightpyError where
    the package mcp is missing.
    """
    roots = Roots.of([root] if isinstance(root, str | Path) else root)
    if find_spec("mcp") is None:
        raise NsightpyError("`nsightpy mcp` needs the package mcp: pip install 'nsightpy[mcp]'")
    from nsightpy.commands.mcp.server import serve

    serve(roots, use_cache=use_cache)
