"""What all pictures share: sizes in inches, markers that survive a black-and-white print, saving.

Nothing here or in the pictures uses pyplot: a Figure belongs to whoever asked for it.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nsightpy.errors import UsageError
from nsightpy.names import file_name, readable, readable_apart
from nsightpy.output.escape import printable
from nsightpy.render.text.shortening import short_names, shorten
from nsightpy.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
DPI = 150
SMALL, NORMAL, LARGE = 7.5, 8.5, 11.0
INK, QUIET, FAINT = "#1a1a1a", "#666666", "#c8c8c8"
LINE = 0.165
_SETTINGS: dict[Any, Any] = {
    "text.parse_math": False,  # names are not formulas
    "font.size": NORMAL,
    "hatch.linewidth": 0.6,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "text.color": INK,
}
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": "nsightpy"},
    "svg": {"Date": None, "Creator": "nsightpy"},
    "pdf": {"CreationDate": None, "Creator": "nsightpy", "Producer": None},
}


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in inches from the lower left corner of an axes."""

    left: float
    bottom: float
    width: float
    height: float

    def overlaps(self, other: Box) -> bool:
        return (
            self.left < other.left + other.width
            and other.left < self.left + self.width
            and self.bottom < other.bottom + other.height
            and other.bottom < self.bottom + self.height
        )


@contextmanager
def drawing() -> Iterator[None]:
    """The settings under which every artist of a picture is made."""
    import matplotlib as mpl

    with mpl.rc_context(_SETTINGS):
        yield


def picture_bytes(figure: Figure, path: str | Path) -> bytes:
    """The figure in the format of a file name; the same bytes every time. Raises UsageError."""
    import matplotlib as mpl

    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise UsageError(f"pictures are {', '.join(FORMATS)}, not {Path(path).suffix or path!r}")
    out = io.BytesIO()
    with warnings.catch_warnings(), mpl.rc_context({"svg.hashsalt": "nsightpy"}):
        warnings.simplefilter("ignore")  # glyphs that the font has not
        figure.savefig(out, format=kind, dpi=DPI, metadata=_METADATA[kind])
    return out.getvalue()


def headed_figure(
    width: float, height: float, left: float, heading: str, below: float = 0.24
) -> Figure:
    """A figure of that size in inches, its heading `below` inches under the upper edge."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    figure.text(left / width, 1 - below / height, heading, fontsize=LARGE, weight="bold")
    return figure


def plain_axes(axes: Axes, grid: Literal["x", "y", "both"] = "y") -> None:
    """Small ticks, a faint grid behind what is drawn, and no frame but the axes themselves."""
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right", *(["left"] if grid == "x" else [])]].set_visible(False)
    axes.grid(axis=grid, color=FAINT, linewidth=0.4)
    axes.set_axisbelow(True)


def inch_axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """An axes placed in inches from the figure's lower left corner."""
    whole_width, whole_height = figure.get_size_inches()
    return figure.add_axes(
        (
            left / whole_width,
            bottom / whole_height,
            width / whole_width,
            height / whole_height,
        )
    )


def blank_axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """An axes for text: its units are inches, y runs downwards, nothing else is drawn."""
    axes = inch_axes(figure, left, bottom, width, height)
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    return axes


def short_name(name: str, width: int) -> str:
    """A kernel's name as people read it in a picture, in at most that many characters."""
    return shorten(printable(readable(name, width)), width)


def reports_name(inputs: Sequence[str], width: int) -> str:
    """The first report's file name, in at most so many characters, and how many more there are."""
    name = file_name(inputs[0]) if inputs else ""
    more = f" and {len(inputs) - 1} more" if len(inputs) > 1 else ""
    return f"{short_name(name, width)}{more}"


def nothing_to_draw(table: Table, what: str) -> str:
    """The message where a picture would be empty: of which reports, and what their notes say."""
    named = ", ".join(table.inputs[:3]) + (", ..." if len(table.inputs) > 3 else "")
    start = f"{named}: " if named else ""
    return "\n  ".join([f"{start}no {what} to draw", *map(str, table.notes)])


def distinct_names(names: Sequence[str], width: int) -> list[str]:
    """Kernel names for one picture: those that would look alike show where they differ."""
    return short_names([printable(name) for name in readable_apart(names, width)], width)


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Powers of ten between two values, at most that many."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / most))
    return [10.0**power for power in range(first, last + 1, step)]


def text_box(text: str, size: float) -> tuple[float, float]:
    """Width and height in inches that a text takes, generously."""
    return 0.62 * size / 72 * max(len(text), 1), 1.25 * size / 72


def free_place(
    wanted: Sequence[tuple[float, float]],
    size: tuple[float, float],
    taken: Sequence[Box],
    inside: tuple[float, float],
) -> tuple[int, Box] | None:
    """The first of the wanted centres where a box of that size touches nothing, and lies inside."""
    width, height = size
    for place, (x, y) in enumerate(wanted):
        box = Box(x - width / 2, y - height / 2, width, height)
        if box.left < 0 or box.bottom < 0:
            continue
        if box.left + width > inside[0] or box.bottom + height > inside[1]:
            continue
        if not any(box.overlaps(other) for other in taken):
            return place, box
    return None
