"""The picture of `nsightpy headroom`: share of the step against fraction of the roof.

Lines of equal gain run up to the right: the higher a kernel stands above them, the more there is
to gain. Numbers name the kernels in a key.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from nsightpy.render.plots.drawing import (
    FAINT,
    INK,
    Look,
    draw_numbers,
    key_beside,
    log_ticks,
    new_figure,
    nothing_to_draw,
    styled,
)
from nsightpy.render.text.layout import distinct_names
from nsightpy.results import Record, Table, number

WIDTH, HEIGHT = 12.0, 6.2
MOST_NAMED = 22
NAME_WIDTH = 44
GAINS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
# What a class is drawn as, by a word of its name.
KINDS = {
    "memory": ("high memory throughput", "#0072b2", "o"),
    "compute": ("high compute throughput", "#d55e00", "s"),
    "high": ("high throughput", "#cc79a7", "P"),
    "": ("latency, small grid, balanced", "#009e73", "^"),
}
NO_CLASS = ("no class", "#666666", "D")


@styled
def headroom_figure(table: Table) -> Figure:
    """Draw a result of `nsightpy.headroom`. Raises NsightpyError where no kernel has a roof."""
    kernels = kernels_of(table)
    if not kernels:
        raise nothing_to_draw(table, "measured kernels with a roof")
    unit = getattr(table, "unit", "step")
    heading = f"Headroom: share of the {unit} against the nearest roof"
    footer = "a ceiling is what reaching the roof would save at most; grey lines: equal gain"
    figure = new_figure(heading, WIDTH, HEIGHT, footer)
    axes = figure.subplots()
    fractions, shares = ([number(k[n]) for k in kernels] for n in ("roof_fraction", "share"))
    low, high = min(shares), max(shares)
    axes.set(yscale="log", xlabel="achieved, of the nearest roof", ylabel=f"share of the {unit}")
    axes.set_ylim(max(low / 2, high / 3000), min(max(high * 2, low * 10), 1.3))
    axes.set_xlim(0, max([1.02, *(1.03 * fraction for fraction in fractions)]))
    log_ticks(axes.yaxis, lambda share: f"{100 * share:g} %", subs=(1.0, 2.0, 5.0))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    axes.axvline(1.0, color=INK, linewidth=1.0)
    axes.grid(visible=False)
    for gain in GAINS:  # share x (1 - fraction) = gain
        along = np.linspace(0, 0.9999, 400)
        axes.plot(along, gain / (1 - along), color=FAINT, linewidth=0.8, zorder=1, scaley=False)
    spots = list(zip(range(1, len(kernels) + 1), fractions, shares, strict=True))
    for kernel, (_, fraction, share) in zip(kernels, spots, strict=True):
        axes.plot([fraction], [share], ms=7, mew=1.1, zorder=3, **_kind(kernel)[1])
    draw_numbers(axes, [(*spot, 3.0) for spot in spots[:MOST_NAMED]])
    _key(axes, kernels)
    return figure


def kernels_of(table: Table) -> list[Record]:
    """The rows that have a roof, as they are ordered."""
    records = table.records()
    return [r for r in records if number(r["share"]) > 0 and r["roof_fraction"] is not None]


def _kind(kernel: Record) -> tuple[str, Look]:
    """What its class is called, and its looks."""
    limit = str(kernel["classification"] or "").lower()
    kinds = (kind for word, kind in KINDS.items() if word in limit)
    name, color, marker = next(kinds) if limit else NO_CLASS
    return name, {"linestyle": "", "marker": marker, "color": color}


def _key(axes: Axes, kernels: Sequence[Record]) -> None:
    """Number, ceiling, share, fraction and name of each kernel; what the markers mean."""
    named = kernels[:MOST_NAMED]
    names = distinct_names([str(kernel["name"]) for kernel in named], NAME_WIDTH)
    rows = []
    for index, (kernel, name) in enumerate(zip(named, names, strict=True), 1):
        figures = (number(kernel[n]) for n in ("ceiling_share", "share", "roof_fraction"))
        text = "{:>6.1f} % {:>5.1f} % {:>4.0f} %".format(*(100 * figure for figure in figures))
        rows.append(Line2D([], [], label=f"{index:>2} {text}  {name}", **_kind(kernel)[1]))
    classes = dict(map(_kind, kernels))
    rows += [Line2D([], [], label=name, **look) for name, look in classes.items()]
    heading = f"{'':5} {'ceiling':>8} {'share':>7} {'roof':>6}  kernel"
    key_beside(axes, written=True, handles=rows, title=heading)
