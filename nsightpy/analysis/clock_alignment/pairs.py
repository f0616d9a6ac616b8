"""How far two clocks are apart, from when the collectives that they share ended.

Ranks leave a synchronising collective together. Where communicator and sequence number say which
ends are of one collective, the offset is the median of their differences. Else no two intervals
between collectives are equal to a microsecond: the true offset is the one for which most
differences of ends vote, and at which they agree most closely.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.collectives.lanes import medians
from nsightpy.analysis.collectives.log import UNKNOWN, Codes
from nsightpy.analysis.collectives.matching import nearest
from nsightpy.analysis.collectives.thresholds import (
    ENOUGH,
    FAR_NS,
    LEAST_SHARED,
    MOST_DRIFT,
    PLENTY,
    REACH_NS,
    SIGNIFICANT,
    SLOPE,
    TIGHT_NS,
    TRIES,
    UNLIKE,
    VOTE_NS,
)
from nsightpy.analysis.intervals import consecutive
from nsightpy.analysis.thresholds import MOST, MOSTLY
from nsightpy.frames import Floats, Ints

ANYWHERE_NS = 1 << 62
# In this time clocks do not drift out of reach.
BLOCK_NS = round(REACH_NS / MOST_DRIFT)
# Offsets without meaning, at which ends agree by chance.
PROBES_NS = FAR_NS * (np.arange(1, 7) * 0.618 % 1.0 - 0.5)


@dataclass(frozen=True)
class Ends:
    """The ends of one clock's synchronising collectives, ascending, and what they are.

    `signatures` are codes of communicator and operation, the same on all ranks; `lanes` distinguish
    what may belong to different groups: negative ones are known communicators, others streams
    of the clock. `exact` numbers the collective among those of all ranks, -1 where nothing says it.
    """

    times: Ints
    signatures: Codes
    lanes: Codes
    exact: Ints

    def take(self, rows: NDArray[np.bool_] | slice | Ints) -> Ends:
        return Ends(self.times[rows], self.signatures[rows], self.lanes[rows], self.exact[rows])

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def by_lane(self) -> list[Ends]:
        """The ends of each lane, those of the longest first."""
        lanes = [self.take(self.lanes == lane) for lane in np.unique(self.lanes).tolist()]
        return sorted(lanes, key=lambda lane: -len(lane))

    @cached_property
    def by_signature(self) -> dict[int, Ints]:
        """The ends of each signature."""
        return {
            code: self.times[self.signatures == code]
            for code in np.unique(self.signatures).tolist()
        }

    def distances(self, a: Ends, wanted: Floats) -> Floats:
        """The nearest end of its signature minus the time wanted of each of a's (last axis)."""
        distances = np.full(np.shape(wanted), np.inf)
        for code in a.by_signature.keys() & self.by_signature.keys():
            rows, own = a.signatures == code, self.by_signature[code]
            aims = wanted[..., rows]
            distances[..., rows] = own[nearest(own, aims)] - aims
        return distances


@dataclass(frozen=True, slots=True)
class Line:
    """Clock b minus clock a: offset_ns at time center_ns of clock a, growing by drift (ns per ns).

    `score` is the share of a's collectives that agree, as a weight from 0 to 1, `support` their
    number (infinite where they are numbered alike).
    """

    offset_ns: float
    drift: float
    center_ns: int
    score: float = 0.0
    support: float = 0.0

    @property
    def sure(self) -> bool:
        """Whether it is right beyond doubt."""
        return self.score >= MOSTLY and self.support >= PLENTY

    def onto(self, times: Ints) -> Floats:
        """Times of clock a on clock b."""
        ahead = self.offset_ns + self.drift * (times - self.center_ns)
        return (times + ahead).astype(np.float64)

    def corrected(self, times: Ints, distances: Floats) -> Line:
        """The line moved by how far ends of clock b are from times of clock a, if near."""
        steps, drifts = _corrections(distances[None], times - self.center_ns, self.drift)
        offset, drift = self.offset_ns + float(steps[0]), self.drift + float(drifts[0])
        return replace(self, offset_ns=offset, drift=drift)


