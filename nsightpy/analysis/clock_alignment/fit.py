"""Offsets and drifts of all clocks at once, by a fit that outliers do not move.

Each end = its clock's offset + drift x time + the common end of its instance + jitter. Jitter
counts by its square where it is usual and by its size where it is not (Huber 1964); what is usual
is found for short and long collectives apart, since ends of short ones agree better.
Huber, Robust Estimation of a Location Parameter: https://doi.org/10.1214/aoms/1177703732
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nsightpy.analysis.collectives.log import Codes, Mask
from nsightpy.analysis.collectives.thresholds import (
    HUBER,
    LEAST_JITTER_NS,
    SAMPLE,
    SIGNIFICANT,
    SMALL_DRIFT,
)
from nsightpy.frames import Floats, Ints

# A standard deviation over the median deviation, of a bell.
NORMAL = 1.4826


@dataclass(frozen=True, slots=True)
class Observations:
    """Rows (clock, instance, time, end) of synchronising collectives; numbers from 0 on, ns.

    `errors` are ends minus anything common to a whole instance, and `times` are common to it as
    well: an own time would carry the noise that is to be explained. Rows of one `length_class`
    scatter alike.
    """

    clock: Ints
    instance: Ints
    times: Floats
    errors: Floats
    length_class: Codes
    clocks: int


@dataclass(frozen=True, slots=True)
class Fit:
    """Offsets by clock (ns, at time 0), drifts by drifter (ns per ns), what is left of each row and
    its weight (one over a square error); `freedom`: how many more ends there are than unknowns."""

    offsets: Floats
    drifts: Floats
    left: Floats
    weights: Floats
    freedom: int


def solve(seen: Observations, hosts: Sequence[str]) -> tuple[Floats, Floats, Mask]:
    """Offsets (ns, at time 0), drifts (ns per ns) of the clocks, and whose drift is known.

    A host has a drift, which all its clocks share, where the ends show one beyond its standard
    error. What is common to all is free.
    """
    drifts, known = _settled_drifts(seen, hosts)
    rest = replace(seen, errors=seen.errors - drifts[seen.clock] * seen.times)
    return fitted(rest, np.arange(0)).offsets, drifts, known


def fitted(seen: Observations, drifter: Ints) -> Fit:
    """The fit in which clock c drifts with drifter[c] (numbers from 0 on; none: nobody drifts)."""
    from scipy.sparse.linalg import lsmr

    matrix = _equations(seen, drifter)
    count, instances = len(seen.errors), int(seen.instance.max()) + 1
    freedom = max(count - matrix.shape[1] + 1, 1)
    lost = (count - instances) / freedom
    several = np.sqrt(1.0 - 1.0 / np.bincount(seen.instance))[seen.instance]
    unknowns, left = np.zeros(matrix.shape[1]), seen.errors
    for number in range(12):
        # ends are first compared with medians, which gross errors cannot lead astray
        rough = against_median(left, seen.instance) if number < 3 else left
        sizes = np.abs(rough) / several
        scatter = lost**0.5 * _scatters(sizes, seen.length_class)
        weights = HUBER / np.maximum(sizes / scatter, HUBER) / scatter**2
        root = np.sqrt(weights)
        weighted = matrix.multiply(root[:, None])
        norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=0)).ravel()) + 1e-300
        weighted = weighted.multiply(1.0 / norms).tocsr()
        step = lsmr(weighted, root * left, atol=1e-9, btol=1e-9)[0] / norms
        unknowns = unknowns + step
        left = seen.errors - matrix @ unknowns
        if np.max(np.abs(step[: seen.clocks])) < 1.0:
            break
    drifts = unknowns[seen.clocks : matrix.shape[1] - instances]
    return Fit(unknowns[: seen.clocks], drifts, left, weights, freedom)


def _equations(seen: Observations, drifter: Ints) -> Any:
    """A row per end: its clock, its drifter with the time, its instance."""
    from scipy.sparse import csr_matrix

    ones, drifters = np.ones(len(seen.errors)), int(drifter.max(initial=-1)) + 1
    values, columns = [ones, ones], [seen.clock, seen.clocks + drifters + seen.instance]
    if drifters:
        values.append(seen.times)
        columns.append(seen.clocks + drifter[seen.clock])
    rows = np.tile(np.arange(len(ones)), len(values))
    return csr_matrix((np.concatenate(values), (rows, np.concatenate(columns))))


def against_median(values: Floats, instance: Ints) -> Floats:
    """Values minus the median of their instance."""
    order = np.lexsort((values, instance))
    counts = np.bincount(instance)
    first = np.cumsum(counts) - counts
    ascending = values[order]
    middle = (ascending[first + (counts - 1) // 2] + ascending[first + counts // 2]) / 2
    differences: Floats = values - middle[instance]
    return differences


def length_classes_of(durations: Ints, instance: Ints) -> Codes:
    """How long the shortest participant of each row's instance was inside, in powers of two."""
    shortest = np.full(int(instance.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(shortest, instance, np.maximum(durations, 1))
    classes: Codes = np.log2(shortest).astype(np.int32)[instance]
    return classes


def _scatters(sizes: Floats, classes: Codes) -> Floats:
    """How far the end of each row may scatter (a standard deviation, ns): that of its class, or of
    few rows rather that of all."""
    sizes = NORMAL * np.hypot(sizes, LEAST_JITTER_NS)
    whole = float(np.median(sizes))
    scatter = np.full(len(sizes), whole)
    for one in np.unique(classes).tolist():
        rows = classes == one
        own, count = float(np.median(sizes[rows])), int(np.count_nonzero(rows))
        scatter[rows] = whole * (own / whole) ** (count / (count + SAMPLE))
    return scatter


def _settled_drifts(seen: Observations, hosts: Sequence[str]) -> tuple[Floats, Mask]:
    """The drifts that stand out of the scatter, relative to the first clock with data."""
    drifts, known = np.zeros(seen.clocks), np.zeros(seen.clocks, dtype=np.bool_)
    present = np.unique(seen.clock)
    if len(present) < 2 or len(seen.times) < 4 * len(present):
        return drifts, known
    names = [host or f"clock {clock}" for clock, host in enumerate(hosts)]
    drifter = np.unique(names, return_inverse=True)[1].astype(np.int64)
    fit, anchor = fitted(seen, drifter), int(drifter[present[0]])
    # more standard errors where the scatter itself is hardly known (Student)
    beyond = SIGNIFICANT * (1.0 + SIGNIFICANT / fit.freedom)
    least = beyond * drift_errors(seen, fit, drifter, anchor)
    steps = fit.drifts - fit.drifts[anchor]
    detected = np.abs(steps) > least
    drifts[present] = (steps * detected)[drifter[present]]
    known_of = detected | (least < SMALL_DRIFT)
    # the first drifts with its host, and it is where anybody's difference is
    known_of[anchor] = known_of[np.setdiff1d(drifter[present], anchor)].any()
    known[present] = known_of[drifter[present]]
    return drifts, known


def drift_errors(seen: Observations, fit: Fit, drifter: Ints, anchor: int) -> Floats:
    """The standard error of each drift against the anchor's (as if each clock's offset were that of
    its mean time, whatever the others')."""
    from scipy.sparse import csr_matrix

    whole = np.maximum(np.bincount(seen.clock, fit.weights), 1e-300)
    middle = np.bincount(seen.clock, fit.weights * seen.times) / whole
    times, count = seen.times - middle[seen.clock], len(fit.drifts)
    of_instance = np.bincount(seen.instance, fit.weights)
    rows = fit.weights * times / np.sqrt(of_instance[seen.instance])
    shape = (count, len(of_instance))
    shared = csr_matrix((rows, (drifter[seen.clock], seen.instance)), shape=shape)
    alone = np.bincount(drifter[seen.clock], fit.weights * times**2, minlength=count)
    information = np.diag(alone) - (shared @ shared.T).toarray()
    # what nothing ties is held by so little that it does no harm elsewhere
    information.flat[:: count + 1] += 1e-7 * alone.max()
    covariance = np.linalg.inv(information)
    variances = covariance.diagonal()
    squares = variances + variances[anchor] - 2 * covariance[anchor]
    errors: Floats = np.sqrt(np.maximum(squares, 0.0))
    return errors
