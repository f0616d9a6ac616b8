"""nsightpy cache"""

from __future__ import annotations

import click


@click.command("cache")
@click.option("--clear", is_flag=True, help="Remove them all.")
def command(clear: bool) -> None:
    """Show where exports of binary reports are kept and how much space they take, or clear them."""
    from nsightpy.commands.cache import cache
    from nsightpy.units import format_bytes

    usage = cache(clear=clear)
    size = format_bytes(usage.bytes)
    if clear:
        click.echo(f"removed {usage.files} exports, {size}")
    else:
        limit = format_bytes(usage.limit_bytes)
        click.echo(f"{usage.folder}: {usage.files} exports, {size} of {limit}")
