"""What becomes of a comparison: the screen, or a file of any format."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from nsightpy.cli.options import deliver, deliver_text, show, tell
from nsightpy.results.comparison import Comparison


def deliver_comparison(result: Comparison, options: dict[str, Any]) -> None:
    """Print or write a comparison in the wanted format; notes go to stderr for people."""
    from nsightpy.render.comparison.junit import comparison_junit
    from nsightpy.render.comparison.markdown import comparison_markdown
    from nsightpy.render.formats import to_json
    from nsightpy.render.plots.drawing import is_picture

    top = sys.maxsize if options["top"] == 0 else options["top"]
    if is_picture(options["output"]):
        from nsightpy.render.comparison.plot import comparison_figure
        from nsightpy.render.plots.drawing import picture_bytes

        deliver(picture_bytes(comparison_figure(result), options["output"]), options)
    elif options["format_"] == "table":
        from nsightpy.render.comparison.text import print_comparison

        deliver_text(lambda out: print_comparison(result, out, top), options)
    elif options["format_"] == "markdown":
        deliver(comparison_markdown(result, top), options)
    elif options["format_"] == "json":
        deliver(to_json(result), options)
    elif options["format_"] == "junit":
        deliver(comparison_junit(result), options)
    else:
        show(_first(result, top), options)
        return
    tell(result, options)


def _first(result: Comparison, top: int | None) -> Comparison:
    """The step, its parts, and the first rows of what ran."""
    sections = (result.kernels, result.collectives, result.ranges)
    shown = (result.step, *result.parts, *(row for rows in sections for row in rows[:top]))
    return replace(result, rows=tuple(quantity.row for quantity in shown))
