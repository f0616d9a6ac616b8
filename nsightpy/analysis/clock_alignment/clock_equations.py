"""What the ends of all instances say of offsets and drifts, as one set of linear equations.

Each end = its clock's offset + drift x time + the instance's common end + jitter. The common ends
are taken out, so as many unknowns are left as clocks and drifts, and groups that overlap only in
part hold the whole graph together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nsightpy.analysis.collectives.log import Codes
from nsightpy.frames import Floats, Ints

# Instances whose equations are made at once.
CHUNK = 256
# What nothing ties is held by so little that it does no harm elsewhere.
HELD = 1e-7
# So many unknowns are found at once: the matrix of more grows faster than what is known of them.
FEW = 400
STEPS, CLOSE = 200, 1e-9


@dataclass(frozen=True, slots=True)
class Observations:
    """Rows (clock, instance, time, end) of synchronising collectives; numbers from 0 on, ns.

    Numbers are int64, as what sums by them needs them.
    `errors` are ends minus anything common to a whole instance, and `times` are common to it as
    well: an own time would carry the noise that is to be explained. Rows of one
    `length_class` scatter alike: ends of short collectives agree better than those of long ones.
    """

    clock: Ints
    instance: Ints
    times: Floats
    errors: Floats
    length_class: Codes
    clocks: int

    @property
    def scale_ns(self) -> float:
        """The farthest time from 0."""
        return float(np.max(np.abs(self.times), initial=0.0)) or 1.0

    def shares(self, weights: Floats) -> Floats:
        """The share of each row in the weight of its instance."""
        shares: Floats = weights / np.bincount(self.instance, weights)[self.instance]
        return shares

    def centred(self, values: Floats, weights: Floats) -> Floats:
        """Values minus the weighted mean of their instance."""
        whole = np.bincount(self.instance, weights)
        mean = np.bincount(self.instance, weights * values) / np.maximum(whole, 1e-300)
        centred: Floats = values - mean[self.instance]
        return centred


def length_classes_of(durations: Ints, instance: Ints) -> Codes:
    """How long the shortest participant of each row's instance was inside, in powers of two."""
    shortest = np.full(int(instance.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(shortest, instance, np.maximum(durations, 1))
    classes: Codes = np.log2(shortest).astype(np.int32)[instance]
    return classes


def against_median(values: Floats, instance: Ints) -> Floats:
    """Values minus the median of their instance."""
    order = np.lexsort((values, instance))
    counts = np.bincount(instance)
    first = np.cumsum(counts) - counts
    ascending = values[order]
    low = ascending[np.minimum(first + (counts - 1) // 2, len(values) - 1)]
    high = ascending[np.minimum(first + counts // 2, len(values) - 1)]
    differences: Floats = values - ((low + high) / 2)[instance]
    return differences


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Rows of instances that are alike, and where each goes in a table instance x unknown."""

    rows: Ints
    place: Ints
    columns: Ints

    def products(self, shares: Floats) -> Floats:
        """What each two columns have in common, summed over the instances."""
        cells = CHUNK * len(self.columns)
        part = np.bincount(self.place, shares, minlength=cells).astype(np.float64)
        table = part.reshape(CHUNK, len(self.columns))
        products: Floats = table.T @ table
        return products


class Equations:
    """The normal equations of a fit: offsets of all clocks, then drifts in units of the scale.

    Clock c drifts with drifter[c] (numbers from 0 on); nobody drifts where that is empty.
    """

    def __init__(self, seen: Observations, drifter: Ints) -> None:
        self.seen, self.scale = seen, seen.scale_ns
        self.unknowns = seen.clocks + (int(drifter.max()) + 1 if len(drifter) else 0)
        self._tilts: Ints = seen.clocks + drifter
        self._times = seen.times / self.scale
        self._chunks = list(self._chunked()) if self.unknowns <= FEW else []

    def shown(self, unknowns: Floats) -> Floats:
        """What the unknowns make of every row, ns."""
        ahead = unknowns[self.seen.clock]
        if not len(self._tilts):
            return ahead
        tilted: Floats = ahead + unknowns[self._tilts[self.seen.clock]] * self._times
        return tilted

    def solved(self, weights: Floats, near: Floats | None = None) -> Floats:
        """The unknowns that explain the errors best with these weights of the rows.

        Few are found at once, many step by step from `near` (conjugate gradients).
        """
        wanted = self._projected(weights * self.seen.centred(self.seen.errors, weights))
        if self.unknowns <= FEW:
            return np.linalg.solve(self._matrix(weights), wanted).astype(np.float64)
        alone = self._by_clock(weights)
        if len(self._tilts):
            squares = self._by_clock(weights * self._times**2)[: self.seen.clocks]
            np.add.at(alone, self._tilts, squares)
        held = HELD * alone.max()
        alone += held
        return _conjugate_gradients(
            lambda unknowns: self._applied(unknowns, weights) + held * unknowns,
            wanted,
            alone,
            np.zeros(self.unknowns) if near is None else near,
        )

    def covariance(self, weights: Floats) -> Floats:
        """The covariance of the drifts where a weight is one over a square error.

        Of many clocks as if each clock's offset were that of its mean time, whatever the others'.
        """
        if not len(self._tilts):
            return np.empty((0, 0))
        if self.unknowns <= FEW:
            drifts = slice(self.seen.clocks, None)
            whole = np.linalg.inv(self._matrix(weights)).astype(np.float64)
            return whole[drifts, drifts] / self.scale**2
        drifter = (self._tilts - self.seen.clocks)[self.seen.clock]
        mean = self._by_clock(weights * self._times) / np.maximum(self._by_clock(weights), 1e-300)
        times = self._times - mean[self.seen.clock]
        count = int(drifter.max()) + 1
        squares = np.bincount(drifter, weights * times**2, minlength=count)
        matrix: Floats = np.diag(squares.astype(np.float64))
        heavy = np.bincount(self.seen.instance, weights)
        shares = weights * times / np.sqrt(heavy[self.seen.instance])
        # each instance and drifter once: most instances have few, or one, and need no table
        cells, cell = np.unique(self.seen.instance * count + drifter, return_inverse=True)
        sums = np.bincount(cell, shares).astype(np.float64)
        instance, drifter = np.divmod(cells, count)
        several = np.bincount(instance)[instance] > 1
        alone = ~several
        squares = np.bincount(drifter[alone], sums[alone] ** 2, minlength=count)
        matrix.flat[:: count + 1] -= squares
        sums, drifter = sums[several], drifter[several]
        instance = np.unique(instance[several], return_inverse=True)[1]
        edges = np.searchsorted(instance, np.arange(0, instance.max(initial=-1) + 1 + CHUNK, CHUNK))
        for first, last in pairwise(edges.tolist()):
            places = instance[first:last] % CHUNK * count + drifter[first:last]
            table = np.bincount(places, sums[first:last], minlength=CHUNK * count)
            table = table.reshape(CHUNK, count)
            matrix -= table.T @ table
        matrix.flat[:: count + 1] += HELD * matrix.diagonal().max()
        return np.linalg.inv(matrix).astype(np.float64) / self.scale**2

    def _applied(self, unknowns: Floats, weights: Floats) -> Floats:
        """The equations' left side."""
        return self._projected(weights * self.seen.centred(self.shown(unknowns), weights))

    def _projected(self, rows: Floats) -> Floats:
        """The sums of some rows by unknown."""
        sums = self._by_clock(rows)
        if len(self._tilts):
            np.add.at(sums, self._tilts, self._by_clock(rows * self._times)[: self.seen.clocks])
        return sums

    def _by_clock(self, rows: Floats) -> Floats:
        return np.bincount(self.seen.clock, rows, minlength=self.unknowns).astype(np.float64)

    def _matrix(self, weights: Floats) -> Floats:
        matrix = self._alone(weights)
        whole = 1.0 / np.sqrt(np.bincount(self.seen.instance, weights))
        shares = weights * whole[self.seen.instance]
        for chunk in self._chunks:
            table = shares[chunk.rows]
            if len(self._tilts):
                table = np.concatenate([table, table * self._times[chunk.rows]])
            matrix[np.ix_(chunk.columns, chunk.columns)] -= chunk.products(table)
        matrix.flat[:: self.unknowns + 1] += HELD * matrix.diagonal().max()
        return matrix

    def _alone(self, weights: Floats) -> Floats:
        """The equations as if every instance's common end were known."""
        matrix = np.diag(self._by_clock(weights))
        if len(self._tilts):
            clocks = np.arange(self.seen.clocks)
            tilted = self._by_clock(weights * self._times)[clocks]
            matrix[clocks, self._tilts] = matrix[self._tilts, clocks] = tilted
            square = self._by_clock(weights * self._times**2)[clocks]
            np.add.at(matrix, (self._tilts, self._tilts), square)
        return matrix

    def _chunked(self) -> Iterator[_Chunk]:
        seen = self.seen
        count = int(seen.instance.max()) + 1
        low, high = np.full(count, seen.clocks), np.full(count, -1)
        np.minimum.at(low, seen.instance, seen.clock)
        np.maximum.at(high, seen.instance, seen.clock)
        number = np.empty(count, dtype=np.int64)
        number[np.lexsort((high, low))] = np.arange(count)
        instance = number[seen.instance]
        order = np.argsort(instance, kind="stable")
        edges = np.searchsorted(instance[order], np.arange(0, count + CHUNK, CHUNK))
        for first, last in pairwise(edges.tolist()):
            rows = order[first:last]
            line, column = instance[rows] % CHUNK, seen.clock[rows].astype(np.int64)
            if len(self._tilts):
                line = np.concatenate([line, line])
                column = np.concatenate([column, self._tilts[column]])
            columns, place = np.unique(column, return_inverse=True)
            yield _Chunk(rows, line * len(columns) + place, columns)


def _conjugate_gradients(
    applied: Callable[[Floats], Floats], wanted: Floats, alone: Floats, unknowns: Floats
) -> Floats:
    """What solves applied(x) = wanted, from `unknowns` on; `alone` is about the diagonal."""
    left = wanted - applied(unknowns)
    step = left / alone
    size = float(left @ step)
    enough = CLOSE**2 * float(wanted @ (wanted / alone))
    for _ in range(STEPS):
        if size <= enough:
            break
        moved = applied(step)
        far = size / float(step @ moved)
        unknowns = unknowns + far * step
        left = left - far * moved
        size, before = float(left @ (left / alone)), size
        step = left / alone + size / before * step
    return unknowns
