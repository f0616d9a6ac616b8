"""Reports of two sides on a command line: those before the first -- and those behind it."""

from __future__ import annotations

import click

from nsightpy.cli.options import DeclaredCommand

_BETWEEN = "\0"  # no path holds it


class WithSides(DeclaredCommand):
    """A command whose reports may be of two sides: then `before` holds those before the --."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" not in args:
            return super().parse_args(ctx, args)
        at = args.index("--")
        rest = super().parse_args(ctx, [*args[:at], _BETWEEN, *args[at + 1 :]])
        given = ctx.params["reports"]
        middle = given.index(_BETWEEN)
        ctx.params["before"], ctx.params["reports"] = given[:middle], given[middle + 1 :]
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", "REPORT...", "|", "BEFORE... -- AFTER..."]
