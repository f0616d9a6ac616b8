"""nsightpy cache"""

from __future__ import annotations

import click


@click.command("cache")
@click.option("--clear", is_flag=True, help="Remove them all.")
def command(clear: bool) -> None:
    """Show what is kept of reports, where, and how much space it takes, or clear it."""
    from nsightpy.commands.cache import cache
    from nsightpy.units import format_bytes

    usage = cache(clear=clear)
    size = format_bytes(usage.bytes)
    if clear:
        click.echo(f"removed {usage.files} entries, {size}")
    else:
        limit = format_bytes(usage.limit_bytes)
        click.echo(f"{usage.folder}: {usage.files} entries, {size} of {limit}")
