"""Verbs whose answer is a picture: a matplotlib Figure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Unpack

from nsightpy.analysis.timeline.picture import picture
from nsightpy.rank_set import Paths
from nsightpy.render import budget_plot, memory_plot, timeline_plot
from nsightpy.verbs.breakdown import breakdown
from nsightpy.verbs.memory_usage import memory_usage
from nsightpy.verbs.request import Common
from nsightpy.verbs.timeline import timeline

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def timeline_figure(
    reports: Paths,
    *,
    iteration: int | None = None,
    width: float = timeline_plot.WIDTH,
    communication: Iterable[str] = (),
    **common: Unpack[Common],
) -> Figure:
    """The timeline of one or many reports as a figure; width in inches.

    One row group a device: NVTX ranges, compute, communication, copies, idle; beyond a few
    devices one stacked band each. from_time and to_time are on the first report's clock;
    `iteration` shows one, from 0.
    """
    tracks = timeline(
        reports,
        iteration=iteration,
        detail=False,
        calls=False,
        communication=communication,
        **common,
    )
    return timeline_plot.draw(picture(tracks, timeline_plot.columns_of(width)), width=width)


def breakdown_figure(
    reports: Paths, *, communication: Iterable[str] = (), **common: Unpack[Common]
) -> Figure:
    """The budget of every device as a bar, and beside it why it had no compute."""
    return budget_plot.breakdown_figure(breakdown(reports, communication=communication, **common))


def memory_figure(reports: Paths, **common: Unpack[Common]) -> Figure:
    """Allocated memory over time, a panel per kind of memory, the peak marked."""
    return memory_plot.memory_figure(memory_usage(reports, **common))
