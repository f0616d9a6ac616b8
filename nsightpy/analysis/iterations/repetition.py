"""The period of a long sequence of symbols that repeats: kernel names in launch order.

Prologues, epilogues, warm-up variants and a few inserted symbols are expected. Of all lags at
which a long stretch equals itself, the shortest is taken that matches about as well as the best:
a lag of one layer fails wherever a stack of layers ends, a lag of one iteration nowhere, and two
iterations match no better than one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Ints, distinct

GRAMS = (1, 4, 16)
LAGS_TRIED = 48
LAGS_KEPT = 16
LOOKED_AT = 400_000
SAMPLES = 20_000
MATCH = 0.8
NEARLY = 0.9
AS_WELL = 0.005
REPEATS = 3
BRIDGE = 2
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Repetition:
    """The sequence repeats every `period` symbols between `first` and `last` (exclusive).

    `match`: the share of that stretch that equals what comes a period later.
    """

    period: int
    first: int
    last: int
    length: int
    match: float

    @property
    def coverage(self) -> float:
        """The share of the sequence that repeats."""
        return (self.last - self.first) / self.length if self.length else 0.0

    @property
    def repeats(self) -> float:
        return (self.last - self.first) / self.period


def find_repetition(symbols: NDArray[np.int32] | Ints, repeats: int = REPEATS) -> Repetition | None:
    """The repetition that explains the sequence best; None where nothing repeats so often."""
    symbols = np.asarray(symbols, dtype=np.int64)
    found = [_repetition(symbols, lag) for lag in _lags(symbols, repeats)]
    good = [one for one in found if one is not None and one.repeats >= repeats]
    if not good:
        return None
    widest = max(one.coverage for one in good)
    wide = [one for one in good if one.coverage >= NEARLY * widest]
    match = max(one.match for one in wide)
    return min((one for one in wide if one.match >= match - AS_WELL), key=lambda one: one.period)


def anchors(symbols: NDArray[np.int32] | Ints, found: Repetition) -> list[Ints]:
    """Places that mark every period once: of each symbol, or short run, that comes once in each."""
    symbols = np.asarray(symbols, dtype=np.int64)
    for size in GRAMS:
        marks = [
            places
            for places in _places(grams(symbols, size), found)
            if _regular(places, found.period)
        ]
        if marks:
            return marks
    return []


def grams(symbols: Ints, size: int) -> Ints:
    """A number for each run of `size` symbols, equal for equal runs."""
    if size == 1:
        return symbols
    mixed = np.zeros(max(len(symbols) - size + 1, 0), dtype=np.uint64)
    for place in range(size):
        mixed *= _MIX
        mixed += symbols[place : place + len(mixed)].view(np.uint64) + np.uint64(1)
        mixed ^= mixed >> np.uint64(29)
    return np.unique(mixed, return_inverse=True)[1].astype(np.int64)


def _lags(symbols: Ints, repeats: int) -> list[int]:
    """Likely periods: how far apart the occurrences of a symbol or a run usually are."""
    votes: dict[int, int] = {}
    middle = max(len(symbols) - LOOKED_AT, 0) // 2
    looked_at = symbols[middle : middle + LOOKED_AT]
    longest = len(looked_at) // repeats
    for size in GRAMS:
        codes = grams(looked_at, size)
        order = np.argsort(codes, kind="stable")
        same = codes[order][1:] == codes[order][:-1]
        apart = np.diff(order)[same]
        # once per symbol and distance, so that frequent symbols do not outvote rare ones
        owner = codes[order][1:][same]
        near = apart <= longest
        pairs, _ = distinct(owner[near] * (longest + 1) + apart[near])
        lags, counts = np.unique(pairs % (longest + 1), return_counts=True)
        for lag, count in zip(lags.tolist(), counts.tolist(), strict=True):
            votes[lag] = votes.get(lag, 0) + count
    votes.pop(0, None)
    ranked = sorted(votes, key=lambda lag: (-votes[lag], lag))[:LAGS_TRIED]
    # symbols that come once in a period vote in unison for it, and are few: long lags count, too
    long = sorted(votes, key=lambda lag: (-votes[lag] * lag, lag))[:LAGS_TRIED]
    tried = list(dict.fromkeys(ranked + long))
    kept = sorted(tried, key=lambda lag: (-_sampled_match(symbols, lag), lag))
    return kept[:LAGS_KEPT]


def _sampled_match(symbols: Ints, lag: int) -> float:
    """About how much of the sequence equals what comes `lag` later."""
    step = max((len(symbols) - lag) // SAMPLES, 1)
    return float((symbols[lag::step] == symbols[:-lag:step]).mean())


def _repetition(symbols: Ints, lag: int) -> Repetition | None:
    """The longest stretch, short interruptions bridged, that equals itself `lag` later."""
    if lag >= len(symbols):
        return None
    equal = np.concatenate([[0], np.cumsum(symbols[lag:] == symbols[:-lag])])
    width = min(lag, len(equal) - 1)
    good = (equal[width:] - equal[:-width]) >= MATCH * width
    edges = np.flatnonzero(np.diff(np.concatenate([[False], good, [False]]).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    if len(starts) == 0:
        return None
    breaks = np.flatnonzero(starts[1:] - ends[:-1] > BRIDGE * lag) + 1
    firsts = starts[np.concatenate([[0], breaks])]
    lasts = ends[np.concatenate([breaks - 1, [len(ends) - 1]])]
    # a window that is good begins at most `width` before, and its match ends `lag` after it
    lengths = lasts - 1 + width + lag - firsts
    best = int(np.argmax(lengths))
    first = int(firsts[best])
    last = min(first + int(lengths[best]), len(symbols))
    compared = max(last - lag - first, 1)
    match = int(equal[first + compared] - equal[first]) / compared
    return Repetition(lag, first, last, len(symbols), match)


def _places(codes: Ints, found: Repetition) -> list[Ints]:
    """Where each code occurs in the repeating stretch, of codes about as frequent as periods."""
    inside = codes[found.first : found.last]
    order = np.argsort(inside, kind="stable")
    values, firsts, counts = np.unique(inside[order], return_index=True, return_counts=True)
    wanted = np.abs(counts - found.repeats) <= max(1.5, 0.25 * found.repeats)
    return [
        order[first : first + count] + found.first
        for first, count in zip(firsts[wanted].tolist(), counts[wanted].tolist(), strict=True)
        if len(values)
    ]


def _regular(places: Ints, period: int) -> bool:
    """Whether nearly all places are about one period apart."""
    apart = np.diff(places)
    if len(apart) < REPEATS - 1:
        return False
    about = (apart > 0.6 * period) & (apart < 1.6 * period)
    return bool(about.mean() >= NEARLY) and bool((apart == period).mean() >= 0.5)
