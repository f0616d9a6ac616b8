"""Putting the clocks of many reports on one time line.

Level 0 is what the reports say themselves (clocks.py). Level 1 is what their collectives say:
ranks leave a synchronising collective together, so the ends tell how far each clock is off. A fit
carries its own error bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.clock_alignment.clock_equations import Observations, against_median, looks_of
from nsightpy.analysis.clock_alignment.clock_fit import NORMAL
from nsightpy.analysis.clock_alignment.clock_graph import Courses, courses_of
from nsightpy.analysis.clock_alignment.clock_solve import solve
from nsightpy.analysis.clock_alignment.clocks import (
    COLLECTIVES,
    ONE_SESSION,
    SYSTEM_CLOCK,
    UNKNOWN,
    Clock,
    ClockFit,
    hosts_of,
    level_zero,
    sessions_of,
)
from nsightpy.analysis.collectives.groups import with_groups
from nsightpy.analysis.collectives.log import Codes, CollectiveLog, Ledger, Mask, ledger_of
from nsightpy.analysis.collectives.matching import Instances, instances_of
from nsightpy.frames import Ints, distinct

# With fewer instances, or a larger error of the median end, level 0 stays.
LEAST_INSTANCES = 4
FAR_ERROR_NS, NEAR_ERROR_NS = 100_000.0, 5_000.0
ENOUGH = 1_000
PASSES, MOVED_NS = 3, 1_000.0


@dataclass(frozen=True)
class Alignment:
    """All ranks' collectives on the common clock: starts and ends in ns since `base_ns` (UTC).

    `fits` are those of the clocks, and `hosts` names what shares a host's clock; `instances` says
    which rows of the ledger are one collective.
    """

    clocks: tuple[Clock, ...]
    fits: tuple[ClockFit, ...]
    ledger: Ledger
    instances: Instances
    starts: Ints
    ends: Ints
    base_ns: int
    hosts: tuple[str, ...]
    notes: tuple[str, ...] = ()


def align(clocks: Sequence[Clock], logs: Sequence[CollectiveLog]) -> Alignment:
    """Put clocks on one time line by the collectives of their reports.

    logs[i] holds the collectives of clocks[i]'s process (a report's log may stand there for all
    its processes). The first clock is the reference: offset and drift 0.
    """
    level0 = level_zero(clocks)
    base = min((fit.epoch_ns + fit.zero_ns for fit in level0), default=0)
    ledger = ledger_of(_by_log(clocks, logs), [fit.epoch_ns - base for fit in level0])
    hosts, sessions = hosts_of(clocks), sessions_of(clocks)
    courses = courses_of(ledger, sessions, hosts)
    machines = [clock.host or host for clock, host in zip(clocks, hosts, strict=True)]
    seats = _seats(ledger, clocks)
    ledger, instances, courses = _settled(ledger, courses, sessions, machines, seats)
    between = _evidence(ledger, instances, courses, sessions[ledger.clock])
    told = [_convincing(fit, between[one]) for fit, one in zip(level0, sessions, strict=True)]
    courses = _gauged(courses, np.asarray(told, dtype=np.bool_), hosts)
    evidence = between
    if not all(told) or len(np.unique(sessions)) < len(sessions):
        # else nothing moved but what is common to all
        evidence = _evidence(ledger, instances, courses, ledger.clock)
    fits = tuple(
        _fit_of(fit, base, courses, clock, seen, told=told[clock])
        for clock, (fit, seen) in enumerate(zip(level0, evidence, strict=True))
    )
    return Alignment(
        tuple(clocks),
        fits,
        ledger,
        instances,
        courses.aligned(ledger.clock, ledger.starts),
        courses.aligned(ledger.clock, ledger.ends),
        base,
        tuple(hosts),
        tuple(_notes(clocks, fits, courses)),
    )


def _settled(
    ledger: Ledger, courses: Courses, sessions: Codes, machines: Sequence[str], seats: Ints
) -> tuple[Ledger, Instances, Courses]:
    """Groups, instances and courses that agree with each other; a machine's clocks drift alike."""
    untold = ledger
    for _ in range(PASSES):
        ends = courses.aligned(untold.clock, untold.ends)
        starts = courses.aligned(untold.clock, untold.starts)
        ledger = with_groups(untold, starts, ends, courses.tolerance_ns, seats)
        instances = instances_of(ledger, ends)
        refined = _refined(ledger, instances, courses, sessions, machines)
        moved = np.max(np.abs(refined.offsets - courses.offsets), initial=0.0)
        courses = refined
        if moved < MOVED_NS:
            break
    return ledger, instances, courses


