"""Offsets and drifts of all clocks by a fit that outliers do not move, with its errors.

Jitter counts by its square where it is usual and by its size where it is not (Huber 1964): 5 %
less precise than least squares where jitter is bell-shaped, while least absolute differences
would lose 36 %. What is usual is found for short and long collectives and for each clock apart.
Huber, Robust Estimation of a Location Parameter: https://doi.org/10.1214/aoms/1177703732
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.clock_alignment.clock_equations import (
    Equations,
    Observations,
    against_median,
)
from nsightpy.analysis.collectives.log import Codes
from nsightpy.frames import Floats, Ints

# Rounds that count differences by size, which gross errors cannot lead astray, then Huber's.
ROUGH_ROUNDS, ROUNDS = 4, 14
# What moves by less does so no more.
STILL_NS = 1.0
# Beyond this many scatters jitter counts by its size; and the mean square of what is then left of
# a bell-shaped scatter of 1.
USUAL, CLIPPED_SQUARE = 1.345, 0.7102
NORMAL = 1.4826
# No end is known better than the ticks of its clock.
FLOOR_NS = 20.0
# The scatter of few ends is drawn towards that of all, as if so many more had it.
OTHERS = 20.0


@dataclass(frozen=True, slots=True)
class Fit:
    """Offsets by clock (ns, at time 0), drifts by drifter (ns per ns), and the drifts' errors.

    All relative to what is common to the whole. `covariance` is that of the drifts; `freedom` is
    how many more ends there are than unknowns.
    """

    offsets: Floats
    drifts: Floats
    covariance: Floats
    freedom: int


def fitted(seen: Observations, drifter: Ints) -> Fit:
    """The fit in which clock c drifts with drifter[c] (numbers from 0 on; none: nobody drifts)."""
    equations = Equations(seen, drifter)
    instances = int(seen.instance.max()) + 1
    freedom = max(len(seen.errors) - instances - equations.unknowns, 1)
    lost = (len(seen.errors) - instances) / freedom
    groups = [_Groups(seen.length_class), _Groups(seen.clock)]
    weights = np.ones(len(seen.errors))
    unknowns = equations.solved(weights)
    for step in range(ROUNDS):
        left = seen.errors - equations.shown(unknowns)
        if step < ROUGH_ROUNDS:
            residuals = against_median(left, seen.instance)
            floor = max(FLOOR_NS, 0.1 * float(np.median(np.abs(residuals))))
            weights = floor / np.maximum(np.abs(residuals), floor)
        else:
            residuals, shares = seen.centred(left, weights), seen.shares(weights)
            # The middle of a few ends is drawn towards each of them.
            residuals = residuals / np.sqrt(np.maximum(1.0 - shares, 0.1))
            scatter = _scatters(residuals, groups, shares) * lost**0.5
            limit = USUAL * scatter
            weights = limit / np.maximum(np.abs(residuals), limit) / scatter**2
        unknowns, before = equations.solved(weights, unknowns), unknowns
        if step > ROUGH_ROUNDS and float(np.max(np.abs(unknowns - before))) < STILL_NS:
            break
    covariance = equations.covariance(weights)
    drifts = unknowns[seen.clocks :] / equations.scale
    return Fit(unknowns[: seen.clocks], drifts, covariance, freedom)


class _Groups:
    """Rows that may scatter alike."""

    def __init__(self, codes: Codes | Ints) -> None:
        _, self._of = np.unique(codes, return_inverse=True)
        counts = np.bincount(self._of)
        first = np.cumsum(counts) - counts
        self._low, self._high = first + (counts - 1) // 2, first + counts // 2

    def relative(self, sizes: Floats, weights: Floats) -> Floats:
        """The scatter of each row's group, of sizes whose scatter as a whole is about 1."""
        ordered = sizes[np.lexsort((sizes, self._of))]
        rough = NORMAL * (ordered[self._low] + ordered[self._high]) / 2
        limit = USUAL * rough[self._of]
        squares = np.bincount(self._of, weights * np.minimum(sizes, limit) ** 2)
        counts = np.bincount(self._of, weights)
        own_scatter = np.sqrt(squares / np.maximum(counts, 1e-300) / CLIPPED_SQUARE)
        scatter: Floats = np.exp(counts / (counts + OTHERS) * np.log(np.maximum(own_scatter, 1e-6)))
        return scatter[self._of]


def _scatters(residuals: Floats, groups: list[_Groups], shares: Floats) -> Floats:
    """How far the end of each row may scatter (a standard deviation, ns)."""
    sizes = np.hypot(residuals, FLOOR_NS)
    scatter = np.full(len(sizes), NORMAL * float(np.median(sizes)))
    for group in groups:
        scatter = scatter * group.relative(sizes / scatter, 1.0 - shares)
    return scatter
