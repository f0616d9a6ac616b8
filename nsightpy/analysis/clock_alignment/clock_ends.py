"""Ends of one clock's collectives, a line between two clocks, and how well ends agree with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.collectives.log import Codes
from nsightpy.frames import Floats, Ints

# Ends so far apart agree half.
TIGHT_NS = 2_000.0
_KEY_BITS = 62


@dataclass(frozen=True)
class Ends:
    """The ends of one clock's synchronising collectives, ascending, and their signatures.

    `signatures` are codes of communicator and operation, the same on all ranks; `lanes` distinguish
    what may belong to different groups: -1 where the communicator is known, else streams of
    the clock.
    """

    times: Ints
    signatures: Codes
    lanes: Codes

    def take(self, rows: NDArray[np.bool_] | slice) -> Ends:
        return Ends(self.times[rows], self.signatures[rows], self.lanes[rows])

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def kinds(self) -> Codes:
        """The signatures that there are, ascending."""
        return np.unique(self.signatures)

    @cached_property
    def apart(self) -> list[Ends]:
        """The ends of each lane that has two or more."""
        lanes, sizes = np.unique(self.lanes, return_counts=True)
        return [self.take(self.lanes == lane) for lane in lanes[sizes >= 2].tolist()]

    @cached_property
    def finder(self) -> Nearest:
        """Finds the nearest of them."""
        return Nearest(self)

    def sharing(self, other: Ends) -> Ends:
        """Those whose signature another clock has, too."""
        if np.array_equal(self.kinds, other.kinds):
            return self
        return self.take(np.isin(self.signatures, other.kinds))


@dataclass(frozen=True, slots=True)
class Line:
    """Clock b minus clock a: offset_ns at time center_ns of clock a, growing by drift (ns per ns).

    `score` is the share of a's collectives that agree, as a weight from 0 to 1, `support` their
    number over all lanes that agree, `scatter_ns` how far those that do are apart (median).
    """

    offset_ns: float
    drift: float
    center_ns: int
    score: float = 0.0
    support: float = 0.0
    scatter_ns: float = 0.0

    def at(self, times: Ints) -> Floats:
        """The offset at times of clock a."""
        return (self.offset_ns + self.drift * (times - self.center_ns)).astype(np.float64)


class Nearest:
    """Finds, for times of one signature, the nearest end of clock b of the same one.

    All are searched at once: a key holds the signature's place above the bits of the time.
    """

    def __init__(self, b: Ends) -> None:
        order = np.argsort(b.signatures, kind="stable")
        self._signatures, first, counts = np.unique(
            b.signatures[order], return_index=True, return_counts=True
        )
        self._first, self._last = first, first + counts - 1
        self._ends = b.times[order]
        self._low, self._high = int(b.times[0]), int(b.times[-1])
        self._bits = (self._high - self._low).bit_length()
        # of very long captures with very many signatures the last bits are not needed
        self._spared = max(0, self._bits + len(first).bit_length() - _KEY_BITS)
        self._keys = self._key(np.repeat(np.arange(len(first)), counts), self._ends)

    def _key(self, code: Ints, times: Ints) -> Ints:
        since = np.minimum(np.maximum(times, self._low), self._high) - self._low
        return (code << (self._bits - self._spared)) + (since >> self._spared)

    def distances(self, a: Ends, line: Line) -> Floats:
        """Nearest end minus where the line says it should be, in ns; infinite without any."""
        return self.around(a, a.times + line.at(a.times))

    def of_lines(self, a: Ends, lines: Sequence[Line]) -> Floats:
        """The same of several lines, a row each."""
        wanted = [a.times + line.at(a.times) for line in lines]
        return self.around(a, np.asarray(wanted).reshape(len(lines), len(a)))

    def around(self, a: Ends, wanted: Floats) -> Floats:
        """Nearest end minus wanted times; those of a's collectives along the last axis."""
        code = np.minimum(
            np.searchsorted(self._signatures, a.signatures), len(self._signatures) - 1
        )
        place = np.searchsorted(self._keys, self._key(code, np.ceil(wanted).astype(np.int64)))
        after = self._ends[np.minimum(place, self._last[code])] - wanted
        before = self._ends[np.maximum(place - 1, self._first[code])] - wanted
        nearest = np.where(np.abs(before) < np.abs(after), before, after)
        return np.where(self._signatures[code] == a.signatures, nearest, np.inf)


def median(values: Floats | Ints) -> float:
    """The median of one row of values, as numpy's: what it does besides takes longer than this."""
    high = len(values) // 2
    low = (len(values) - 1) // 2
    parted = np.partition(values, (low, high))
    return float((parted[low] + parted[high]) / 2)


def agreement(distances: Floats, tight_ns: float = TIGHT_NS) -> Floats:
    """The share of distances that are small, as a weight: half at tight_ns."""
    weight: Floats = np.mean(agreed(distances, tight_ns), axis=-1)
    return weight


def agreed(distances: Floats, tight_ns: float = TIGHT_NS) -> Floats:
    """Whether each distance is small, as a weight: half at tight_ns."""
    weights: Floats = 1.0 / (1.0 + (distances / tight_ns) ** 2)
    return weights
