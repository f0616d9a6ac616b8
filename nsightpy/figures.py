"""Verbs whose answer is a picture: a matplotlib Figure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

from nsightpy.analysis.timeline.picture import picture
from nsightpy.commands.breakdown import breakdown
from nsightpy.commands.headroom.command import headroom
from nsightpy.commands.iterations import iterations
from nsightpy.commands.launch_queues import launch_queues
from nsightpy.commands.memory_usage.command import memory_usage
from nsightpy.commands.roofline.command import roofline
from nsightpy.commands.timeline import timeline
from nsightpy.ncu_set import NcuPaths
from nsightpy.query.request import Common
from nsightpy.rank_set import Paths
from nsightpy.render.plots import (
    budget_plot,
    headroom_plot,
    iterations_plot,
    memory_plot,
    queue_plot,
)
from nsightpy.render.roofline import plot as roofline_plot
from nsightpy.render.timeline import plot as timeline_plot

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


def queue_figure(reports: Paths, **common: Unpack[Common]) -> Figure:
    """How many operations waited on the busiest streams over time, a panel per device."""
    return queue_plot.queue_figure(launch_queues(reports, **common))


def iterations_figure(
    reports: Paths, *, communication: Iterable[str] = (), **common: Unpack[Common]
) -> Figure:
    """Iterations as stacked bars, a panel per device: compute, communication, copies, idle."""
    table = iterations(reports, communication=communication, **common)
    return iterations_plot.iterations_figure(table)


def roofline_figure(reports: NcuPaths, *, title: str | None = None, **options: Any) -> Figure:
    """The roofline and the speed-of-light bars; options are those of `nsightpy.roofline`."""
    return roofline_plot.roofline_figure(roofline(reports, **options), title=title)


def headroom_figure(
    reports: Paths, *, ncu: NcuPaths, title: str | None = None, **options: Any
) -> Figure:
    """Kernels by share of the step against their roof; options are those of `nsightpy.headroom`."""
    return headroom_plot.headroom_figure(headroom(reports, ncu=ncu, **options), title=title)
