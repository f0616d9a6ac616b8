"""The pictures of a page, by the renderers that draw them for files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from nsightpy.errors import NsightpyError
from nsightpy.render.comparison import plot as comparison_plot
from nsightpy.render.page.svg import inline_svg
from nsightpy.render.plots import (
    budget_plot,
    collectives_plot,
    headroom_plot,
    histogram_plot,
    iterations_plot,
    memory_plot,
    pace_plot,
    queue_plot,
    utilization_plot,
)
from nsightpy.render.roofline import plot as roofline_plot
from nsightpy.render.timeline import plot as timeline_plot
from nsightpy.results.page import PagePicture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAW: dict[str, Callable[[Any], Figure]] = {
    "breakdown": budget_plot.breakdown_figure,
    "collectives": collectives_plot.collectives_figure,
    "comparison": comparison_plot.comparison_figure,
    "headroom": headroom_plot.headroom_figure,
    "histogram": histogram_plot.histogram_figure,
    "iterations": iterations_plot.iterations_figure,
    "memory": memory_plot.memory_figure,
    "pace": pace_plot.pace_figure,
    "queues": queue_plot.queue_figure,
    "roofline": roofline_plot.roofline_figure,
    "timeline": timeline_plot.draw,
    "utilization": utilization_plot.utilization_figure,
}


def drawn(picture: PagePicture, limit: int) -> Markup | None:
    """The picture as SVG, empty where there is nothing to draw; None if it takes more bytes."""
    try:
        made = inline_svg(DRAW[picture.kind](picture.result), picture.id, picture.caption)
    except NsightpyError:
        return Markup()
    return made if len(made) <= limit else None