def offset_between(a: Ends, b: Ends, guess_ns: float = 0.0) -> Line | None:
    """The line from clock a to clock b; None where the ends do not say, or not clearly.

    Of lines that fit equally well the one nearest to the guess is taken, if it is by far.
    """
    line = _exact_line(a, b)
    if line is not None:
        return line
    guess = round(guess_ns)
    moved = replace(a, times=a.times + guess)
    for window in (FAR_NS, ANYWHERE_NS):
        lines = []
        for lane, other in product(moved.by_lane, b.by_lane):
            if not len(lane) < UNLIKE * len(other) < UNLIKE**2 * len(lane):
                continue
            line = _lane_line(lane, other, window)
            if line is not None:
                lines.append((line, lane))
                if line.sure:
                    break
        if lines:
            line, lane = max(lines, key=lambda each: (each[0].sure, each[0].support))
            line = _grown(lane, b, line)
            return replace(line, offset_ns=line.offset_ns + guess, center_ns=line.center_ns - guess)
    return None


def _exact_line(a: Ends, b: Ends) -> Line | None:
    """The line through the collectives that both clocks number alike: medians of differences."""
    a, b = a.take(a.exact != UNKNOWN), b.take(b.exact != UNKNOWN)
    _, own_rows, other_rows = np.intersect1d(a.exact, b.exact, return_indices=True)
    if len(own_rows) < LEAST_SHARED:
        return None
    order = np.argsort(a.times[own_rows])
    times, ends = a.times[own_rows][order], b.times[other_rows][order]
    line = Line(float(np.median(ends - times)), 0.0, int(times[len(times) // 2]), 1.0, np.inf)
    return line.corrected(times, ends - line.onto(times))


def _lane_line(a: Ends, b: Ends, window: int) -> Line | None:
    """The line through the ends of one lane, at most `window` away: the one that most differences
    vote for, if chance does not do as well."""
    shared = a.take((a.times >= b.times[0] - window) & (a.times <= b.times[-1] + window))
    first = max(0, len(shared) // 2 - ENOUGH // 2)
    block = shared.take(slice(first, first + ENOUGH))
    if min(len(block), len(b)) < LEAST_SHARED:
        return None
    soon = int(np.searchsorted(block.times, block.times[0] + BLOCK_NS))
    block = block.take(slice(0, max(soon, PLENTY)))
    center = int(block.times[len(block) // 2])
    since = block.times - center
    offsets = np.append(_candidates(block, b, window), 0.0)
    drifts = np.zeros(len(offsets))
    for _ in range(3):
        aim = block.times + offsets[:, None] + drifts[:, None] * since
        steps, more = _corrections(b.distances(block, aim), since, drifts)
        offsets, drifts = offsets + steps, drifts + more
    aim = block.times + offsets[:, None] + drifts[:, None] * since
    agreed = _agreed(b.distances(block, aim))
    winner = _clear_winner(offsets, agreed)
    if winner is None:
        return None
    score, support = float(agreed[winner].mean()), float(agreed[winner].sum())
    chance = _agreed(b.distances(block, block.times + PROBES_NS[:, None])).mean(axis=1)
    least = MOST + float(np.median(chance))
    if a.lanes[0] >= 0:
        # Collectives come in runs that are alike everywhere, so few of them may agree by chance if
        # their group is not known: twice the standard error of a share is added.
        few = min(MOST + len(block) ** -0.5, MOSTLY)
        least = max(least, few if support > LEAST_SHARED else np.inf)
    line = Line(float(offsets[winner]), float(drifts[winner]), center, score, support)
    return line if score >= least else None


def _candidates(block: Ends, b: Ends, window: int) -> Floats:
    """Offsets worth a closer look: those for which most differences of ends vote."""
    differences = np.sort(np.concatenate([*_differences(block, b, window)]))
    offsets = []
    for shift in (0, VOTE_NS // 2):
        votes_of = (differences + shift) // VOTE_NS
        first = np.flatnonzero(np.diff(votes_of, prepend=votes_of[:1] - 1))
        votes = np.diff(first, append=len(votes_of))
        most = np.argsort(-votes, kind="stable")[:TRIES]
        offsets.append(differences[first[most] + votes[most] // 2])
    return np.concatenate(offsets).astype(np.float64)


def _differences(block: Ends, b: Ends, window: int) -> Iterator[Ints]:
    """b's ends minus a's, for all pairs that look alike and lie within the window."""
    yield np.empty(0, dtype=np.int64)
    for code, own in block.by_signature.items():
        others = b.by_signature.get(code, own[:0])
        low = np.searchsorted(others, own - window)
        counts = np.searchsorted(others, own + window) - low
        every = 1 + int(counts.sum()) // (ENOUGH * ENOUGH)
        low, counts = low[::every], counts[::every]
        yield others[consecutive(low, counts)] - np.repeat(own[::every], counts)


def _clear_winner(offsets: Floats, agreed: Floats) -> int | None:
    """The offset at which most ends agree; of equals the one nearest to the guess, if by far.

    Not equal is what fewer ends speak for, by those that only one of two explains: an offset that
    is shifted by one of many even intervals misses the last collective of each run.
    """
    scores = agreed.mean(axis=1)
    best = int(np.argmax(scores))
    steps = agreed[best] - agreed
    decided = steps.sum(axis=1) > SIGNIFICANT * np.sqrt(np.sum(steps**2, axis=1))
    equals = np.flatnonzero((scores > MOSTLY * scores[best]) & ~decided)
    equals = np.append(equals[np.abs(offsets[equals] - offsets[best]) > 4 * TIGHT_NS], best)
    nearest = int(equals[np.argmin(np.abs(offsets[equals]))])
    others = equals[np.abs(offsets[equals] - offsets[nearest]) > 4 * TIGHT_NS]
    clear = (np.abs(offsets[others]) >= 3 * abs(offsets[nearest])).all()
    return nearest if clear else None


def _grown(a: Ends, b: Ends, line: Line) -> Line:
    """The line carried from the block to the whole capture, in steps that drift cannot outrun."""
    center, reach = int(np.searchsorted(a.times, line.center_ns)), ENOUGH // 2
    while True:
        part = a.take(slice(max(0, center - reach), center + reach, max(1, reach // ENOUGH)))
        line = line.corrected(part.times, b.distances(part, line.onto(part.times)))
        if reach >= len(a):
            return line
        reach *= 2


def _corrections(distances: Floats, since: Ints, drifts: Floats | float) -> tuple[Floats, Floats]:
    """What is to be added to offset and drift of each line (a row each): medians of what is near,
    and a slope from the first to the last third where it stands out."""
    distances = np.where(np.abs(distances) < REACH_NS, distances, np.nan)
    third = max(distances.shape[1] // 3, 1)
    early, late = distances[:, :third], distances[:, -third:]
    last = medians(late)
    rise = last - medians(early)
    clear = np.abs(rise) > SLOPE * medians(np.abs(late - last[:, None])) / third**0.5
    span = float(np.median(since[-third:]) - np.median(since[:third])) or np.inf
    clear &= (third >= LEAST_SHARED) & (np.abs(drifts + rise / span) <= MOST_DRIFT)
    more = np.where(clear, rise / span, 0.0)
    return np.nan_to_num(medians(distances - more[:, None] * since)), more


def _agreed(distances: Floats) -> Floats:
    """Whether each distance is small, as a weight: half at TIGHT_NS."""
    weights: Floats = 1.0 / (1.0 + (distances / TIGHT_NS) ** 2)
    return weights
