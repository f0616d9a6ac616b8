"""The roofline for people: the machine, the table in readable units, a verdict for each kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from nsightpy.names import file_name
from nsightpy.output.escape import printable
from nsightpy.render.text.layout import WIDEST_NOTE, Shown, fitted, hidden_line, lines, wrapped
from nsightpy.render.text.shortening import distinct_names, shorten
from nsightpy.results.rooflines import (
    Point,
    Roofline,
    RooflineLaunch,
    RooflineVariant,
    tool_versions,
)
from nsightpy.units import counted, format_time, percent, prefix_for, significant

if TYPE_CHECKING:
    from rich.console import Console

MOST_RULES, MOST_STALLS = 4, 3
_LEAST_PCT, _ALL_PCT = 1.0, 99.5
MOST_VERDICTS = 10
WIDEST_TEXT = 100
# The most telling first: a narrow terminal leaves out from the end.
_SUMMARY = (
    *("name", "duration", "of roof", "roof", "compute", "memory", "launches", "class", "work"),
    *("intensity", "grid", "block"),
)
_DETAILS = (
    *("origin", "id", "name", "launches", "precision", "level", "work", "of roof", "compute"),
    *("memory", "class", "duration", "intensity", "peak work", "traffic", "peak traffic"),
    *("grid", "block"),
)
_NAME_WIDTH, _LEAST_NAME_WIDTH, _TABLE_NAME_WIDTH, _FILE_WIDTH = 60, 28, 100, 30


def print_roofline(result: Roofline, out: Console, rows: int | None = None) -> None:
    """Print machines, table and verdicts in the console's width; at most so many launches."""
    from rich.text import Text

    for machine in _machines(result):
        for text in wrapped(machine, out.width, rest="  "):
            out.print(Text(text, style="bold"))
    of_launches = result.by == "launch"
    whole = result.launches if of_launches else [each.typical for each in result.variants]
    columns = _columns(result, whole[:rows])
    shown = [column for column in columns if set(column.cells) != {"-"}]
    kept, hidden = fitted(shown, out.width)
    for line in lines(kept, out.width):
        out.print(line)
    every = len(result.all_launches) if of_launches else result.all_variants
    if (left := every - len(whole[:rows])) > 0:
        words = ("more launch", "more launches") if of_launches else ("more kernel",)
        more = counted(left, *words)
        out.print(Text(f"and {more}: --top 0 shows them", style="dim"))
    if hidden:
        out.print(Text(hidden_line(hidden, min(out.width, WIDEST_NOTE)), style="dim"))
    if result.by and _zero_rows(result):
        out.print(Text("(work of zero is in --format csv only)", style="dim"))
    width = min(out.width, WIDEST_TEXT)
    variants = result.variants[:MOST_VERDICTS]
    if not any(variant.typical.figures for variant in variants):
        return
    total_ns = sum(launch.duration_ns or 0 for launch in result.all_launches)
    facts = [_facts(variant, total_ns) for variant in variants]
    space = max(width - max(map(len, facts)) - 2, _LEAST_NAME_WIDTH)
    names = distinct_names([variant.first.name for variant in variants], min(_NAME_WIDTH, space))
    for variant, name, fact in zip(variants, names, facts, strict=True):
        out.print()
        out.print(Text(f"{name}  {fact}".rstrip(), style="bold"))
        for paragraph in (printable(variant.verdict), *kernel_lines(variant.typical)):
            for text in wrapped(paragraph, width - 2):
                out.print(f"  {text}")
    if len(result.variants) > MOST_VERDICTS:
        out.print(Text(f"\nand {len(result.variants) - MOST_VERDICTS} more kernels", style="dim"))


def _machines(result: Roofline) -> Iterator[str]:
    """Each GPU with its clocks and how many launches ran on it."""
    counts: dict[str, list[RooflineLaunch]] = {}
    for launch in result.all_launches:
        counts.setdefault(launch.machine.name, []).append(launch)
    for name, launches in counts.items():
        clocks = [launch.machine.clock_hz for launch in launches if launch.machine.clock_hz]
        parts = [printable(name)]
        if clocks:
            low, high = round(min(clocks) / 1e6), round(max(clocks) / 1e6)
            shown = str(low) if low == high else f"{low} to {high}"
            parts.append(f"SM clock {shown} MHz ({launches[0].machine.clock})")
        if versions := tool_versions(launches):
            parts.append(f"ncu {', '.join(map(printable, versions))}")
        parts.append(f"{counted(len(launches), 'launch', 'launches')}")
        yield ", ".join(parts)


