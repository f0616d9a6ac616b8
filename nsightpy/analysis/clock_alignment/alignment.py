"""Putting the clocks of many reports on one time line.

Level 0 is what the reports say themselves (clocks.py). Level 1 is what their collectives say:
ranks leave a synchronising collective together, so the ends show how far each clock is off. A fit
carries its own error bar. Clocks that none ties are placed by MPI calls (mpi_placement.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.clock_alignment.clocks import (
    COLLECTIVES,
    MPI,
    ONE_SESSION,
    SYSTEM_CLOCK,
    UNKNOWN,
    Clock,
    ClockFit,
    hosts_of,
    level_zero,
    machines_of,
    sessions_of,
)
from nsightpy.analysis.clock_alignment.fit import (
    NORMAL,
    Observations,
    against_median,
    length_classes_of,
    solve,
)
from nsightpy.analysis.clock_alignment.mpi_placement import (
    MpiPlacement,
    mpi_calls_of,
    placed_by_mpi,
)
from nsightpy.analysis.clock_alignment.tree import (
    ClockModels,
    clock_models_of,
    placed_together,
    tied_clocks,
)
from nsightpy.analysis.collectives.groups import with_groups
from nsightpy.analysis.collectives.log import Codes, CollectiveLog, Ledger, Mask, ledger_of
from nsightpy.analysis.collectives.matching import Instances, instances_of
from nsightpy.analysis.collectives.thresholds import (
    ENOUGH,
    FAR_ERROR_NS,
    LEAST_SHARED,
    NEAR_ERROR_NS,
    VOTE_NS,
)
from nsightpy.frames import Floats, Frame, Ints, distinct


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

    def ledger_ahead_ns(self, unit: int) -> int:
        """What the ledger's times of a unit are more than its report's own."""
        return self.fits[self.ledger.units[unit].clock].epoch_ns - self.base_ns


def align(
    clocks: Sequence[Clock], logs: Sequence[CollectiveLog], mpi: Sequence[Frame] = ()
) -> Alignment:
    """Put clocks on one time line by the collectives of their reports, or else their MPI calls.

    logs[i] holds the collectives of clocks[i]'s process (a report's log may stand there for all
    its processes), mpi[i] likewise its MPI calls. The first clock is the reference: offset and
    drift 0.
    """
    level0 = level_zero(clocks)
    base = min((fit.epoch_ns + fit.zero_ns for fit in level0), default=0)
    ledger = ledger_of(_by_log(clocks, logs), [fit.epoch_ns - base for fit in level0])
    machines, sessions = machines_of(clocks), sessions_of(clocks)
    positions = _rank_positions(ledger, clocks)
    models = clock_models_of(ledger, sessions, machines)
    ledger, instances, models = _settled(ledger, models, sessions, machines, positions)
    between = _evidence(ledger, instances, models, sessions[ledger.clock])
    shown = zip(level0, (between[session] for session in sessions), strict=True)
    tied = np.asarray([_convincing(fit, seen) for fit, seen in shown], dtype=np.bool_)
    models, apart = placed_together(models, tied, machines)
    evidence = _evidence(ledger, instances, models, ledger.clock)
    by_mpi = None
    if any(log.rows for log in mpi):
        calls = mpi_calls_of(clocks, mpi, [fit.epoch_ns - base for fit in level0])
        models, by_mpi = placed_by_mpi(calls, level0, models, tied, (sessions, machines))
    fits = tuple(
        _fit_of(fit, base, models, clock, seen, by_mpi, detected=bool(tied[clock]))
        for clock, (fit, seen) in enumerate(zip(level0, evidence, strict=True))
    )
    return Alignment(
        tuple(clocks),
        fits,
        ledger,
        instances,
        models.aligned(ledger.clock, ledger.starts),
        models.aligned(ledger.clock, ledger.ends),
        base,
        tuple(hosts_of(clocks)),
        tuple(_notes(clocks, fits, apart, by_mpi)),
    )


def _settled(
    ledger: Ledger, models: ClockModels, sessions: Codes, machines: Sequence[str], positions: Ints
) -> tuple[Ledger, Instances, ClockModels]:
    """Groups, instances and models that agree with each other; a machine's clocks drift alike.

    The fit uses the groups found last, and those decide which clocks are tied at all.
    """
    unknown, before = ledger, np.empty(0, dtype=np.int64)
    # Groups that work in lockstep may have tied clocks, not as closely as one group does.
    tolerance = max(models.tolerance_ns, VOTE_NS)
    for _ in range(6):
        ends = models.aligned(unknown.clock, unknown.ends)
        starts = models.aligned(unknown.clock, unknown.starts)
        ledger = with_groups(unknown, starts, ends, tolerance, positions)
        instances = instances_of(ledger, ends)
        components = tied_clocks(ledger, instances, sessions)
        same = np.array_equal(before, instances.number)
        if same and np.array_equal(components, models.components):
            break  # the same ends give the same fit
        models = replace(models, components=components)
        refined = _refined(ledger, instances, models, sessions, machines)
        tolerance, models, before = models.tolerance_ns, refined, instances.number
    return ledger, instances, models


def _rank_positions(ledger: Ledger, clocks: Sequence[Clock]) -> Ints:
    """Each unit's place in the job: its rank, or its place among the units where ranks are not."""
    ranks = [clocks[unit.clock].rank for unit in ledger.units]
    known = [rank for rank in ranks if rank is not None]
    places = len(set(known)) < len(ranks)
    return np.asarray(range(len(ranks)) if places else known, dtype=np.int64)


