"""Rooflines: each launch's work per precision against its traffic per memory level.

Intensity = work / traffic, roof = min(peak work, intensity x peak traffic), as the roofline charts
of Nsight Compute (Williams et al., https://doi.org/10.1145/1498765.1498785). Peaks are at the
profiled clock unless another is wanted; achieved rates are never rescaled.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from nsightpy.analysis.roofline.rates import ACTIVE, scalar_work, tensor_work, traffic
from nsightpy.analysis.roofline.readings import Rate, Readings, readings
from nsightpy.analysis.roofline.speed_of_light import speed_of_light
from nsightpy.analysis.roofline.verdicts import verdict
from nsightpy.frames import Frame
from nsightpy.results import Note
from nsightpy.results.rooflines import (
    ALMOST_NO_TRAFFIC,
    SCALAR,
    Machine,
    Point,
    RooflineLaunch,
    RooflineVariant,
    RuleEstimate,
)

_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
PROFILED, MAXIMUM = "profiled", "max"
TITLES = "SOLBottleneck"
ABSURD = 1e24
_NO_FLOPS = Note(
    "FLOPs were not collected: no roofline.",
    "Collect them with ncu --set roofline, or --section SpeedOfLight_RooflineChart.",
)
_NO_TIME = Note(
    "no duration: FLOPs cannot become rates.", "Collect gpu__time_duration.sum with them."
)
_NO_LEVELS = Note(
    "L2 and L1 traffic was not collected: their rooflines are absent.",
    "Collect it with ncu --set roofline, or "
    "--section SpeedOfLight_HierarchicalSingleRooflineChart.",
)
_NO_DRAM = Note(
    "DRAM traffic was not collected: no DRAM roofline.",
    "Collect it with ncu --section SpeedOfLight_RooflineChart, or "
    "--section MemoryWorkloadAnalysis.",
)
_INTEGRATED = Note(
    "this GPU shares the system's memory and counts no DRAM traffic: no DRAM roofline."
)
_TENSOR = Note(
    "the tensor pipe was active, and its FLOPs were not collected: the other points are lower "
    "bounds, and no verdict rests on them.",
    "ncu 2025.1 or later collects them with --set roofline.",
)
_NO_SPEED = Note(
    "speed of light was not collected: no class.", "Collect it with ncu --section SpeedOfLight."
)
_FLOP_COUNT = re.compile(
    r"sm(?:sp)?__sass_thread_inst_executed_op_[dfh](?:add|mul|fma)_pred_on\.sum\b"
)


def launch_rooflines(
    launches: Frame, metrics: Frame, rules: Frame, *, clock: str | float = PROFILED
) -> list[RooflineLaunch]:
    """The rooflines of a report's launches; clock is "profiled", "max" or Hz."""
    titles, gains = stored_titles(rules), estimates(rules)
    return [
        _launch(launches, row, each, clock, titles.get(number), gains.get(number, ()))
        for row, (number, each) in enumerate(readings(launches, metrics))
    ]


def stored_titles(rules: Frame) -> dict[int, str]:
    """NVIDIA's own class by launch, where the report has one."""
    wanted, titles = rules.labels("rule").equals([TITLES]), rules.labels("title")
    rows = wanted.nonzero()[0].tolist()
    return {int(rules.ints("launch")[row]): titles[row] for row in rows if titles[row]}


def variants(launches: Iterable[RooflineLaunch]) -> tuple[RooflineVariant, ...]:
    """Launches grouped by kernel, shape and GPU, the longest total first."""
    groups: dict[tuple[object, ...], list[RooflineLaunch]] = {}
    for launch in launches:
        name, machine = launch.mangled_name or launch.name, launch.machine
        key = (name, launch.grid, launch.block, machine.gpu, machine.capability)
        groups.setdefault(key, []).append(launch)
    unjudged = [RooflineVariant(tuple(group)) for group in groups.values()]
    variants = [replace(variant, verdict=verdict(variant)) for variant in unjudged]
    return tuple(sorted(variants, key=lambda variant: -(variant.total_ns or 0)))


def points(works: Sequence[Rate], levels: Sequence[Rate]) -> tuple[Point, ...]:
    """One point per precision and level; a precision alone where no traffic is known."""
    # not what a damaged file left
    works, levels = (
        [rate for rate in rates if all(0 <= n < ABSURD for n in (rate.per_s, rate.peak_per_s or 0))]
        for rates in (works, levels)
    )
    if not levels:
        return tuple(Point(work.of, "", work.per_s, work.peak_per_s) for work in works)
    return tuple(
        Point(work.of, level.of, work.per_s, work.peak_per_s, level.per_s, level.peak_per_s)
        for work in works
        for level in levels
    )


