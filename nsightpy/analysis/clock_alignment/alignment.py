"""Putting the clocks of many reports on one time line.

Level 0 is what the reports say themselves (clocks.py). Level 1 is what their collectives say:
ranks leave a synchronising collective together, so the ends show how far each clock is off. A fit
carries its own error bar. Clocks that none ties are placed by MPI calls (mpi_placement.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.clock_alignment.clocks import (
    COLLECTIVES,
    MPI,
    ONE_SESSION,
    SYSTEM_CLOCK,
    Clock,
    ClockFit,
    Seen,
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
from nsightpy.analysis.clock_alignment.mpi_placement import mpi_calls_of, placed_by_mpi
from nsightpy.analysis.clock_alignment.tree import (
    ClockModels,
    clock_models_of,
    placed_together,
    tied_clocks,
)
from nsightpy.analysis.collectives.groups import with_groups
from nsightpy.analysis.collectives.log import Codes, CollectiveLog, Ledger, Mask, ledger_of
from nsightpy.analysis.collectives.matching import Instances, instances_of
from nsightpy.analysis.collectives.thresholds import ENOUGH, LEAST_SHARED, REACH_NS, TIGHT_NS
from nsightpy.analysis.grouping import rows_of_groups
from nsightpy.frames import Floats, Frame, Ints, distinct
from nsightpy.units import listed


@dataclass(frozen=True)
class Alignment:
    """All ranks' collectives on the common clock: starts and ends in ns since `base_ns` (UTC).

    `fits` are those of the clocks; `instances` says which rows of the ledger are one collective.
    """

    clocks: tuple[Clock, ...]
    fits: tuple[ClockFit, ...]
    ledger: Ledger
    instances: Instances
    starts: Ints
    ends: Ints
    base_ns: int
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
    ledger = ledger_of([clock.pid for clock in clocks], logs, [f.epoch_ns - base for f in level0])
    machines, sessions = machines_of(clocks), sessions_of(clocks)
    models = clock_models_of(ledger, sessions, machines)
    ledger, instances, models = _settled(ledger, models, clocks, sessions, machines)
    between = _evidence(ledger, instances, models, sessions[ledger.clock])
    # whether collectives show more about a clock than level 0 does
    shown = [between[session] for session in sessions]
    limits = [TIGHT_NS if f.method in (ONE_SESSION, SYSTEM_CLOCK) else REACH_NS for f in level0]
    tied = np.asarray([seen.instances for seen in shown], dtype=np.int64) >= LEAST_SHARED
    tied &= np.asarray([seen.error_ns for seen in shown]) <= limits
    models, apart = placed_together(models, tied, machines)
    evidence = _evidence(ledger, instances, models, ledger.clock)
    methods = [COLLECTIVES if one else fit.method for fit, one in zip(level0, tied, strict=True)]
    whole, notes = False, list[str]()
    if any(log.rows for log in mpi):
        calls = mpi_calls_of(clocks, mpi, [fit.epoch_ns - base for fit in level0])
        models, by_mpi, whole, notes = placed_by_mpi(
            calls, level0, models, tied, (sessions, machines)
        )
        for row, seen in enumerate(by_mpi):
            if np.isfinite(seen.error_ns) and not tied[row]:
                methods[row], evidence[row] = MPI, seen
    fits = tuple(
        _fit_of(replace(fit, method=method), base, models, row, seen)
        for row, (fit, method, seen) in enumerate(zip(level0, methods, evidence, strict=True))
    )
    if not whole and fits and fits[0].method != ONE_SESSION:
        notes += _notes(clocks, fits, apart)
    return Alignment(
        tuple(clocks),
        fits,
        ledger,
        instances,
        models.aligned(ledger.clock, ledger.starts),
        models.aligned(ledger.clock, ledger.ends),
        base,
        tuple(notes),
    )


def _settled(
    ledger: Ledger,
    models: ClockModels,
    clocks: Sequence[Clock],
    sessions: Codes,
    machines: Sequence[str],
) -> tuple[Ledger, Instances, ClockModels]:
    """Groups, instances and models that agree with each other; a machine's clocks drift alike.

    The fit uses the groups found last, and those decide which clocks are tied at all.
    """
    unknown, before = ledger, np.empty(0, dtype=np.int64)
    # where ranks are not known, the place among the units is that in the job's layout
    ranks = [clocks[unit.clock].rank for unit in ledger.units]
    distinct_ranks = {rank for rank in ranks if rank is not None}
    places = range(len(ranks)) if len(distinct_ranks) < len(ranks) else ranks
    positions = np.asarray(places, dtype=np.int64)
    for _ in range(6):
        ends = models.aligned(unknown.clock, unknown.ends)
        starts = models.aligned(unknown.clock, unknown.starts)
        ledger = with_groups(unknown, starts, ends, positions)
        instances = instances_of(ledger, ends)
        components = tied_clocks(ledger, instances, sessions)
        same = np.array_equal(before, instances.number)
        if same and np.array_equal(components, models.components):
            break  # the same ends give the same fit
        models = replace(models, components=components)
        refined = _refined(ledger, instances, models, sessions, machines)
        models, before = refined, instances.number
    return ledger, instances, models


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


def _evidence(
    ledger: Ledger, instances: Instances, models: ClockModels, owner: Codes
) -> list[Seen]:
    """Residuals by owner (clock) of the rows: own end minus the median end of the instance."""
    rows = _telling(ledger, instances, models, owner)
    clocks, clock = len(models.offsets), owner[rows]
    instance = distinct(instances.number[rows])[1].astype(np.int64)
    ends = models.aligned(clock, ledger.ends[rows]).astype(np.float64)
    residuals = against_median(ends, instance)
    return [_seen(residuals[part], instance[part]) for part in rows_of_groups(clock, clocks)]


def _seen(residuals: Floats, instance: Ints) -> Seen:
    """What the residuals (ns) of one clock's rows show."""
    if len(residuals) == 0:
        return Seen()
    instances = len(np.unique(instance))
    low, middle, high = np.percentile(residuals, (5, 50, 95)).tolist()
    scatter = NORMAL * float(np.median(np.abs(residuals - middle)))
    return Seen(instances, (low, middle, high), 1.25 * scatter / instances**0.5)