def _refined(
    ledger: Ledger,
    instances: Instances,
    models: ClockModels,
    sessions: Codes,
    machines: Sequence[str],
) -> ClockModels:
    """The models that fit all instances at once; clocks of one session have one."""
    owner = sessions[ledger.clock]
    rows = _telling(ledger, instances, models, owner)
    if len(rows) == 0:
        return models
    rows = rows[_enough(ledger, instances)[instances.number[rows]]]
    clock = owner[rows].astype(np.int64)
    instance = distinct(instances.number[rows])[1].astype(np.int64)
    # Drifts are found anew: what pairs of clocks seemed to show is not evidence enough.
    aligned = (ledger.ends[rows] - models.center_ns).astype(np.float64) - models.offsets[clock]
    first = np.full(int(instance.max()) + 1, np.inf)
    np.minimum.at(first, instance, aligned)
    seen = Observations(
        clock,
        instance,
        first[instance],
        aligned - first[instance],
        length_classes_of(ledger.ends[rows] - ledger.starts[rows], instance),
        len(models.offsets),
    )
    offsets, drifts, known = solve(seen, machines)
    offsets = (models.offsets + offsets)[sessions]
    return replace(models, offsets=offsets, drifts=drifts[sessions], known=known[sessions])


def _enough(ledger: Ledger, instances: Instances) -> Mask:
    """Some of the instances of every communicator, evenly spread: more would show nothing new."""
    rows = np.flatnonzero(instances.matched)
    communicator = np.empty(instances.count, dtype=np.int32)
    communicator[instances.number[rows]] = ledger.communicator[rows]
    _, begin, counts = np.unique(communicator, return_index=True, return_counts=True)
    number = np.arange(instances.count) - np.repeat(begin, counts)
    enough: Mask = number % np.maximum(1, np.repeat(counts, counts) // ENOUGH) == 0
    return enough


def _telling(ledger: Ledger, instances: Instances, models: ClockModels, owner: Codes) -> Ints:
    """The rows of synchronising instances that owners (clocks) of one component share."""
    rows = np.flatnonzero(instances.matched & ledger.synchronising)
    number, clock = instances.number[rows], owner[rows]
    somebody = np.zeros(instances.count, dtype=clock.dtype)
    somebody[number] = clock
    partner = somebody[number]
    shared, torn = np.zeros((2, instances.count), dtype=np.bool_)
    shared[number[clock != partner]] = True
    torn[number[models.components[clock] != models.components[partner]]] = True
    return rows[(shared & ~torn)[number]]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the collectives show of one clock: how many, percentiles, error of the median (ns)."""

    instances: int = 0
    percentiles: tuple[float, float, float] | None = None
    error_ns: float = float("inf")


def _evidence(
    ledger: Ledger, instances: Instances, models: ClockModels, owner: Codes
) -> list[_Seen]:
    """Residuals by owner (clock) of the rows: own end minus the median end of the instance."""
    rows = _telling(ledger, instances, models, owner)
    clocks, clock = len(models.offsets), owner[rows]
    instance = distinct(instances.number[rows])[1].astype(np.int64)
    ends = models.aligned(clock, ledger.ends[rows]).astype(np.float64)
    residuals = against_median(ends, instance)
    order = np.argsort(clock, kind="stable")
    edges = np.searchsorted(clock[order], np.arange(clocks + 1))
    parts = np.split(order, edges[1:-1])[:clocks]
    return [_seen(residuals[part], instance[part]) for part in parts]


def _seen(residuals: Floats, instance: Ints) -> _Seen:
    """What the residuals (ns) of one clock's rows show."""
    if len(residuals) == 0:
        return _Seen()
    instances = len(np.unique(instance))
    low, middle, high = np.percentile(residuals, (5, 50, 95)).tolist()
    scatter = NORMAL * float(np.median(np.abs(residuals - middle)))
    return _Seen(instances, (low, middle, high), 1.25 * scatter / instances**0.5)


def _convincing(fit: ClockFit, seen: _Seen) -> bool:
    """Whether collectives show more about a clock than level 0 does."""
    limit = NEAR_ERROR_NS if fit.method in (ONE_SESSION, SYSTEM_CLOCK) else FAR_ERROR_NS
    return seen.instances >= LEAST_SHARED and seen.error_ns <= limit


def _fit_of(
    fit: ClockFit,
    base: int,
    models: ClockModels,
    clock: int,
    seen: _Seen,
    by_mpi: MpiPlacement | None,
    *,
    detected: bool,
) -> ClockFit:
    """The published fit of one clock: its offset is taken back to the session's start."""
    start = fit.epoch_ns + fit.zero_ns - base - models.center_ns
    low, middle, high = seen.percentiles or (None, None, None)
    offset = float(models.offsets[clock] + models.drifts[clock] * start)
    if by_mpi is not None and by_mpi.placed[clock] and not detected:
        return by_mpi.fit_of(replace(fit, offset_ns=round(offset)), clock)
    return replace(
        fit,
        offset_ns=round(offset),
        drift_ppm=float(models.drifts[clock]) * 1e6 if detected and models.known[clock] else None,
        method=COLLECTIVES if detected else fit.method,
        instances=seen.instances,
        residual_p05_ns=low,
        residual_p50_ns=middle,
        residual_p95_ns=high,
    )


def _notes(
    clocks: Sequence[Clock], fits: Sequence[ClockFit], apart: int, by_mpi: MpiPlacement | None
) -> list[str]:
    """What a reader must know about the common clock; so many sets of clocks are `apart`."""
    notes = [] if by_mpi is None else list(by_mpi.notes)
    if len(clocks) < 2 or fits[0].method == ONE_SESSION or (by_mpi is not None and by_mpi.whole):
        return notes
    left = [c.name for c, f in zip(clocks, fits, strict=True) if f.method not in (COLLECTIVES, MPI)]
    if left:
        methods = sorted({fit.method for fit in fits} - {COLLECTIVES, MPI})
        level = ", ".join(methods).replace(UNKNOWN, "no clock")
        names = ", ".join(left[:4]) + (f" and {len(left) - 4} more" if len(left) > 4 else "")
        notes.append(
            f"{names}: fewer than {LEAST_SHARED} synchronising collectives with others, or ends "
            f"too far apart, so their clocks are not aligned by them ({level} only)."
        )
    if apart > 1:
        notes.append(
            f"{apart} sets of ranks share no synchronising collective: between them "
            "only the wall clock holds, which may be wrong by milliseconds."
        )
    return notes


def _by_log(
    clocks: Sequence[Clock], logs: Sequence[CollectiveLog]
) -> list[tuple[CollectiveLog, dict[int, int]]]:
    """Each log once, with the clocks of its processes."""
    owners: dict[int, tuple[CollectiveLog, dict[int, int]]] = {}
    for place, (clock, log) in enumerate(zip(clocks, logs, strict=True)):
        owners.setdefault(id(log), (log, {}))[1][clock.pid] = place
    return list(owners.values())
