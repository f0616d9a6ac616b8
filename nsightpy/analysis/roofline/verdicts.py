"""A verdict in plain words: what limits a kernel, how far it is from the roof, what to try.

The class of the speed of light comes first; the side of the roofline second: kernels bound by a
cache make the two disagree.
"""

from nsightpy.analysis.roofline import speed_of_light as sol
from nsightpy.analysis.roofline.thresholds import SPREAD
from nsightpy.results.rooflines import (
    ALMOST_NO_TRAFFIC,
    RooflineLaunch,
    RooflineVariant,
    SpeedOfLight,
)
from nsightpy.units import format_rate, format_time, significant

_STALLS = {
    "long scoreboard": "waiting for global or local memory: more loads in flight, better locality",
    "short scoreboard": "waiting for shared memory or special functions: fewer bank conflicts",
    "barrier": "waiting at __syncthreads(): balance the warps, or use smaller blocks",
    "mio throttle": "shared memory and special instructions queue up: use wider accesses",
    "lg throttle": "too many small global accesses: use wider loads and stores",
    "math pipe throttle": "a math pipe is full: shift work to another one, or do less of it",
    "wait": "fixed instruction latencies: more independent instructions per thread",
    "no instruction": "instructions are not there in time: shorter code, longer runs",
}
_PIPE_ADVICE = {
    sol.LOAD_STORE: "Try wider loads and stores, and more reuse in registers.",
    sol.ISSUE: "Try fewer instructions: wider loads and stores, redundant work done once.",
    sol.TENSOR: "Feed the tensor cores better: larger tiles, fewer other instructions.",
    "ALU": "Integer and logic work fills it: try simpler indices, redundant work done once.",
    "XU": "Special functions and conversions fill it: try faster or fewer of them.",
}
_MEMORY_ADVICE = {
    "DRAM": "Try coalesced, wider accesses and more reuse in caches or shared memory.",
    "L2": "Try more reuse in L1 and shared memory, and fewer atomics.",
    "L1": "Try coalesced accesses, fewer bank conflicts, and more reuse in registers.",
}
_LESS_TRAFFIC = "Try moving less data, and in whole sectors."


def verdict(variant: RooflineVariant) -> str:
    """One to three sentences about the launch of median duration, and how far the others are."""
    launch = variant.typical
    times = list(filter(None, variant.times))
    spread = ""
    if times and max(times) >= SPREAD * min(times):
        low, high = format_time(min(times)), format_time(max(times))
        spread = f"Its {len(times)} launches take {low} to {high}."
    parts = (_limit(launch.speed), _distance(launch), spread, _advice(launch))
    return " ".join(part for part in parts if part)


def _limit(speed: SpeedOfLight) -> str:
    """What limits it, by NVIDIA's class."""
    compute, memory = _percent(speed.compute_pct), _percent(speed.memory_pct)
    kind = speed.classification
    if kind in (sol.HIGH, sol.COMPUTE, sol.MEMORY):
        most = "Runs near the limit of" if kind == sol.HIGH else "Limited by"
        if kind == sol.MEMORY or (kind == sol.HIGH and _mostly_memory(speed)):
            unit = f"memory, {speed.busiest}" if speed.busiest else "memory"
            return f"{most} {unit} ({memory}; compute {compute})."
        pipe = f"compute, {speed.busiest_pipe}" if speed.busiest_pipe else "compute"
        return f"{most} {pipe} ({compute}; memory {memory})."
    if kind == sol.BALANCED:
        if speed.busiest_pipe == sol.LOAD_STORE:
            return f"Busy with loads and stores (their pipe {compute}; memory {memory})."
        return f"Compute ({compute}) and memory ({memory}) are used about alike."
    if kind == sol.LATENCY:
        return f"Limited by latency: neither compute ({compute}) nor memory ({memory}) is busy."
    if kind == sol.SMALL:
        waves = significant(speed.waves or 0.0, 2)
        used = f"compute {compute}, memory {memory}"
        return f"The grid is too small for this GPU ({waves} waves; {used})."
    return "What limits it was not measured."


def _mostly_memory(speed: SpeedOfLight) -> bool:
    return (speed.memory_pct or 0) > (speed.compute_pct or 0)


def _distance(launch: RooflineLaunch) -> str:
    """How far from the roof, at the level that says most."""
    if launch.tensor_pct is not None:
        busy = _percent(launch.tensor_pct)
        return f"The tensor pipe is {busy} busy, its FLOPs are not in this report."
    point = launch.judged
    if point is None or point.roof_fraction is None:
        if not launch.work:
            return "It did no floating point work that was counted." if launch.points else ""
        first = launch.work[0]
        return f"{first.precision} does {format_rate(first.flops_per_s, 'FLOP/s')}."
    intensity = significant(point.arithmetic_intensity or 0.0, 2)
    if point.roof_flops_per_s != point.peak_flops_per_s:
        roof = f"its {point.level.upper()} roof (memory side, {intensity} FLOP/B)."
    else:
        roof = f"its peak (compute side, {intensity} FLOP/B of {point.level.upper()} traffic)."
    achieved, most = (
        format_rate(rate or 0.0, "FLOP/s") for rate in (point.flops_per_s, point.roof_flops_per_s)
    )
    share = f"{100 * point.roof_fraction:.3g} % of {roof}"
    traffic = [p.traffic_share or 1 for p in launch.work if p.level == "dram"]
    hardly = " DRAM is hardly used." if min(traffic, default=1) < ALMOST_NO_TRAFFIC else ""
    return f"{point.precision} does {achieved} of {most}, {share}{hardly}"


def _advice(launch: RooflineLaunch) -> str:
    """What to try first."""
    speed = launch.speed
    kind, pipe = speed.classification, speed.busiest_pipe
    if launch.judged is not None and launch.judged.precision.startswith("tensor"):
        pipe = pipe or sol.TENSOR
    if kind == sol.SMALL:
        return "Try more blocks, or run it beside other kernels."
    if kind == sol.LATENCY:
        return _latency_advice(speed)
    near_memory = kind == sol.HIGH and _mostly_memory(speed)
    if kind == sol.MEMORY or (near_memory and speed.busiest in ("L1", "L2")):
        return _MEMORY_ADVICE.get(speed.busiest, _LESS_TRAFFIC)
    if near_memory:
        return "Only moving less data helps: fuse kernels, reuse, smaller types."
    if kind == sol.HIGH and pipe != sol.LOAD_STORE:
        return "Only doing less work helps: another algorithm, cheaper types."
    if kind in (sol.HIGH, sol.COMPUTE) or (kind, pipe) == (sol.BALANCED, sol.LOAD_STORE):
        return _PIPE_ADVICE.get(pipe, "Fuse multiply and add; do redundant work once.")
    return "Gains need both less work and less traffic." if kind == sol.BALANCED else ""


def _latency_advice(speed: SpeedOfLight) -> str:
    if speed.leading_stall is not None:
        reason, share = speed.leading_stall
        why = f" ({_STALLS[reason]})" if reason in _STALLS else ""
        return f"Warps wait mostly on {reason}, {100 * share:.0f} % of the time{why}."
    possible, achieved = speed.theoretical_occupancy_pct, speed.achieved_occupancy_pct
    if possible is not None and possible < 50 and speed.limiters:
        return f"Occupancy is capped at {possible:.0f} % by {' and '.join(speed.limiters)}."
    if possible is not None and achieved is not None and possible - achieved > 10:
        return f"Occupancy is {achieved:.0f} % of possible {possible:.0f} %: balance the blocks."
    return "Try more work in flight: independent instructions, more warps."


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} %"
