"""The roofline itself: one log-log axes per GPU, roofs with their names, kernels as points."""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy.render.plots.drawing import Box
from nsightpy.render.plots.log_plane import Plane, Span, frame
from nsightpy.render.roofline.points import DrawnPoint, disc, draw_numbers, draw_points
from nsightpy.render.roofline.roofs import Roofs, draw_roofs
from nsightpy.results.rooflines import Ceiling

NAMES_SHARE = 0.17


def spans(
    spots: Sequence[DrawnPoint], roofs: Roofs, ceilings: Sequence[Ceiling]
) -> tuple[Span, Span]:
    """What the axes must show: every point, every ridge, and some air."""
    xs = [spot.x for spot in spots if spot.x > 0] + [at for _, _, at in roofs.ridges] + [0.1, 10.0]
    ys = [spot.point.flops_per_s for spot in spots] + list(roofs.work.values())
    ys += [ceiling.value for ceiling in ceilings if not ceiling.is_memory]
    ys = ys or [1e9, 1e12]
    low, high = min(ys), max(ys)
    left, right = min(xs) / 3, max(xs) * 3
    # space at the right for the names of the roofs, beside the points
    right = left * (right / left) ** (1 / (1 - NAMES_SHARE))
    return Span(left, right), Span(min(low / 4, high / 1e3), high * 3)


def draw(
    plane: Plane, roofs: Roofs, spots: Sequence[DrawnPoint], ceilings: Sequence[Ceiling]
) -> None:
    """Draw roofs, measured ceilings, ridges and points, and label what matters."""
    frame(plane, "arithmetic intensity (FLOP/byte)", "performance (FLOP/s)")
    plane.taken += [disc(plane, spot) for spot in spots]
    for _, precision, at in roofs.ridges:
        x, y = plane.place(at, roofs.work[precision])
        plane.taken.append(Box(x - 0.05, y - 0.05, 0.1, 0.1))
    draw_roofs(plane, roofs, ceilings)
    draw_points(plane, spots, sorted(roofs.used))
    draw_numbers(plane, spots)
