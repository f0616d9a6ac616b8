"""nsightpy cache"""

from __future__ import annotations

import click


@click.command("cache")
@click.option("--clear", is_flag=True, help="Remove them all.")
def command(clear: bool) -> None:
    """Show where exports of binary reports are kept and how much room they take, or clear them."""
    from nsightpy.readers.export.export_cache import cache_usage, clear_cache
    from nsightpy.units import format_bytes

    if clear:
        files, size = clear_cache()
        click.echo(f"removed {files} exports, {format_bytes(size)}")
        return
    usage = cache_usage()
    limit = format_bytes(usage.limit_bytes)
    click.echo(f"{usage.folder}: {usage.files} exports, {format_bytes(usage.bytes)} of {limit}")