def _fit_of(fit: ClockFit, base: int, models: ClockModels, clock: int, seen: Seen) -> ClockFit:
    """The published fit of one clock: its offset is taken back to the session's start."""
    start = fit.epoch_ns + fit.zero_ns - base - models.center_ns
    low, middle, high = seen.percentiles or (None, None, None)
    drift = float(models.drifts[clock])
    drifts = fit.method == COLLECTIVES and models.known[clock]
    return replace(
        fit,
        offset_ns=round(float(models.offsets[clock]) + drift * start),
        drift_ppm=drift * 1e6 if drifts else None,
        instances=seen.instances,
        residual_p05_ns=low,
        residual_p50_ns=middle,
        residual_p95_ns=high,
    )


def _notes(clocks: Sequence[Clock], fits: Sequence[ClockFit], apart: int) -> list[str]:
    """What a reader must know about the common clock; so many sets of clocks are `apart`."""
    if len(clocks) < 2:
        return []
    notes = []
    left = [c.name for c, f in zip(clocks, fits, strict=True) if f.method not in (COLLECTIVES, MPI)]
    if left:
        notes.append(
            f"{listed(left, 4)}: fewer than {LEAST_SHARED} synchronising collectives with others, "
            "or ends too far apart, so their clocks are not aligned by them."
        )
    if apart > 1:
        notes.append(
            f"{apart} sets of ranks share no synchronising collective: between them "
            "only the wall clock holds, which may be wrong by milliseconds."
        )
    return notes
