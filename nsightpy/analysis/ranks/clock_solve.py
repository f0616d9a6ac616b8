"""The clocks of all ranks at once: offset and drift from every instance that they share.

Minimises the absolute differences own end - offset - drift x time - the instance's common end
over all instances of all groups, by reweighted least squares and conjugate gradients. So one
outlier moves nothing, and groups that overlap only in part hold the whole graph together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.ranks.clock_pairs import Floats
from nsightpy.analysis.ranks.collectives import Codes, Mask

ROUNDS = 12
STEPS, PRECISION = 60, 1e-9
FLOOR_NS = 20.0
# A drift counts when it is this many of its standard errors away from none; it is known to be
# none where a small one would have counted.
SIGNIFICANT, SMALL_DRIFT = 4.0, 1e-6
# Errors are drawn so often, and larger than the scatter (least absolute differences: 1.25 times).
DRAWS, CAREFUL = 24, 1.6
NORMAL = 1.4826


@dataclass(frozen=True, slots=True)
class Observations:
    """Rows (clock, instance, time, end) of synchronising collectives; numbers from 0 on, ns.

    `errors` are ends minus anything common to a whole instance, and `times` are common to it as
    well: an own time would carry the noise that is to be explained.
    """

    clock: Codes
    instance: Codes
    times: Floats
    errors: Floats
    clocks: int

    def scaled_times(self) -> tuple[Floats, float]:
        """Times between -1 and 1, and their scale."""
        scale = float(np.max(np.abs(self.times), initial=0.0)) or 1.0
        return self.times / scale, scale

    def centred(self, values: Floats, weights: Floats) -> Floats:
        """Values minus the weighted mean of their instance."""
        whole = np.bincount(self.instance, weights)
        mean = np.bincount(self.instance, weights * values) / np.maximum(whole, 1e-300)
        found: Floats = values - mean[self.instance]
        return found

    def against_median(self, values: Floats) -> Floats:
        """Values minus the median of their instance."""
        order = np.lexsort((values, self.instance))
        counts = np.bincount(self.instance)
        first = np.cumsum(counts) - counts
        ascending = values[order]
        low = ascending[np.minimum(first + (counts - 1) // 2, len(values) - 1)]
        high = ascending[np.minimum(first + counts // 2, len(values) - 1)]
        found: Floats = values - ((low + high) / 2)[self.instance]
        return found


def solve(seen: Observations, hosts: Sequence[str]) -> tuple[Floats, Floats, Mask]:
    """Offsets (ns, at time 0), drifts (ns per ns) of the clocks, and whose drift is known.

    A clock has a drift where the data show one; clocks of one host share theirs if they can.
    What is common to all is free.
    """
    drifts, known = _settled_drifts(seen, hosts)
    rest = Observations(
        seen.clock, seen.instance, seen.times, seen.errors - drifts[seen.clock] * seen.times,
        seen.clocks,
    )  # fmt: skip
    return _fit(rest, with_drift=False)[0], drifts, known


def _settled_drifts(seen: Observations, hosts: Sequence[str]) -> tuple[Floats, Mask]:
    """The drifts that stand out of the scatter, relative to the first clock with data."""
    drifts, known = np.zeros(seen.clocks), np.zeros(seen.clocks, dtype=np.bool_)
    present = np.unique(seen.clock)
    if len(present) < 2 or len(seen.times) < 4 * len(present):
        return drifts, known
    offsets, fitted = _fit(seen, with_drift=True)
    noise = _noise_drifts(seen, offsets, fitted)
    fitted, pooled = _pooled(fitted, noise, present, hosts)
    anchor = int(present[0])
    for clock in present[1:].tolist():
        step = fitted[clock] - fitted[anchor]
        alike = bool(hosts[clock]) and hosts[clock] == hosts[anchor]
        drawn = noise if alike else pooled
        least = SIGNIFICANT * float(np.std(drawn[:, clock] - drawn[:, anchor]))
        drifts[clock] = step if abs(step) > least else 0.0
        known[clock] = bool(drifts[clock]) or least < SMALL_DRIFT
    known[anchor] = bool(known.any())
    return drifts, known


def _noise_drifts(seen: Observations, offsets: Floats, drifts: Floats) -> Floats:
    """The drifts that the scatter of the ends alone pretends: a row per draw, a column per clock.

    Drawn, not derived: who meets whom how often decides, through any number of groups.
    """
    sizes = np.bincount(seen.instance)[seen.instance]
    residuals = seen.against_median(
        seen.errors - offsets[seen.clock] - drifts[seen.clock] * seen.times
    )
    # The middle of a few ends is drawn towards each of them.
    residuals = residuals * np.sqrt(sizes / np.maximum(sizes - 1, 1))
    scatter = np.zeros(seen.clocks)
    for clock in np.unique(seen.clock).tolist():
        middle = float(np.median(np.abs(residuals[seen.clock == clock])))
        scatter[clock] = CAREFUL * (NORMAL * middle + FLOOR_NS)
    random = np.random.default_rng(1)
    scaled, scale = seen.scaled_times()
    ones, nothing = np.ones(len(seen.errors)), np.zeros(2 * seen.clocks)
    found = []
    for _ in range(DRAWS):
        drawn = replace(seen, errors=scatter[seen.clock] * random.standard_normal(len(seen.clock)))
        found.append(_weighted(drawn, scaled, ones, nothing, with_drift=True)[seen.clocks :])
    return np.asarray(found) / scale


def _pooled(
    fitted: Floats, noise: Floats, present: Codes, hosts: Sequence[str]
) -> tuple[Floats, Floats]:
    """Drifts and their noise with clocks of one host put together where they agree."""
    fitted, noise = fitted.copy(), noise.copy()
    by_host: dict[str, list[int]] = {}
    for clock in present.tolist():
        by_host.setdefault(hosts[clock] or f"clock {clock}", []).append(clock)
    for members in by_host.values():
        mean, drawn = float(np.mean(fitted[members])), noise[:, members].mean(axis=1)
        apart = np.std(noise[:, members] - drawn[:, None], axis=0)
        if np.all(np.abs(fitted[members] - mean) <= SIGNIFICANT * apart + 1e-15):
            fitted[members], noise[:, members] = mean, drawn[:, None]
    return fitted, noise


def _fit(seen: Observations, *, with_drift: bool) -> tuple[Floats, Floats]:
    """Reweighted fits until every difference counts by its size, not by its square."""
    scaled, scale = seen.scaled_times()
    unknowns = np.zeros(2 * seen.clocks)
    weights = np.ones(len(seen.errors))
    for _ in range(ROUNDS):
        unknowns = _weighted(seen, scaled, weights, unknowns, with_drift=with_drift)
        own = unknowns[: seen.clocks][seen.clock] + unknowns[seen.clocks :][seen.clock] * scaled
        residuals = seen.against_median(seen.errors - own)
        floor = max(FLOOR_NS, 0.1 * float(np.median(np.abs(residuals))))
        weights = floor / np.maximum(np.abs(residuals), floor)
    return unknowns[: seen.clocks], unknowns[seen.clocks :] / scale


def _weighted(
    seen: Observations, scaled: Floats, weights: Floats, start: Floats, *, with_drift: bool
) -> Floats:
    """One weighted least-squares fit by conjugate gradients from `start`."""

    def gathered(rows: Floats) -> Floats:
        tilt = rows * scaled if with_drift else np.zeros(len(rows))
        parts = [np.bincount(seen.clock, part, minlength=seen.clocks) for part in (rows, tilt)]
        return np.concatenate(parts).astype(np.float64)

    def applied(unknowns: Floats) -> Floats:
        own = unknowns[: seen.clocks][seen.clock] + unknowns[seen.clocks :][seen.clock] * scaled
        return gathered(weights * seen.centred(own, weights))

    found = start.copy()
    wanted = gathered(weights * seen.centred(seen.errors, weights))
    residual = wanted - applied(found)
    direction, size = residual.copy(), float(residual @ residual)
    goal = PRECISION**2 * float(wanted @ wanted)
    for _ in range(STEPS):
        pushed = applied(direction)
        slope = float(direction @ pushed)
        if slope <= 0 or size <= goal:
            break
        found += size / slope * direction
        residual -= size / slope * pushed
        before, size = size, float(residual @ residual)
        direction = residual + size / before * direction
    return found