def _seats(ledger: Ledger, clocks: Sequence[Clock]) -> Ints:
    """Each unit's place in the job: its rank, or its place among the units where ranks are not."""
    ranks = [clocks[unit.clock].rank for unit in ledger.units]
    known = [rank for rank in ranks if rank is not None]
    places = len(set(known)) < len(ranks)
    return np.asarray(range(len(ranks)) if places else known, dtype=np.int64)


def _refined(
    ledger: Ledger, instances: Instances, courses: Courses, sessions: Codes, machines: Sequence[str]
) -> Courses:
    """The courses that fit all instances at once; clocks of one session have one."""
    owner = sessions[ledger.clock]
    rows = _telling(ledger, instances, courses, owner)
    if len(rows) == 0:
        return courses
    rows = rows[_enough(ledger, instances)[instances.number[rows]]]
    clock = owner[rows]
    _, instance = distinct(instances.number[rows])
    # Drifts are found anew: what pairs of clocks seemed to tell is not evidence enough.
    aligned = (ledger.ends[rows] - courses.center_ns).astype(np.float64) - courses.offsets[clock]
    first = np.full(int(instance.max()) + 1, np.inf)
    np.minimum.at(first, instance, aligned)
    seen = Observations(
        clock,
        instance,
        first[instance],
        aligned - first[instance],
        looks_of(ledger.ends[rows] - ledger.starts[rows], instance),
        len(courses.offsets),
    )
    offsets, drifts, known = solve(seen, machines)
    offsets = (courses.offsets + offsets)[sessions]
    return replace(courses, offsets=offsets, drifts=drifts[sessions], known=known[sessions])


