"""How far two clocks are apart, from when the collectives that they share ended.

Two ranks leave a synchronising collective together, and no two intervals between collectives are
equal to a microsecond: the true offset is the one at which nearly all ends agree that well. It is
found by vote over the differences of ends, so missing instances, other starts of the capture and
unequal counts do no harm; what is nearly periodic is distinguished from what fits by how tightly
it fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from nsightpy.analysis.clock_alignment.clock_ends import (
    TIGHT_NS,
    Ends,
    Line,
    Nearest,
    agreed,
    agreement,
    median,
)
from nsightpy.analysis.intervals import consecutive
from nsightpy.frames import Floats, Ints

WINDOWS_NS = (200_000_000, 10_000_000_000, None)
BINS_NS = (16_000, 256_000)
REACH_NS = 60_000
# A block is long enough to be unlike any other, and too short for drift to blur it.
BLOCK, LEAST_BLOCK, BLOCK_NS = 400, 24, 2_000_000_000
CANDIDATES = 12
# So many of them, the best at first sight, are looked at closely.
FINALISTS, FIRST_SIGHT, USUAL_DRIFT = 5, 0.8, 2e-5
# In longer stretches every second collective, or fewer, is enough.
GROWN = 2_000
MOST_PAIRS = 200_000
# What is known to be one group needs less agreement than a stream that may serve several.
LEAST_SCORE, LEAST_SCORE_OF_STREAM = 0.15, 0.45
# So large a share agrees by chance where a rhythm is nearly the same, give or take three errors of
# a share among half as many independent ones; what is above SURE_OF_FEW always counts.
BY_CHANCE, CERTAIN, SURE_OF_FEW = 0.3, 1.94, 0.75
LEAST_SHARED = 4
LEAST_SUPPORT = 4.2
LEAST_FOR_DRIFT = 12
# A guess that fits so many collectives is not looked for elsewhere; what fits as well beside it is
# looked for so far away: collectives that follow each other evenly fit when shifted by one, too.
SURE_TIE, SURE_SUPPORT, BESIDE_NS = 0.8, 20.0, 5_000_000
# Lanes of one group are not so many times as long as each other.
UNLIKE = 3
MOST_DRIFT = 1e-4
# Lines with nearly the score of the best, and not the same one, are rivals, unless what only one
# of both explains speaks for the best by so many standard errors.
AMBIGUOUS, SAME_NS, CLEAR = 0.85, 4 * TIGHT_NS, 3.0
SURE = 0.6
KNOWN_GROUP = -1
_PROBES_NS = np.asarray(
    (-83_123_457.0, -31_415_927.0, -7_654_321.0, 5_555_557.0, 27_182_819.0, 71_234_567.0)
)


def offset_between(a: Ends, b: Ends, guesses: Sequence[float] = (0.0,)) -> Line | None:
    """The line from clock a to clock b; None where the ends do not say, or not clearly.

    A guess (ns) that fits beyond doubt is taken without a search; of lines that fit equally well
    the one nearest to the last guess is taken, if it is by far.
    """
    a, b = a.sharing(b), b.sharing(a)
    if not len(a):
        return None
    best: tuple[Line, Ends] | None = None
    for search in (_guessed_offset, _lane_offset):
        for lane, other in product(a.apart, b.apart):
            if len(lane) < LEAST_SHARED or not len(lane) / UNLIKE < len(other) < len(lane) * UNLIKE:
                continue
            line = search(lane, other, other.finder, guesses)
            if line is not None:
                support = sum(_support(part, b.finder, line) for part in a.apart)
                if best is None or support > best[0].support:
                    best = replace(line, support=support), lane
        if best is not None and best[0].score >= SURE_TIE and best[0].support >= SURE_SUPPORT:
            break
    if best is None or (best[1].lanes[0] != KNOWN_GROUP and not _beyond_chance(*best)):
        return None
    return _grown(best[1], b.finder, best[0])


def _beyond_chance(line: Line, lane: Ends) -> bool:
    """Whether a lane whose group is not known agrees with a line better than rhythm explains.

    Collectives come in runs that are alike everywhere, so few of them may agree by chance.
    """
    least = min(BY_CHANCE + CERTAIN / len(lane) ** 0.5, SURE_OF_FEW)
    return line.support >= LEAST_SUPPORT and line.score >= max(least, LEAST_SCORE_OF_STREAM)


def _support(lane: Ends, finder: Nearest, line: Line) -> float:
    """How many collectives of a lane a line explains, if it explains the lane at all."""
    score = _score(lane.take(slice(None, None, max(1, len(lane) // GROWN))), finder, line)
    return score * len(lane) if score >= LEAST_SCORE_OF_STREAM else 0.0


def _least_score(lane: Ends) -> float:
    return LEAST_SCORE if int(lane.lanes[0]) == KNOWN_GROUP else LEAST_SCORE_OF_STREAM


def _windows(a: Ends, b: Ends) -> list[int | None]:
    """The windows that differ from each other for two captures of this length."""
    reach = max(int(b.times[-1] - a.times[0]), int(a.times[-1] - b.times[0]))
    shorter: list[int | None] = [
        window for window in WINDOWS_NS if window is not None and window < reach
    ]
    return [*shorter, None]


def _guessed_offset(a: Ends, b: Ends, finder: Nearest, guesses: Sequence[float]) -> Line | None:
    """The line of a guess that fits the ends of one lane, and better than what is beside it."""
    for window in _windows(a, b):
        block = _block(a, b, window)
        if len(block) < LEAST_SHARED:
            continue
        lines = _best_lines(block, finder, guesses, SURE)
        least = max(SURE, _least_score(a) + _background(block, finder))
        if lines and lines[0].score >= least:
            beside = _beside(block, b, lines[0].offset_ns)
            lines = _best_lines(block, finder, [lines[0].offset_ns, *beside], SURE)
            return _clear_winner(lines, least, _Evidence(block, finder, guesses[-1]))
    return None


def _beside(block: Ends, b: Ends, offset: float) -> list[float]:
    """Offsets near another one at which ends agree as well."""
    moved = replace(block, times=block.times + round(offset))
    return [offset + step for step in _candidates(moved, b, BESIDE_NS)]


def _lane_offset(a: Ends, b: Ends, finder: Nearest, guesses: Sequence[float]) -> Line | None:
    """The line through the ends of one lane."""
    for window in _windows(a, b):
        block = _block(a, b, window)
        if len(block) < LEAST_SHARED:
            continue
        offsets = [*guesses, *_candidates(block, b, window)]
        lines = _best_lines(block, finder, offsets, _least_score(a))
        if not lines or lines[0].score < _least_score(a):
            continue
        least = _least_score(a) + _background(block, finder)
        clear = _clear_winner(lines, least, _Evidence(block, finder, guesses[-1]))
        if clear is not None:
            return clear
    return None


def _block(a: Ends, b: Ends, window: int | None) -> Ends:
    """Consecutive collectives of clock a from the middle of what both captured."""
    reach = window or 0
    inside = (a.times >= b.times[0] - reach) & (a.times <= b.times[-1] + reach)
    shared = a if window is None else a.take(inside)
    size = BLOCK if window is not None else max(LEAST_SHARED, MOST_PAIRS // len(b))
    first = max(0, len(shared) // 2 - size // 2)
    block = shared.take(slice(first, first + size))
    if len(block) <= LEAST_BLOCK:
        return block
    soon = int(np.searchsorted(block.times, block.times[0] + BLOCK_NS))
    return block.take(slice(0, max(soon, LEAST_BLOCK)))


def _candidates(block: Ends, b: Ends, window: int | None) -> list[float]:
    """Offsets worth a closer look: those at which most differences of ends agree."""
    differences = np.sort(np.concatenate([*_differences(block, b, window)]))
    offsets = []
    for width, shift in ((wide, shift) for wide in BINS_NS for shift in (0, wide // 2)):
        bins = (differences + shift) // width
        edges = np.flatnonzero(np.diff(bins, prepend=bins[:1] - 1))
        votes = np.diff(edges, append=len(bins))
        best = np.argsort(-votes, kind="stable")[:CANDIDATES]
        first, count = edges[best], votes[best]
        offsets.append(
            differences[first + (count - 1) // 2] / 2 + differences[first + count // 2] / 2
        )
    _, first = np.unique(np.concatenate(offsets) // BINS_NS[0], return_index=True)
    kept: list[float] = np.concatenate(offsets)[np.sort(first)].tolist()
    return kept


def _differences(block: Ends, b: Ends, window: int | None) -> Iterator[Ints]:
    """b's ends minus a's, for all pairs that look alike and lie within the window."""
    yield np.empty(0, dtype=np.int64)
    for code in np.unique(block.signatures).tolist():
        mine, theirs = block.times[block.signatures == code], b.times[b.signatures == code]
        if window is None:
            yield (theirs[None, :] - mine[:, None]).ravel()
            continue
        low = np.searchsorted(theirs, mine - window)
        counts = np.searchsorted(theirs, mine + window) - low
        while counts.sum() > MOST_PAIRS:
            mine, low, counts = mine[::2], low[::2], counts[::2]
        yield theirs[consecutive(low, counts)] - np.repeat(mine, counts)


def _best_lines(
    block: Ends, finder: Nearest, offsets: Sequence[float], least: float = 0.0
) -> list[Line]:
    """Lines through some offsets, the best of a block first; none that falls short of `least`.

    All are seen at first sight, with what clocks usually drift as their error; few closely.
    """
    rough = np.asarray(offsets, dtype=np.float64)
    distances = finder.around(block, block.times + rough[:, None])
    near = np.abs(distances) < REACH_NS
    ordered = np.sort(np.where(near, distances, np.inf), axis=1)
    middle = ordered[np.arange(len(rough)), np.maximum(near.sum(axis=1) - 1, 0) // 2]
    middle = np.where(np.isfinite(middle), middle, 0.0)
    blur = USUAL_DRIFT * float(block.times[-1] - block.times[0]) / 2
    scores = agreement(distances - middle[:, None], TIGHT_NS + blur)
    best = np.argsort(-scores, kind="stable")[:FINALISTS]
    best = best[scores[best] >= FIRST_SIGHT * least]
    lines = _judged(block, finder, (rough + middle)[best].tolist())
    return sorted(lines, key=lambda line: -line.score)


def _judged(block: Ends, finder: Nearest, offsets: Sequence[float]) -> list[Line]:
    """How well offsets fit a block, each after a small correction of offset and drift."""
    center = int(block.times[len(block) // 2])
    given, moving = [], [Line(offset, 0.0, center) for offset in offsets]
    for _ in range(3):
        lines, moving = moving, []
        for line, distances in zip(lines, finder.of_lines(block, lines), strict=True):
            near = np.abs(distances) < REACH_NS
            if np.count_nonzero(near) < LEAST_SHARED:
                given.append(line)
            else:
                moving.append(_corrected(line, block.times[near], distances[near]))
    scores = agreement(finder.of_lines(block, moving)).tolist()
    return given + [replace(line, score=score) for line, score in zip(moving, scores, strict=True)]


def _score(block: Ends, finder: Nearest, line: Line) -> float:
    """The share of the block that fits the line."""
    return float(agreement(finder.distances(block, line)))


def _corrected(line: Line, times: Ints, distances: Floats) -> Line:
    """The line moved onto the distances: medians, and a slope where many points carry it."""
    drift = _slope(times, distances)
    if abs(line.drift + drift) > MOST_DRIFT:
        drift = 0.0
    offset = median(distances - drift * (times - line.center_ns))
    return replace(line, offset_ns=line.offset_ns + offset, drift=line.drift + drift)


def _slope(times: Ints, distances: Floats) -> float:
    """The slope from the first to the last third, where it stands out of the scatter; else 0."""
    if len(times) < LEAST_FOR_DRIFT:
        return 0.0
    third = len(times) // 3
    early, late = slice(0, third), slice(len(times) - third, None)
    span = median(times[late]) - median(times[early])
    last = median(distances[late])
    rise = last - median(distances[early])
    scatter = median(np.abs(distances[late] - last))
    return rise / span if span > 0 and abs(rise) > 8.0 * scatter / third**0.5 else 0.0


def _background(block: Ends, finder: Nearest) -> float:
    """The score that any offset reaches by chance."""
    return median(agreement(finder.around(block, block.times + _PROBES_NS[:, None])))


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The collectives that lines are compared by, and the offset (ns) that is likely."""

    block: Ends
    finder: Nearest
    likely_ns: float

    def decides(self, best: Line, rival: Line) -> bool:
        """Whether what only one of two lines explains speaks for the best of both.

        A line shifted by one of many even intervals misses the last collective of each run alone.
        """
        distances = (self.finder.distances(self.block, line) for line in (best, rival))
        agreed_best, agreed_rival = (agreed(distance) for distance in distances)
        steps = agreed_best - agreed_rival
        return bool(steps.sum() > CLEAR * np.sqrt(np.sum(steps**2)))

    def distance(self, line: Line) -> float:
        """How far a line is from what is likely, ns."""
        return abs(line.offset_ns - self.likely_ns)