def _columns(result: Roofline, shown: Sequence[RooflineLaunch]) -> list[Shown]:
    """The table's columns in one unit each; what is about the launch stands on its first row."""
    grouped = result.by != "launch"
    rows = [
        (launch, point, index == 0)
        for launch in shown
        for index, point in enumerate(_points(launch) if result.by else _points(launch)[:1])
    ]
    points = [point for _, point, _ in rows]
    heads = [launch for launch, _, first in rows if first]
    speed = [head.speed for head in heads]
    names = distinct_names([head.named(result.naming) for head in heads], _TABLE_NAME_WIDTH)
    roofs = [f"{p.precision} {p.level}".strip() if p and p.flops_per_s else "-" for p in points]

    def of_launch(heading: str, texts: Sequence[str], is_text: bool = False) -> Shown:
        left = iter(texts)
        return Shown(heading, tuple(next(left) if first else "" for *_, first in rows), is_text)

    def of_point(heading: str, figure: Callable[[Point], float | None]) -> Shown:
        return Shown(heading, tuple(map(_digits, _each(points, figure))), False)

    columns = {
        "id": of_launch("id", [str(head.launch) for head in heads]),
        "name": of_launch("name", names, is_text=True),
        "precision": Shown("precision", tuple(p.precision if p else "-" for p in points), True),
        "level": Shown("level", tuple((p.level or "-") if p else "-" for p in points), True),
        "roof": Shown("roof", tuple(roofs), True),
        "of roof": of_point("of roof %", lambda p: _percent(p.roof_fraction)),
        "compute": of_launch("compute %", [_one(each.compute_pct) for each in speed]),
        "memory": of_launch("memory %", [_one(each.memory_pct) for each in speed]),
        "class": of_launch("class", [each.classification or "-" for each in speed], is_text=True),
        "duration": of_launch("duration", [format_time(head.duration_ns) for head in heads]),
        "intensity": of_point("FLOP/B", lambda p: p.arithmetic_intensity),
        "work": _rates("work", "FLOP/s", _each(points, lambda p: p.flops_per_s)),
        "peak work": _rates("peak", "FLOP/s", _each(points, lambda p: p.peak_flops_per_s)),
        "traffic": _rates("traffic", "B/s", _each(points, lambda p: p.bytes_per_s)),
        "peak traffic": _rates("peak", "B/s", _each(points, lambda p: p.peak_bytes_per_s)),
        "grid": of_launch("grid", [head.grid or "-" for head in heads], is_text=True),
        "block": of_launch("block", [head.block or "-" for head in heads], is_text=True),
    }
    if len(result.inputs) > 1 and not grouped:
        columns["origin"] = _origin(heads, of_launch)
    if grouped and (result.by or len(result.launches) > len(result.variants)):
        counts = [str(len(variant.launches)) for variant in result.variants]
        columns["launches"] = of_launch("launches", counts)
    return [columns[name] for name in (_DETAILS if result.by else _SUMMARY) if name in columns]


def _origin(heads: Sequence[RooflineLaunch], of_launch: Callable[..., Shown]) -> Shown:
    """The rank of each launch; where one is not known, the name of its report."""
    if all(head.rank is not None for head in heads):
        return of_launch("rank", [str(head.rank) for head in heads])
    files = [printable(file_name(head.report)) for head in heads]
    return of_launch("report", [shorten(name, _FILE_WIDTH) for name in files], is_text=True)


def _points(launch: RooflineLaunch) -> list[Point | None]:
    """Its points with work, the most telling first, else its traffic, else none."""
    points = sorted(launch.work, key=lambda point: point is not launch.judged)
    if not points:
        points = [p for p in launch.points if p.precision == "fp32"] or [*launch.points[:1]]
    return [*points] or [None]


def _zero_rows(result: Roofline) -> bool:
    return any(len(launch.work) < len(launch.points) for launch in result.launches)


def _facts(variant: RooflineVariant, whole_ns: float) -> str:
    """A kernel's shape, how often it ran and its share of the time of all launches."""
    launch = variant.first
    share = percent(variant.total_ns, whole_ns)
    shape = f"{launch.grid} x {launch.block}" if launch.grid and launch.block else ""
    count = len(variant.launches)
    parts = [
        shape,
        f"{count} launches" if count > 1 else "",
        f"{share:.0f} % of the time" if share is not None else "",
    ]
    return ", ".join(filter(None, parts))


def _each(
    points: Sequence[Point | None], figure: Callable[[Point], float | None]
) -> list[float | None]:
    return [None if point is None else figure(point) for point in points]


def _rates(what: str, unit: str, values: Sequence[float | None]) -> Shown:
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    prefix, size = prefix_for(largest)
    cells = tuple(_digits(None if value is None else value / size) for value in values)
    return Shown(f"{what} {prefix}{unit}", cells, False)


def _digits(value: float | None) -> str:
    return "-" if value is None else significant(value)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _one(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def kernel_lines(launch: RooflineLaunch) -> list[str]:
    """Sentences for people, each only where its figures were measured."""
    return [line for line in (_rules(launch), _stalls(launch), _occupancy(launch)) if line]


def _rules(launch: RooflineLaunch) -> str:
    """ncu's estimates of the whole kernel beyond what its nearest roof leaves; each of its own."""
    roof = launch.nearest_roof
    left = _LEAST_PCT if roof is None else max(100 * roof.distance, _LEAST_PCT)
    texts = [
        f"{printable(rule.title)} {rule.speedup_pct:.0f} %"
        for rule in launch.rules
        if rule.speedup_pct > left and rule.scope != "local"
    ]
    than = "" if roof is None else f" more than the {left:.0f} % that its nearest roof leaves"
    return f"ncu's rules estimate{than}: {', '.join(texts[:MOST_RULES])}." if texts else ""


def _stalls(launch: RooflineLaunch) -> str:
    speed = launch.speed
    if not speed.stalls or not speed.latency_cycles:
        return ""
    texts = [
        f"{printable(reason)} {100 * cycles / speed.latency_cycles:.0f} %"
        for reason, cycles in speed.stalls[:MOST_STALLS]
    ]
    cycles = significant(speed.latency_cycles)
    return f"Of {cycles} cycles between two instructions a warp waits: {', '.join(texts)}."


def _occupancy(launch: RooflineLaunch) -> str:
    speed = launch.speed
    if speed.theoretical_occupancy_pct is None:
        return ""
    text = f"{speed.theoretical_occupancy_pct:.0f} % possible"
    if speed.achieved_occupancy_pct is not None:
        text = f"{speed.achieved_occupancy_pct:.0f} % of {text}"
    limited = speed.limiters and speed.theoretical_occupancy_pct < _ALL_PCT
    by = f", limited by {' and '.join(speed.limiters)}" if limited else ""
    return f"Occupancy: {text}{by}."
