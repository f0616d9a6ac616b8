"""nsightpy roofline"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.delivery import deliver_text, is_picture, rows_shown, show_or_draw, tell
from nsightpy.cli.options import asked, common_options, name_option, top_option


@click.command("roofline")
@common_options
@click.option(
    "--clock",
    metavar="profiled|max|MHZ",
    default="profiled",
    show_default=True,
    help="SM clock at which the peaks are meant.",
)
@click.option(
    "--ceilings", metavar="FILE", help="Measured limits to draw: lines of name, value, unit."
)
@click.option(
    "--by",
    type=click.Choice(["launch", "variant"]),
    default="launch",
    show_default=True,
    help="Rows of each launch, or of each kernel and shape with its spread.",
)
@click.option(
    "-k",
    "--kernel-name",
    metavar="NAME|regex:RE",
    help="Only launches of this kernel, as ncu takes names; * stands for anything.",
)
@click.option("--id", "launch_id", metavar="SPEC", help="Only launches with these ids: 3,7-9.")
@name_option
@top_option
def command(**options: Any) -> None:
    """Kernels against the machine's limits, from Nsight Compute REPORTs (.ncu-rep, ncu --csv).

    Prints achieved and peak rates per precision and memory level, speed of light, NVIDIA's class
    and a verdict. -o FILE.png, .svg or .pdf draws the roofline and the speed-of-light bars.
    """
    from nsightpy.commands.roofline.command import roofline

    result = asked(roofline, options)
    if is_picture(options["output"]) or options["format_"] != "table":
        from nsightpy.render.roofline.plot import roofline_figure

        show_or_draw(result, roofline_figure, options)
        return
    from nsightpy.render.roofline.text import print_roofline

    rows = rows_shown(result, options)
    deliver_text(lambda out: print_roofline(result, out, rows), options)
    tell(result, options)