def _launch(
    launches: Frame,
    row: int,
    r: Readings,
    clock: str | float,
    title: str | None,
    gains: tuple[RuleEstimate, ...],
) -> RooflineLaunch:
    machine, factor = _machine(launches, row, r, clock)
    works = [
        replace(rate, peak_per_s=rate.peak_per_s and rate.peak_per_s * factor)
        for rate in (*scalar_work(r), *tensor_work(r))
    ]
    levels = traffic(r, factor)
    measured = speed_of_light(r)
    speed = measured if measured.classification else replace(measured, classification=title)
    active = max((n for name, n in r.numbers.items() if ACTIVE.fullmatch(name)), default=None)
    uncounted = bool(active) and all(work.of in SCALAR for work in works)
    device = int(launches.ints("device")[row])
    return RooflineLaunch(
        launch=int(launches.ints("launch")[row]),
        name=launches.labels("name")[row],
        base_name=launches.labels("base_name")[row],
        mangled_name=launches.labels("mangled_name")[row],
        grid=_shape(launches, row, "grid", "blocks"),
        block=_shape(launches, row, "block", "threads_per_block"),
        device=device if device >= 0 else None,
        duration_ns=r.duration_ns,
        machine=machine,
        speed=speed,
        points=points(works, levels),
        missing=_missing(r, works, levels, uncounted, speed.classification is None),
        remarks=_remarks(works, levels, title, measured.classification),
        tensor_pct=active if uncounted else None,
        rules=gains,
    )


def _machine(launches: Frame, row: int, r: Readings, clock: str | float) -> tuple[Machine, float]:
    """The machine, and the factor from the profiled SM clock to the one wanted."""
    profiled, wanted, label = r.sm_hz, r.sm_hz, PROFILED
    if clock != PROFILED and profiled:
        khz = r.get("device__attribute_max_gpu_frequency_khz", "device__attribute_clock_rate")
        chosen = (khz and khz * 1e3) if isinstance(clock, str) else clock
        if chosen:
            wanted, label = chosen, MAXIMUM if isinstance(clock, str) else "chosen"
    machine = Machine(launches.labels("gpu")[row], r.capability, profiled, wanted, label)
    return machine, wanted / profiled if wanted and profiled else 1.0


def _missing(
    r: Readings, works: Sequence[Rate], levels: Sequence[Rate], tensor: bool, no_class: bool
) -> tuple[Note, ...]:
    """Why points are absent, and what would collect them."""
    missing = []
    if not works:
        counted = any(_FLOP_COUNT.match(name) for name in r.numbers)
        missing.append(_NO_TIME if counted and not r.duration_ns else _NO_FLOPS)
    else:
        measured = {level.of for level in levels}
        if "dram" not in measured:
            missing.append(_NO_DRAM if r.has_dram_roofline else _INTEGRATED)
        if not measured & {"l2", "l1"}:
            missing.append(_NO_LEVELS)
    if tensor:
        missing.append(_TENSOR)
    if no_class:
        missing.append(_NO_SPEED)
    return tuple(missing)


def _remarks(
    works: Sequence[Rate], levels: Sequence[Rate], title: str | None, classification: str | None
) -> tuple[str, ...]:
    """What to know about the points that are there."""
    remarks = [work.remark for work in works if work.remark]
    for level in levels:
        if level.of == "dram" and level.peak_per_s and works:
            share = level.per_s / level.peak_per_s
            if share < ALMOST_NO_TRAFFIC:
                remarks.append(
                    f"DRAM was hardly used (below {100 * ALMOST_NO_TRAFFIC:.0f} % of its peak): "
                    "the caches held the data, and the DRAM roofline says little."
                )
        if level.of in ("l2", "l1") and works:
            remarks.append(
                f"{level.of.upper()} traffic counts {level.remark} in this version of ncu."
            )
    if any(work.of == "fp16" and work.per_s > 0 for work in works):
        remarks.append("fp16 counts every instruction as a pair (half2): an upper bound.")
    if title and classification and title != classification:
        remarks.append(f"ncu's own rule calls it {title!r}.")
    return tuple(remarks)


def _shape(launches: Frame, row: int, shape: str, whole: str) -> str:
    """Dimensions as 128x1x1; the total alone where ncu has no more; "" where nothing is known."""
    sizes = [int(launches.ints(f"{shape}_{axis}")[row]) for axis in "xyz"]
    if all(sizes):
        return "x".join(map(str, sizes))
    total = int(launches.ints(whole)[row])
    return str(total) if total else ""


def estimates(rules: Frame) -> dict[int, tuple[RuleEstimate, ...]]:
    """The estimates of a report's rules (frames.RULES) by launch: those of the whole kernel first.

    Each rule once, with the most it promises. Rules of old versions estimate nothing.
    """
    columns = ("launch", "rule", "title", "speedup_pct", "speedup_scope")
    best: dict[int, dict[str, RuleEstimate]] = {}
    for launch, rule, title, speedup, scope in rules.tuples(*columns):
        if math.isfinite(speedup) and speedup > 0:
            estimate = RuleEstimate(rule, title or _WORD.sub(" ", rule), speedup, scope)
            by_rule = best.setdefault(launch, {})
            if rule not in by_rule or by_rule[rule].speedup_pct < speedup:
                by_rule[rule] = estimate

    def order(each: RuleEstimate) -> tuple[bool, float, str]:
        return (each.scope == "local", -each.speedup_pct, each.rule)

    return {n: tuple(sorted(by_rule.values(), key=order)) for n, by_rule in best.items()}
