"""Which clocks drift, and how far all are apart.

A drift is detected where the ends show one beyond their scatter, by its own standard error; else it
is taken as none, and the offset then is that of the middle of the capture. To guess it (from what
clocks usually drift) would be wrong more often where there is none than it would help elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nsightpy.analysis.clock_alignment.clock_equations import Observations
from nsightpy.analysis.clock_alignment.clock_fit import Fit, fitted
from nsightpy.analysis.collectives.log import Mask
from nsightpy.frames import Floats, Ints

# A drift counts when it is this many of its standard errors away from none: of bell-shaped jitter
# alone one in 250 to 400 does (the errors come out 5 % too small). It is known to be none where a
# small one would have counted.
SIGNIFICANT, SMALL_DRIFT = 3.2, 1e-6
# Clocks of one host drift together, unless one is so many standard errors away from the others.
APART = 4.0
# Of more clocks than these, those of each host are looked at apart from the others.
MANY = 200
NOBODY = np.empty(0, dtype=np.int64)


def solve(seen: Observations, hosts: Sequence[str]) -> tuple[Floats, Floats, Mask]:
    """Offsets (ns, at time 0), drifts (ns per ns) of the clocks, and whose drift is known.

    A clock has a drift where the data show one; clocks of one host share theirs if they can.
    What is common to all is free.
    """
    drifts, known = _settled_drifts(seen, hosts)
    rest = replace(seen, errors=seen.errors - drifts[seen.clock] * seen.times)
    return fitted(rest, NOBODY).offsets, drifts, known


def _settled_drifts(seen: Observations, hosts: Sequence[str]) -> tuple[Floats, Mask]:
    """The drifts that stand out of the scatter, relative to the first clock with data."""
    drifts, known = np.zeros(seen.clocks), np.zeros(seen.clocks, dtype=np.bool_)
    present = np.unique(seen.clock)
    if len(present) < 2 or len(seen.times) < 4 * len(present):
        return drifts, known
    first, names = (
        int(present[0]),
        np.asarray([host or f"clock {n}" for n, host in enumerate(hosts)]),
    )
    drifter = np.unique(names, return_inverse=True)[1].astype(np.int64)
    if len(np.unique(names[present])) < len(present):
        for members, rows in _looked_at_together(seen, present, drifter):
            own_fit = _alone(seen, members, rows)
            if own_fit is None:
                continue
            drifter = _without_odd(own_fit, drifter, members)
            if first in members:
                mates = np.flatnonzero(drifter[members] == drifter[first])
                least = _least(own_fit, int(np.searchsorted(members, first)))
                known[members[mates]] = least[mates] < SMALL_DRIFT
        drifter = np.unique(drifter, return_inverse=True)[1].astype(np.int64)
    fit, anchor = fitted(seen, drifter), int(drifter[first])
    steps, least = fit.drifts - fit.drifts[anchor], _least(fit, anchor)
    detected = np.abs(steps) > least
    sure = detected | (least < SMALL_DRIFT)
    others = present[drifter[present] != anchor]
    drifts[others], known[others] = (steps * detected)[drifter[others]], sure[drifter[others]]
    # Whoever drifts with the first is known with it, and it is where anybody's difference is.
    known[present[drifter[present] == anchor]] |= bool(known[others].any())
    known[first] = bool(np.delete(known, first).any())
    return drifts, known


def _looked_at_together(
    seen: Observations, present: Ints, drifter: Ints
) -> list[tuple[Ints, Ints]]:
    """Clocks (ascending) and their rows: all at once, or of many clocks those of each host."""
    if len(present) <= MANY:
        return [(present, np.arange(len(seen.clock)))]
    parts = []
    for codes in (drifter[present], drifter[seen.clock]):
        order = np.argsort(codes, kind="stable")
        parts.append(np.split(order, np.flatnonzero(np.diff(codes[order])) + 1))
    return [(present[members], rows) for members, rows in zip(*parts, strict=True)]


def _without_odd(fit: Fit, drifter: Ints, members: Ints) -> Ints:
    """What drifts as one: the clocks of a host, without those that drift differently.

    `fit` is that of the members, by their places.
    """
    drifters = drifter.copy()
    for host in np.unique(drifter[members]).tolist():
        for odd in _odd(fit, np.flatnonzero(drifter[members] == host)):
            drifters[members[odd]] = drifters.max() + 1
    return drifters


def _alone(seen: Observations, members: Ints, rows: Ints) -> Fit | None:
    """The fit in which each of some clocks drifts by itself, by what they shared of their rows."""
    if len(rows) < len(seen.clock):
        number = np.unique(seen.instance[rows], return_inverse=True)[1]
        rows = rows[np.bincount(number)[number] > 1]
    if len(members) < 2 or len(rows) < 4 * len(members):
        return None
    alone = Observations(
        np.searchsorted(members, seen.clock[rows]),
        np.unique(seen.instance[rows], return_inverse=True)[1],
        seen.times[rows],
        seen.errors[rows],
        seen.length_class[rows],
        len(members),
    )
    return fitted(alone, np.arange(len(members)))


def _odd(fit: Fit, members: Ints) -> list[int]:
    """The members whose drift is not that of the others, the oddest first."""
    left = members.tolist()
    odd = []
    while len(left) > 1:
        sums = np.full((len(left), len(left)), -1.0 / (len(left) - 1))
        np.fill_diagonal(sums, 1.0)
        steps = sums @ fit.drifts[left]
        errors = np.sqrt(np.diag(sums @ fit.covariance[np.ix_(left, left)] @ sums.T))
        ratio = np.abs(steps) / errors
        if ratio.max() <= _threshold(APART, fit):
            break
        odd.append(left.pop(int(np.argmax(ratio))))
    return odd


def _least(fit: Fit, anchor: int) -> Floats:
    """The least drift against the anchor's that would count, by drifter."""
    variances = np.diag(fit.covariance)
    squares = np.maximum(variances + variances[anchor] - 2 * fit.covariance[anchor], 0.0)
    least: Floats = _threshold(SIGNIFICANT, fit) * np.sqrt(squares)
    return least


def _threshold(errors: float, fit: Fit) -> float:
    """So many standard errors, and more where the scatter itself is hardly known (Student)."""
    return errors * (1.0 + errors / fit.freedom)
