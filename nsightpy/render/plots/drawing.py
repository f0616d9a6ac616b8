"""What all pictures share: one style sheet, colours, headings, and a figure as bytes.

Nothing here or in the pictures uses pyplot: a Figure belongs to whoever asked for it. Texts,
legends and colour bars are placed by matplotlib's constrained layout.
"""

import io
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from nsightpy.errors import NsightpyError, UsageError
from nsightpy.names import file_name
from nsightpy.render.text.layout import short_name
from nsightpy.results import Table, Value

FORMATS = (".png", ".svg", ".pdf")
SMALL = 7.5
MOST_VECTORS = 300  # points beyond so many are one bitmap in svg and pdf
INK, QUIET, FAINT, PALE = "#1a1a1a", "#666666", "#c8c8c8", "#e4e4e4"
# Okabe and Ito's, which colour-blind readers tell apart, and two more.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8e7cc3", "#7a5c00")
SIDES = ((1, 1), (-1, -1), (-1, 1), (1, -1))  # of a point: right, up
LINES = ("-", "--", ":", "-.")
# What artists are given of how they look.
Look: TypeAlias = dict[str, Any]
MEDIAN: Look = {"color": INK, "linewidth": 0.9, "linestyle": "--"}
STYLE: dict[Any, Any] = {
    "text.parse_math": False,  # names are not formulas
    "text.color": INK,
    "font.sans-serif": ["DejaVu Sans"],
    "font.monospace": ["DejaVu Sans Mono"],
    "font.size": SMALL,
    "figure.titlesize": 10.5,
    "figure.titleweight": "bold",
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.06,
    "figure.constrained_layout.w_pad": 0.06,
    "axes.titlesize": SMALL,
    "axes.titlelocation": "left",
    "axes.edgecolor": QUIET,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "axes.formatter.limits": (-9, 9),
    "grid.color": FAINT,
    "grid.linewidth": 0.4,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
    "figure.dpi": 150,
    "svg.hashsalt": "nsightpy",
}
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": "nsightpy"},
    "svg": {"Date": None, "Creator": "nsightpy"},
    "pdf": {"CreationDate": None, "Creator": "nsightpy", "Producer": None},
}
_Arguments = ParamSpec("_Arguments")


class Kind(NamedTuple):
    """What time goes to: its name, and a colour and a hatch that tell it from others in print."""

    name: str
    color: str
    hatch: str = ""


def styled(draw: Callable[_Arguments, Figure]) -> Callable[_Arguments, Figure]:
    """A function that draws, under the style sheet."""

    @wraps(draw)
    def drawn(*args: _Arguments.args, **given: _Arguments.kwargs) -> Figure:
        with mpl.rc_context(STYLE):
            return draw(*args, **given)

    return drawn


def new_figure(heading: str, width: float, height: float, footer: str = "") -> Figure:
    """A figure of that size in inches under its heading; `footer` is what a reader must know."""
    figure = Figure(figsize=(width, height))
    figure.suptitle(heading, x=0.01, ha="left")
    if footer:
        figure.supxlabel(footer, x=0.01, ha="left", fontsize=SMALL, color=QUIET, weight="normal")
    return figure


def new_panels(
    heading: str, heights: Sequence[float], width: float = 9.0, footer: str = "", *, shared: bool
) -> tuple[Figure, list[Axes]]:
    """A figure of panels of these heights below each other; `shared`: on one axis of x."""
    height = sum(heights) + (0.3 if shared else 0.5) * len(heights) + 0.7
    figure = new_figure(heading, width, height, footer)
    grid = figure.subplots(len(heights), 1, squeeze=False, sharex=shared, height_ratios=heights)
    return figure, list(grid[:, 0])


def key_beside(axes: Axes, *, written: bool = False, **more: Any) -> None:
    """The legend of axes, to their right; `written`: in columns of text."""
    font = {"family": "monospace", "size": SMALL - 0.5} if written else None
    look: Look = {"loc": "upper left", "bbox_to_anchor": (1, 1), "alignment": "left", "prop": font}
    axes.legend(**look, title_fontproperties=font, **more)


def picture_bytes(figure: Figure, path: str | Path, **settings: Any) -> bytes:
    """The figure in the format of a file name; the same bytes every time. Raises UsageError."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise UsageError(f"pictures are {', '.join(FORMATS)}, not {Path(path).suffix or path!r}")
    out = io.BytesIO()
    with warnings.catch_warnings(), mpl.rc_context(STYLE | settings):
        warnings.simplefilter("ignore")  # glyphs that the font has not
        if engine := figure.get_layout_engine():
            engine.execute(figure)
        figure.set_layout_engine("none")
        for axes in figure.axes:  # the layout differs from run to run in the last digits
            left, bottom, width, height = np.round(axes.get_position().bounds, 4).tolist()
            axes.set_position((left, bottom, width, height))
        figure.savefig(out, format=kind, metadata=_METADATA[kind])
    return out.getvalue()


def log_ticks(axis: Axis, text: Callable[[float], str], *, subs: Sequence[float] = (1.0,)) -> None:
    """Ticks at powers of ten (times `subs`) of a logarithmic axis, as texts."""
    axis.set_major_locator(LogLocator(subs=subs, numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def draw_numbers(axes: Axes, numbers: Sequence[tuple[int, float, float, float]]) -> None:
    """A number beside each point (number, x, y, radius); those of neighbours on different sides."""
    look: Look = {"ha": "center", "va": "center", "weight": "bold", "zorder": 6}
    edge = [withStroke(linewidth=2.0, foreground="white")]
    ordered = sorted(numbers, key=lambda point: point[1:])
    for (number, x, y, radius), (right, up) in zip(ordered, cycle(SIDES), strict=False):
        beside = (right * (radius + 6), up * (radius + 4))
        axes.annotate(
            str(number), (x, y), beside, textcoords="offset points", path_effects=edge, **look
        )


def floats(table: Table, name: str) -> NDArray[np.float64]:
    """A column of numbers; NaN where a value is absent."""
    return np.asarray(table.column(name), dtype=np.float64)


def devices_of(table: Table) -> list[tuple[Value, Value]]:
    """The rank and the device of each row."""
    return list(zip(table.column("rank"), table.column("device"), strict=True))


def reports_name(inputs: Sequence[str], width: int = 60) -> str:
    """The first report's file name, in at most so many characters, and how many more there are."""
    name = file_name(inputs[0]) if inputs else ""
    more = f" and {len(inputs) - 1} more" if len(inputs) > 1 else ""
    return f"{short_name(name, width)}{more}"


def nothing_to_draw(table: Table, wanted: str) -> NsightpyError:
    """The error where a picture would be empty: of which reports, and what their notes say."""
    named = ", ".join(table.inputs[:3]) + ", ..." * (len(table.inputs) > 3)
    start = f"{named}: " if named else ""
    return NsightpyError("\n  ".join([f"{start}no {wanted} to draw", *map(str, table.notes)]))


def device_names(devices: Sequence[tuple[Value, Value]]) -> list[str]:
    """What devices (rank, device) are called in a picture: by rank where that distinguishes."""
    ranks = [rank for rank, _ in devices]
    if None not in ranks and len(set(ranks)) == len(ranks):
        return [f"rank {rank}" for rank in ranks]
    words = (((rank, f"rank {rank}"), (device, f"device {device}")) for rank, device in devices)
    parts = ([text for value, text in pair if value is not None] for pair in words)
    return [", ".join(part) or "host" for part in parts]
