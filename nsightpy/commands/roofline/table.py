"""The rows of the roofline table: one per launch or kernel variant, precision and memory level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nsightpy.results import Field, Row, fields_in, rows_of
from nsightpy.results.rooflines import Point, RooflineLaunch, RooflineVariant

FIELDS = (
    Field("id", "id"),
    Field("kernel", "name", importance=1),
    Field("grid", "text", own=True),
    Field("block", "text", own=True),
    Field("device", "id"),
    Field("precision", "text", own=True, importance=7),
    Field("level", "text", own=True, importance=8),
    Field("flops_per_s", "flops/s", heading="performance"),
    Field("peak_flops_per_s", "flops/s"),
    Field("bytes_per_s", "bytes/s"),
    Field("peak_bytes_per_s", "bytes/s"),
    Field("arithmetic_intensity", "flops/byte"),
    Field("roof_flops_per_s", "flops/s"),
    Field("roof_fraction", "share", heading="of roof %", importance=3),
    Field("sol_compute_pct", "%", heading="compute % of peak", importance=5),
    Field("sol_memory_pct", "%", heading="memory % of peak", importance=6),
    Field("classification", "text", importance=4),
    Field("duration_ns", "time", importance=2),
)
# Which report a row is from, added when there are several.
ORIGIN = (Field("rank", "id"), Field("report", "text"))
# Over how many launches a variant's row speaks, and how they spread.
SPREAD = (
    Field("launches"),
    *fields_in("time", "total_ns", "min_ns", "max_ns"),
    Field("min_flops_per_s", "flops/s"),
    Field("max_flops_per_s", "flops/s"),
)
_NO_POINT: Row = (None,) * 9


def launch_rows(launches: Iterable[RooflineLaunch], name: str, *, several: bool) -> Iterator[Row]:
    """Rows of FIELDS, with `several` reports also of ORIGIN; one without figures for no point."""
    for launch in launches:
        origin = (launch.rank, launch.report) if several else ()
        figures = [_figures(point) for point in launch.points] or [_NO_POINT]
        yield from ((*_head(launch, name), *each, *_tail(launch), *origin) for each in figures)


def variant_rows(variants: Iterable[RooflineVariant], name: str) -> Iterator[Row]:
    """Rows of FIELDS and SPREAD: the launch of median duration, and how far the others are."""
    for variant in variants:
        launch = variant.typical
        times = [each.duration_ns for each in variant.launches if each.duration_ns is not None]
        counted = (
            len(variant.launches),
            variant.total_ns,
            min(times, default=None),
            max(times, default=None),
        )
        for point in launch.points:
            low, high = variant.spread(point.precision, point.level) or (None, None)
            yield (*_head(launch, name), *_figures(point), *_tail(launch), *counted, low, high)
        if not launch.points:
            yield (*_head(launch, name), *_NO_POINT, *_tail(launch), *counted, None, None)


def _head(launch: RooflineLaunch, name: str) -> Row:
    shape = (launch.grid or None, launch.block or None)
    return (launch.launch, launch.named(name), *shape, launch.device)


def _figures(point: Point) -> Row:
    return rows_of(FIELDS[5:14], [point], level=lambda point: point.level or None)[0]


def _tail(launch: RooflineLaunch) -> Row:
    speed = launch.speed
    return (speed.compute_pct, speed.memory_pct, speed.classification, launch.duration_ns)
