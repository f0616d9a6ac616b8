"""nsightpy headroom"""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from nsightpy.cli.delivery import show_or_draw
from nsightpy.cli.options import asked, common_options, communication_option, top_option


class WithMeasurements(click.Command):
    """A command whose --ncu takes all words up to the next option: reports, folders, globs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        taking = False
        for word in args:
            if word.startswith("-") and word != "-":
                taking = word == "--ncu"
                spread += [] if taking else [word]
            else:
                spread += ["--ncu", word] if taking else [word]
        return super().parse_args(ctx, spread)


@click.command("headroom", cls=WithMeasurements)
@common_options
@click.option(
    "--ncu",
    metavar="NCU...",
    multiple=True,
    required=True,
    help="What ncu measured: .ncu-rep or ncu --csv files, folders, globs; up to the next option.",
)
@communication_option
@click.option("--whole", is_flag=True, help="Count warm-up, too, not the steady state only.")
@top_option
def command(**options: Any) -> None:
    """What could be gained: nsys REPORTs joined with what ncu measured of their kernels.

    ceiling_share = share of the step x (1 - achieved / nearest roof): never a forecast. With
    -o FILE.png, .svg or .pdf a picture: share of the step against fraction of the roof, with lines
    of equal gain.
    """
    from nsightpy.commands.headroom.command import headroom
    from nsightpy.render.plots.headroom_plot import headroom_figure

    made = asked(headroom, options)
    show_or_draw(made, partial(headroom_figure, together=made.ceiling_share), options)