def _enough(ledger: Ledger, instances: Instances) -> Mask:
    """Some of the instances of every channel, evenly spread: more would tell nothing new."""
    rows = np.flatnonzero(instances.matched)
    number, first = np.unique(instances.number[rows], return_index=True)
    channel = ledger.channel[rows[first]]
    found = np.zeros(instances.count, dtype=np.bool_)
    for one in np.unique(channel).tolist():
        own = number[channel == one]
        found[own[:: max(1, len(own) // ENOUGH)]] = True
    return found


def _telling(ledger: Ledger, instances: Instances, courses: Courses, owner: Codes) -> Ints:
    """The rows of synchronising instances in which owners (clocks) of one component met."""
    rows = np.flatnonzero(instances.matched & ledger.synchronising)
    number, clock = instances.number[rows], owner[rows]
    if len(rows) == 0:
        return rows
    somebody = np.zeros(instances.count, dtype=clock.dtype)
    somebody[number] = clock
    partner = somebody[number]
    met, torn = np.zeros((2, instances.count), dtype=np.bool_)
    met[number[clock != partner]] = True
    torn[number[courses.components[clock] != courses.components[partner]]] = True
    return rows[(met & ~torn)[number]]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the collectives tell of one clock: how many, percentiles, error of the median (ns)."""

    instances: int = 0
    percentiles: tuple[float, float, float] | None = None
    error_ns: float = float("inf")


def _evidence(ledger: Ledger, instances: Instances, courses: Courses, owner: Codes) -> list[_Seen]:
    """Residuals by owner (clock) of the rows: own end minus the median end of the instance."""
    rows = _telling(ledger, instances, courses, owner)
    clocks = len(courses.offsets)
    if len(rows) == 0:
        return [_Seen()] * clocks
    clock = owner[rows]
    _, instance = distinct(instances.number[rows])
    ends = courses.aligned(clock, ledger.ends[rows]).astype(np.float64)
    residuals = against_median(ends, instance)
    found = []
    for place in range(clocks):
        own, met = residuals[clock == place], distinct(instance[clock == place])[0]
        if len(own) == 0:
            found.append(_Seen())
            continue
        low, middle, high = np.percentile(own, (5, 50, 95)).tolist()
        scatter = NORMAL * float(np.median(np.abs(own - middle)))
        found.append(_Seen(len(met), (low, middle, high), 1.25 * scatter / len(met) ** 0.5))
    return found


def _convincing(fit: ClockFit, seen: _Seen) -> bool:
    """Whether collectives tell more about a clock than level 0 does."""
    limit = NEAR_ERROR_NS if fit.method in (ONE_SESSION, SYSTEM_CLOCK) else FAR_ERROR_NS
    return seen.instances >= LEAST_INSTANCES and seen.error_ns <= limit


def _gauged(courses: Courses, told: Mask, hosts: Sequence[str]) -> Courses:
    """Offsets relative to the first clock; clocks of which nothing is told stay at level 0.

    Components that no collective ties are tied by a host that they share, else by level 0.
    """
    offsets, drifts = np.where(told, courses.offsets, 0.0), np.where(told, courses.drifts, 0.0)
    placed = np.zeros(len(offsets), dtype=np.bool_)
    for component in np.unique(courses.components).tolist():
        members = told & (courses.components == component)
        if not members.any():
            continue
        first = int(np.flatnonzero(members)[0])
        drifts[members] -= drifts[first]
        shared = [
            offsets[one] - offsets[other]
            for one in np.flatnonzero(members).tolist()
            for other in np.flatnonzero(placed).tolist()
            if hosts[one] and hosts[one] == hosts[other]
        ]
        if members[0]:
            shift = offsets[0]
        else:
            shift = float(np.median(shared)) if shared else float(np.median(offsets[members]))
        offsets[members] -= shift
        placed |= members
    return replace(courses, offsets=offsets, drifts=drifts)


def _fit_of(
    fit: ClockFit, base: int, courses: Courses, clock: int, seen: _Seen, *, told: bool
) -> ClockFit:
    """The published fit of one clock: its offset is taken back to the session's start."""
    start = fit.epoch_ns + fit.zero_ns - base - courses.center_ns
    low, middle, high = seen.percentiles or (None, None, None)
    offset = float(courses.offsets[clock] + courses.drifts[clock] * start)
    return replace(
        fit,
        offset_ns=round(offset),
        drift_ppm=float(courses.drifts[clock]) * 1e6 if told and courses.known[clock] else None,
        method=COLLECTIVES if told else fit.method,
        instances=seen.instances,
        residual_p05_ns=low,
        residual_p50_ns=middle,
        residual_p95_ns=high,
    )


def _notes(clocks: Sequence[Clock], fits: Sequence[ClockFit], courses: Courses) -> list[str]:
    """What a reader must know about the common clock."""
    if len(clocks) < 2 or fits[0].method == ONE_SESSION:
        return []
    notes = []
    left = [c.name for c, f in zip(clocks, fits, strict=True) if f.method != COLLECTIVES]
    if left:
        methods = {fit.method for fit in fits} - {COLLECTIVES}
        notes.append(
            f"{_few(left)}: fewer than {LEAST_INSTANCES} synchronising collectives with others, or "
            f"ends too far apart, so their clocks are not aligned by them ({_level(methods)} only)."
        )
    parts = {
        int(component)
        for component, fit in zip(courses.components, fits, strict=True)
        if fit.method == COLLECTIVES
    }
    if len(parts) > 1:
        notes.append(
            f"{len(parts)} sets of ranks share no synchronising collective: between them only "
            "the wall clock holds, which may be wrong by milliseconds."
        )
    return notes


def _level(methods: set[str]) -> str:
    return ", ".join(sorted(methods)).replace(UNKNOWN, "no clock")


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _by_log(
    clocks: Sequence[Clock], logs: Sequence[CollectiveLog]
) -> list[tuple[CollectiveLog, dict[int, int]]]:
    """Each log once, with the clocks of its processes."""
    owners: dict[int, tuple[CollectiveLog, dict[int, int]]] = {}
    for place, (clock, log) in enumerate(zip(clocks, logs, strict=True)):
        owners.setdefault(id(log), (log, {}))[1][clock.pid] = place
    return list(owners.values())
