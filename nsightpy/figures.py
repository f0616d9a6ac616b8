"""Commands whose answer is a picture: a matplotlib Figure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack

from nsightpy.analysis.timeline.picture import picture
from nsightpy.commands.breakdown import breakdown
from nsightpy.commands.collectives.command import collectives
from nsightpy.commands.compare.command import compare
from nsightpy.commands.compare.runs import Runs
from nsightpy.commands.headroom.command import headroom
from nsightpy.commands.histogram import histogram
from nsightpy.commands.iterations import iterations
from nsightpy.commands.launch_queues import launch_queues
from nsightpy.commands.memory_usage.command import memory_usage
from nsightpy.commands.pace import pace
from nsightpy.commands.roofline.command import roofline
from nsightpy.commands.timeline import timeline
from nsightpy.commands.utilization import utilization
from nsightpy.query.request import Common
from nsightpy.query.signature import command_function, described, described_by
from nsightpy.render.comparison import plot as comparison_plot
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
from nsightpy.report_sets.one_file_sets import NcuPaths
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.results.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

P = ParamSpec("P")
T = TypeVar("T")


def _figure_of(command: Callable[P, T], draw: Callable[[T], Figure]) -> Callable[P, Figure]:
    """What draws the result of a command; its parameters are the command's."""

    def figure(*args: P.args, **kwargs: P.kwargs) -> Figure:
        return draw(command(*args, **kwargs))

    figure.__name__ = figure.__qualname__ = draw.__name__
    figure.__doc__ = draw.__doc__
    return described(figure, inspect.signature(command).replace(return_annotation="Figure"))


collectives_figure = _figure_of(collectives, collectives_plot.collectives_figure)
histogram_figure = _figure_of(histogram, histogram_plot.histogram_figure)
iterations_figure = _figure_of(iterations, iterations_plot.iterations_figure)
memory_figure = _figure_of(memory_usage, memory_plot.memory_figure)
queue_figure = _figure_of(launch_queues, queue_plot.queue_figure)
pace_figure = _figure_of(pace, pace_plot.pace_figure)
utilization_figure = _figure_of(utilization, utilization_plot.utilization_figure)


@described_by(breakdown)
def breakdown_figure(reports: Paths, **options: Any) -> Figure:
    """Each device's time as bars, and, where there are iterations, that of each iteration.

    Options are those of `nsightpy.breakdown`.
    """
    budgets = breakdown(reports, **options)
    return budget_plot.breakdown_figure(budgets, iterations(reports, **options))


@command_function
def timeline_figure(
    reports: Paths,
    *,
    width: float = timeline_plot.WIDTH,
    communication: Iterable[str] = (),
    **common: Unpack[Common],
) -> Figure:
    """The timeline of one or many reports as a figure; `width` in inches.

    One row group a device: NVTX ranges, compute, communication, copies, idle; beyond a few
    devices one stacked band each. from_time and to_time are on the first report's clock;
    `iteration` chooses the time.
    """
    tracks = timeline(
        reports,
        detail=False,
        calls=False,
        communication=communication,
        **common,
    )
    return timeline_plot.draw(picture(tracks, timeline_plot.columns_of(width)), width=width)


@described_by(roofline)
def roofline_figure(reports: NcuPaths, *, title: str | None = None, **options: Any) -> Figure:
    """The roofline and the speed-of-light bars; options are those of `nsightpy.roofline`.

    `title` replaces the names of the reports.
    """
    return roofline_plot.roofline_figure(roofline(reports, **options), title=title)


@described_by(headroom)
def headroom_figure(
    reports: Paths, *, ncu: NcuPaths, title: str | None = None, **options: Any
) -> Figure:
    """Kernels by share of the step against their roof; options are those of `nsightpy.headroom`."""
    return headroom_plot.headroom_figure(headroom(reports, ncu=ncu, **options), title=title)


@described_by(compare)
def comparison_figure(
    before: Runs | Comparison,
    after: Runs | None = None,
    *,
    title: str | None = None,
    **options: Any,
) -> Figure:
    """A waterfall from before to after, and the runs as points; options are those of `compare`.

    What `compare` returned is drawn as it is, in place of runs. `title` replaces the answer.
    """
    made = before if isinstance(before, Comparison) else compare(before, after, **options)
    return comparison_plot.comparison_figure(made, title=title)
