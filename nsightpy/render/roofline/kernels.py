"""What is known of a kernel beside its points: ncu's own estimates, stalls, occupancy."""

from __future__ import annotations

from nsightpy.render.escape import printable
from nsightpy.results.rooflines import RooflineLaunch
from nsightpy.units import significant

MOST_RULES, MOST_STALLS = 4, 3
_LEAST_PCT, _ALL_PCT = 1.0, 99.5


def kernel_lines(launch: RooflineLaunch) -> list[str]:
    """Sentences for people, each only where its figures were measured."""
    return [line for line in (_rules(launch), _stalls(launch), _occupancy(launch)) if line]


def _rules(launch: RooflineLaunch) -> str:
    """ncu's estimates; each is of its own, and they do not add up."""
    worth = [rule for rule in launch.rules if rule.speedup_pct >= _LEAST_PCT][:MOST_RULES]
    texts = [
        f"{printable(rule.title)} {rule.speedup_pct:.0f} %{' (local)' * (rule.scope == 'local')}"
        for rule in worth
    ]
    return f"ncu's rules estimate a speedup by: {', '.join(texts)}." if texts else ""


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
