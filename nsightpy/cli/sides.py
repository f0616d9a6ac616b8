"""Reports of two sides on a command line: those before the first -- and those behind it."""

from __future__ import annotations

import click

SIDES = "nsightpy.sides"
_BETWEEN = "\0"  # no path holds it


class WithSides(click.Command):
    """A command whose reports may be of two sides; in `meta`, under SIDES, both, or nothing."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" not in args:
            return super().parse_args(ctx, args)
        at = args.index("--")
        rest = super().parse_args(ctx, [*args[:at], _BETWEEN, *args[at + 1 :]])
        given = ctx.params["reports"]
        middle = given.index(_BETWEEN)
        ctx.meta[SIDES] = (given[:middle], given[middle + 1 :])
        ctx.params["reports"] = (*given[:middle], *given[middle + 1 :])
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", "BEFORE...", "[-- AFTER...]"]