def _clear_winner(lines: Sequence[Line], threshold: float, evidence: _Evidence) -> Line | None:
    """The best line, unless chance does as well; of equals the likeliest, if by far."""
    best = lines[0]
    if best.score < threshold:
        return None
    rivals = [
        line
        for line in lines[1:]
        if line.score > AMBIGUOUS * best.score
        and abs(line.offset_ns - best.offset_ns) > SAME_NS
        and not evidence.decides(best, line)
    ]
    nearest = sorted([best, *rivals], key=evidence.distance)
    if rivals and evidence.distance(nearest[1]) < 3 * evidence.distance(nearest[0]):
        return None
    return nearest[0]


def _grown(a: Ends, finder: Nearest, line: Line) -> Line:
    """The line carried from the block to the whole capture, in steps that drift cannot outrun."""
    center = int(np.searchsorted(a.times, line.center_ns))
    reach = BLOCK // 2
    while True:
        part = a.take(slice(max(0, center - reach), center + reach, max(1, reach // GROWN)))
        distances = finder.distances(part, line)
        near = np.abs(distances) < REACH_NS
        if np.count_nonzero(near) >= LEAST_SHARED:
            line = _corrected(line, part.times[near], distances[near])
        if reach >= len(a):
            scatter = median(np.abs(distances[near])) if near.any() else 0.0
            return replace(line, scatter_ns=scatter)
        reach *= 2
