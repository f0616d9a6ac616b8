"""The roofs: memory slopes and compute levels with their names, measured ceilings, ridge points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from nsightpy.render.plots.drawing import FAINT, INK, QUIET, SMALL, Box, free_place, text_box
from nsightpy.render.plots.log_plane import Plane
from nsightpy.results.rooflines import LEVELS, Ceiling, RooflineVariant
from nsightpy.units import format_rate

WIDTHS = {"dram": 1.8, "l2": 1.2, "l1": 0.8}


@dataclass(frozen=True)
class Roofs:
    """Peaks of one GPU: FLOP/s by precision, bytes/s by level; those with work are `used`."""

    work: dict[str, float]
    traffic: dict[str, float]
    used: frozenset[str]

    @property
    def ridges(self) -> list[tuple[str, str, float]]:
        """Level, precision and intensity of the ridge points of what was used."""
        return [
            (level, precision, peak / width)
            for level, width in self.traffic.items()
            for precision, peak in self.work.items()
            if precision in self.used
        ]


def roofs_of(variants: Iterable[RooflineVariant]) -> Roofs:
    """The median peaks of one GPU's launches."""
    work: dict[str, list[float]] = {}
    traffic: dict[str, list[float]] = {}
    used = set()
    for variant in variants:
        for launch in variant.launches:
            for point in launch.points:
                if point.peak_flops_per_s:
                    work.setdefault(point.precision, []).append(point.peak_flops_per_s)
                if point.peak_bytes_per_s:
                    traffic.setdefault(point.level, []).append(point.peak_bytes_per_s)
                if point.flops_per_s > 0:
                    used.add(point.precision)
    return Roofs(
        {name: median(values) for name, values in work.items()},
        {name: median(traffic[name]) for name in LEVELS if name in traffic},
        frozenset(used),
    )


def draw_roofs(plane: Plane, roofs: Roofs, ceilings: Sequence[Ceiling]) -> None:
    """Draw theoretical roofs (dashed beside measured ones), ceilings and ridge points."""
    style = "--" if ceilings else "-"
    _memory_roofs(plane, roofs.traffic, max(roofs.work.values(), default=plane.y.high), style)
    _compute_roofs(plane, roofs, style)
    _measured(plane, ceilings)
    _ridges(plane, roofs)


def _memory_roofs(
    plane: Plane, traffic: dict[str, float], top: float, style: str, *, prefix: str = ""
) -> None:
    for order, (level, width) in enumerate(traffic.items()):
        low = max(plane.x.low, plane.y.low / width)
        high = min(plane.x.high, top / width)
        if low >= high:
            continue
        colour = INK if level == "dram" or prefix else QUIET
        plane.axes.plot(
            [low, high],
            [low * width, high * width],
            style,
            color=colour,
            linewidth=WIDTHS[level],
            zorder=2,
        )
        label = f"{prefix}{level.upper()} {format_rate(width, 'B/s')}"
        plane.label_slope(label, width, (low, high), 0.16 + 0.3 * order)


def _compute_roofs(plane: Plane, roofs: Roofs, style: str) -> None:
    """Each peak from the ridge of the fastest memory to the right; equal ones share a line."""
    fastest = max(roofs.traffic.values(), default=0.0)
    for peak, names in _merged(roofs.work):
        colour = INK if set(names) & roofs.used else FAINT
        start = max(peak / fastest, plane.x.low) if fastest else plane.x.low
        plane.axes.plot(
            [min(start, plane.x.high), plane.x.high],
            [peak, peak],
            style,
            color=colour,
            linewidth=1.4,
            zorder=2,
        )
        _label_level(plane, f"{', '.join(names)} {format_rate(peak, 'FLOP/s')}", start, peak)


def _merged(work: dict[str, float]) -> list[tuple[float, list[str]]]:
    """Precisions whose peaks cannot be distinguished, together; the highest first."""
    groups: list[tuple[float, list[str]]] = []
    for name, peak in sorted(work.items(), key=lambda item: (-item[1], item[0])):
        if groups and groups[-1][0] / peak < 1.01:
            groups[-1][1].append(name)
        else:
            groups.append((peak, [name]))
    return groups


def _label_level(
    plane: Plane, label: str, start: float, peak: float, *, needed: bool = True
) -> None:
    """A label above or below a horizontal line, as far right as there is space.

    One that is not needed, because the key has it, too, is left out where there is none.
    """
    width, height = text_box(label, SMALL)
    left, y = plane.place(start, peak)
    right = plane.size[0] - width / 2 - 0.05
    steps = [right - step * 0.3 for step in range(20) if right - step * 0.3 - width / 2 > left]
    wanted = [(x, y + side * 0.085) for x in steps for side in (1, -1)]
    free = free_place(wanted, (width, height), plane.taken, plane.size)
    if free is None and not needed:
        return
    box = free[1] if free else Box(right - width / 2, y, width, height)
    plane.taken.append(box)
    at = plane.value(box.left + box.width / 2, box.bottom + box.height / 2)
    plane.axes.text(*at, label, fontsize=SMALL, ha="center", va="center", zorder=3)


def _measured(plane: Plane, ceilings: Sequence[Ceiling]) -> None:
    """Measured ceilings, solid."""
    work = [ceiling for ceiling in ceilings if not ceiling.is_memory]
    top = max((ceiling.value for ceiling in work), default=plane.y.high)
    traffic = {ceiling.name: ceiling.value for ceiling in ceilings if ceiling.is_memory}
    _memory_roofs(plane, traffic, top, "-", prefix="measured ")
    for ceiling in work:
        fastest = max(traffic.values(), default=0.0)
        start = max(ceiling.value / fastest, plane.x.low) if fastest else plane.x.low
        ends = [min(start, plane.x.high), plane.x.high]
        plane.axes.plot(ends, [ceiling.value] * 2, "-", color=INK, linewidth=1.8, zorder=2)
        label = f"measured {ceiling.name} {format_rate(ceiling.value, 'FLOP/s')}"
        _label_level(plane, label, start, ceiling.value, needed=False)


def _ridges(plane: Plane, roofs: Roofs) -> None:
    """Open diamonds where memory stops being the limit; of the first level the intensity, too."""
    first = next(iter(roofs.traffic), "")
    for level, precision, at in roofs.ridges:
        peak = roofs.work[precision]
        plane.axes.plot(
            [at], [peak], "d", markersize=5, markerfacecolor="white", markeredgecolor=INK, zorder=3
        )
        if level != first:
            continue
        plane.axes.plot([at, at], [plane.y.low, peak], ":", color=FAINT, linewidth=0.9, zorder=1)
        label = f"ridge {at:.3g}"
        width, height = text_box(label, SMALL)
        x, _ = plane.place(at, plane.y.low)
        wanted = [(x + width / 2 + 0.04, 0.1 + step * 0.15) for step in range(8)]
        free = free_place(wanted, (width, height), plane.taken, plane.size)
        if free:
            plane.taken.append(free[1])
            value = plane.value(free[1].left, free[1].bottom + height / 2)
            white = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
            plane.axes.text(*value, label, fontsize=SMALL, color=QUIET, va="center", bbox=white)
