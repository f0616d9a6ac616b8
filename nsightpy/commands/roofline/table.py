"""The rows of the roofline table: one per launch or kernel variant, precision and memory level."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TypeAlias

from nsightpy.results import Field, Row, fields_in, rows_of
from nsightpy.results.rooflines import Point, Roofline, RooflineLaunch, RooflineVariant

FIELDS = (
    Field("id", "id"),
    Field("kernel", "name", importance=1),
    Field("grid", "text", own=True),
    Field("block", "text", own=True),
    Field("device", "id"),
    Field("precision", "text", own=True, importance=7),
    Field("level", "text", own=True, importance=4),
    Field("flops_per_s", "flops/s", heading="performance"),
    Field("peak_flops_per_s", "flops/s"),
    Field("bytes_per_s", "bytes/s"),
    Field("peak_bytes_per_s", "bytes/s"),
    Field("arithmetic_intensity", "flops/byte"),
    Field("roof_flops_per_s", "flops/s"),
    Field("roof_fraction", "share", heading="of roof %", importance=3),
    Field("sol_compute_pct", "%", heading="compute %", importance=5),
    Field("sol_memory_pct", "%", heading="memory %", importance=6),
    Field("classification", "text", heading="class", importance=8),
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
# Which points of a launch have a row.
Points: TypeAlias = Callable[[RooflineLaunch], Sequence[Point]]
ALL_POINTS: Points = attrgetter("points")


def launch_rows(
    launches: Iterable[RooflineLaunch],
    name: str,
    origin: Iterable[Field] = (),
    points: Points = ALL_POINTS,
) -> Iterator[Row]:
    """Rows of FIELDS and these of ORIGIN, a point each; one without figures for no point."""
    for launch in launches:
        more = tuple(getattr(launch, field.name) for field in origin)
        yield from ((*_row(launch, point, name), *more) for point in points(launch) or (None,))


def variant_rows(
    variants: Iterable[RooflineVariant], name: str, points: Points = ALL_POINTS
) -> Iterator[Row]:
    """Rows of FIELDS and SPREAD: the launch of median duration, and how far the others are."""
    for variant in variants:
        extremes = (min(variant.times, default=None), max(variant.times, default=None))
        counted = (len(variant.launches), variant.total_ns, *extremes)
        for point in points(variant.typical) or (None,):
            spread = variant.spread(point.precision, point.level) if point else None
            yield (*_row(variant.typical, point, name), *counted, *(spread or (None, None)))


def for_people(answer: Roofline) -> Roofline:
    """The points with work; unless rows are split, the most telling one of a kernel and shape."""
    if answer.by == "launch":
        origin = answer.fields[len(FIELDS) :]
        rows = launch_rows(answer.launches, answer.naming, origin, _telling)
        return replace(answer, rows=tuple(rows), total_rows=None)
    most = None if answer.by else 1
    rows = variant_rows(answer.variants, answer.naming, lambda launch: _telling(launch)[:most])
    fields = (*FIELDS, *SPREAD)
    return replace(answer, fields=fields, rows=tuple(rows), total_rows=None)


def _telling(launch: RooflineLaunch) -> list[Point]:
    """Its points with work, the most telling first."""
    return sorted(launch.work, key=lambda point: point is not launch.judged)


def _row(launch: RooflineLaunch, point: Point | None, name: str) -> Row:
    """The columns of FIELDS."""
    figures: Row = (None,) * 9
    if point is not None:
        figures = rows_of(FIELDS[5:14], [point], level=lambda point: point.level or None)[0]
    return (
        *(launch.launch, launch.named(name), launch.grid or None, launch.block or None),
        *(launch.device, *figures, launch.speed.compute_pct, launch.speed.memory_pct),
        *(launch.speed.classification, launch.duration_ns),
    )
