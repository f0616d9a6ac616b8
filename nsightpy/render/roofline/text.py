"""The roofline for people: the machines, the table, a verdict for each kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nsightpy.output.escape import printable
from nsightpy.render.text.layout import distinct_names, styled, wrapped
from nsightpy.render.text.terminal import print_table
from nsightpy.results.rooflines import Roofline, RooflineLaunch, RooflineVariant
from nsightpy.units import counted, percent, significant

if TYPE_CHECKING:
    from rich.console import Console

MOST_RULES, MOST_STALLS = 4, 3
_LEAST_PCT, _ALL_PCT = 1.0, 99.5
MOST_VERDICTS = 10
WIDEST_TEXT = 100
_NAME_WIDTH = 40


def print_roofline(result: Roofline, out: Console, rows: int | None = None) -> None:
    """Print machines, table and verdicts in the console's width."""
    for machine in machine_lines(result.all_launches):
        for text in wrapped(machine, out.width, rest="  "):
            out.print(styled(text, "bold"))
    print_table(result, out, rows)
    if left := len(result.all_launches) - len(result.launches):
        more = counted(left, "more launch", "more launches")
        out.print(f"and {more}: --top 0 shows them", style="dim")
    width = min(out.width, WIDEST_TEXT)
    variants = result.variants[:MOST_VERDICTS]
    if not any(variant.typical.figures for variant in variants):
        return
    total_ns = sum(launch.duration_ns or 0 for launch in result.all_launches)
    facts = [_facts(variant, total_ns) for variant in variants]
    names = distinct_names([variant.first.name for variant in variants], _NAME_WIDTH)
    for variant, name, fact in zip(variants, names, facts, strict=True):
        out.print()
        out.print(styled(f"{name}  {fact}".rstrip(), "bold"))
        for line in (variant.verdict or "", *_about(variant.typical)):
            for text in wrapped(printable(line), width - 2):
                out.print(f"  {text}")
    if len(result.variants) > MOST_VERDICTS:
        out.print(f"\nand {len(result.variants) - MOST_VERDICTS} more kernels", style="dim")


def machine_lines(launches: Sequence[RooflineLaunch]) -> Iterator[str]:
    """Each GPU with its clocks, the ncu that profiled it, and how many launches ran on it."""
    gpus: dict[str, list[RooflineLaunch]] = {}
    for launch in launches:
        gpus.setdefault(launch.machine.name, []).append(launch)
    for name, every in gpus.items():
        clocks = [round(each.machine.clock_hz / 1e6) for each in every if each.machine.clock_hz]
        low, high = min(clocks, default=0), max(clocks, default=0)
        shown = str(low) if low == high else f"{low} to {high}"
        ncu = ", ".join(dict.fromkeys(each.tool_version for each in every if each.tool_version))
        parts = (
            name,
            f"SM clock {shown} MHz ({every[0].machine.clock})" if clocks else "",
            f"ncu {ncu}" if ncu else "",
            counted(len(every), "launch", "launches"),
        )
        yield printable(", ".join(filter(None, parts)))


def _facts(variant: RooflineVariant, whole_ns: float) -> str:
    """A kernel's shape, how often it ran and its share of the time of all launches."""
    launch, count = variant.first, len(variant.launches)
    share = percent(variant.total_ns, whole_ns)
    parts = [
        f"{launch.grid} x {launch.block}" if launch.grid and launch.block else "",
        f"{count} launches" if count > 1 else "",
        f"{share:.0f} % of the time" if share is not None else "",
    ]
    return ", ".join(filter(None, parts))


def _about(launch: RooflineLaunch) -> Iterator[str]:
    """What ncu's rules estimate, why warps wait, and how many there are, where it is known."""
    roof, speed = launch.nearest_roof, launch.speed
    left = _LEAST_PCT if roof is None else max(100 * roof.distance, _LEAST_PCT)
    rules = [
        f"{rule.title} {rule.speedup_pct:.0f} %"
        for rule in launch.rules
        if rule.speedup_pct > left and rule.scope != "local"
    ]
    if rules:
        more = f" more than the {left:.0f} % that its nearest roof leaves" if roof else ""
        yield f"ncu's rules estimate{more}: {', '.join(rules[:MOST_RULES])}."
    if speed.stalls and speed.latency_cycles:
        stalls = (
            f"{reason} {100 * cycles / speed.latency_cycles:.0f} %"
            for reason, cycles in speed.stalls[:MOST_STALLS]
        )
        cycles = significant(speed.latency_cycles)
        yield f"Of {cycles} cycles between two instructions a warp waits: {', '.join(stalls)}."
    if speed.theoretical_occupancy_pct is not None:
        text = f"{speed.theoretical_occupancy_pct:.0f} % possible"
        if speed.achieved_occupancy_pct is not None:
            text = f"{speed.achieved_occupancy_pct:.0f} % of {text}"
        limited = speed.limiters and speed.theoretical_occupancy_pct < _ALL_PCT
        by = f", limited by {' and '.join(speed.limiters)}" if limited else ""
        yield f"Occupancy: {text}{by}."
