"""Speed-of-light bars: compute and memory throughput of each kernel, with NVIDIA's thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsightpy.render.plots.drawing import INK, QUIET, SMALL, distinct_names
from nsightpy.results.rooflines import RooflineVariant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 20
ROW, MARGIN = 0.3, 1.05
# Below the first a launch waits for latencies, from the second on it is near a limit.
THRESHOLDS = ((60, "60 %: busy"), (80, "80 %: near the limit"))
_NAME_WIDTH = 30


def height(kernels: int) -> float:
    """Inches that the bars of so many kernels take."""
    return MARGIN + ROW * min(kernels, MOST_BARS)


def draw(axes: Axes, kernels: Sequence[tuple[int, RooflineVariant]]) -> None:
    """Draw two bars for each kernel, its number and name to the left, its class to the right."""
    shown = kernels[:MOST_BARS]
    values = [_pair(variant) for _, variant in shown]
    ends = max(100.0, *(value for pair in values for value in pair if value is not None))
    for row, (compute, memory) in enumerate(values):
        axes.barh(row - 0.18, compute or 0.0, 0.34, color="#4d4d4d", edgecolor=INK, linewidth=0.5)
        axes.barh(
            row + 0.18,
            memory or 0.0,
            0.34,
            color="white",
            edgecolor=INK,
            hatch="////",
            linewidth=0.5,
        )
    axes.set_xlim(0, ends)
    axes.set_ylim(len(shown) - 0.45, -0.55)
    axes.set_yticks(range(len(shown)))
    names = distinct_names([variant.first.name for _, variant in shown], _NAME_WIDTH)
    axes.set_yticklabels(
        [f"{name}  {number}" for name, (number, _) in zip(names, shown, strict=True)],
        fontsize=SMALL,
        color=INK,
    )
    axes.tick_params(axis="y", length=0)
    for at, label in THRESHOLDS:
        axes.axvline(at, color=QUIET, linewidth=0.9, linestyle=":")
        axes.text(at, -0.62, label, fontsize=SMALL, color=QUIET, ha="center", va="bottom")
    for row, (_, variant) in enumerate(shown):
        kind = variant.typical.speed.classification
        axes.annotate(
            kind or "",
            (1.0, row),
            xycoords=("axes fraction", "data"),
            xytext=(8, 0),
            textcoords="offset points",
            fontsize=SMALL,
            va="center",
            annotation_clip=False,
        )
    axes.set_xlabel(_caption(len(kernels) - len(shown)))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _pair(variant: RooflineVariant) -> tuple[float | None, float | None]:
    speed = variant.typical.speed
    return speed.compute_pct, speed.memory_pct


def _caption(more: int) -> str:
    text = "% of peak sustained throughput; dark: compute (SM), hatched: memory"
    return f"{text}; {more} more kernels not shown" if more else text
