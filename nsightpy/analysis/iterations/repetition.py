"""Cycles of a long sequence of symbols: kernel names in launch order.

A cycle is marked by symbols, or short runs of them, that come once in each turn, at much the same
distance. A program has several, one in the other: inner loops, layers, steps, epochs. All are
found here; which of them is a step is judged elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Ints

GRAMS = (1, 4, 16)
LOOKED_AT = 200_000
REPEATS = 3
REGULAR = 0.5
WITHIN = 0.2
REACH = 0.4
LEVELS = 24
MARKS = 64
MOST_MARKS = 4096
FEWER = 0.12
_PLACE_BITS = LOOKED_AT.bit_length()
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Cycle:
    """One level of repetition: a turn is `period` symbols long.

    `marks`: runs of symbols, each of which comes once in a turn. `sampled`: the sequence is so
    long that only its middle was looked at.
    """

    period: int
    count: int
    marks: tuple[tuple[int, ...], ...]
    sampled: bool


def find_cycles(symbols: NDArray[np.int32] | Ints) -> list[Cycle]:
    """The cycles of a sequence, shortest first; empty where nothing comes back regularly."""
    symbols = np.asarray(symbols, dtype=np.int64)
    middle = max(len(symbols) - LOOKED_AT, 0) // 2
    looked_at = symbols[middle : middle + LOOKED_AT]
    by_period: dict[int, dict[int, list[tuple[float, tuple[int, ...]]]]] = {}
    for size in GRAMS:
        for period, count, score, first in _marks(looked_at, size):
            run = tuple(looked_at[first : first + size].tolist())
            turns = by_period.setdefault(period, {})
            # a run of several symbols may miss turns that one symbol does not
            near = (turn for turn in turns if abs(turn - count) <= max(1, FEWER * turn))
            turns.setdefault(next(near, count), []).append((score, run))
    best = {
        (period, count): sorted(marks, key=lambda mark: (-mark[0], len(mark[1])))[:MARKS]
        for period, turns in by_period.items()
        for count, marks in turns.items()
    }
    ranked = sorted(best, key=lambda key: (-best[key][0][0], key))
    sampled = len(looked_at) < len(symbols)
    return [
        Cycle(*key, tuple(run for _, run in best[key]), sampled) for key in sorted(ranked[:LEVELS])
    ]


def places_of_run(symbols: NDArray[np.int32] | Ints, run: tuple[int, ...]) -> Ints:
    """Where a run of symbols begins, ascending; occurrences do not overlap where it is uniform."""
    if len(run) > len(symbols):
        return np.empty(0, dtype=np.int64)
    places = np.flatnonzero(symbols[: len(symbols) - len(run) + 1] == run[0])
    for offset, symbol in enumerate(run[1:], 1):
        places = places[symbols[places + offset] == symbol]
    return places


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


def _sorted_pairs(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Pairs of a symbol and a place in what is looked at, ascending.

    numpy sorts whole numbers ten times as fast as it finds their order.
    """
    pairs = np.sort(first << _PLACE_BITS | second)
    return pairs >> _PLACE_BITS, pairs & ((1 << _PLACE_BITS) - 1)


def _marks(symbols: Ints, size: int) -> list[tuple[int, int, float, int]]:
    """Runs of `size` symbols at regular distances: (usual distance, count, score, first place).

    The score: the share of the sequence between the first and the last, times the share of the
    distances that are about the usual one.
    """
    if len(symbols) < size * REPEATS:
        return []
    codes = grams(symbols, size)
    code, order = _sorted_pairs(codes, np.arange(len(codes)))
    same = code[1:] == code[:-1]
    owner, apart = _sorted_pairs(code[1:][same], np.diff(order)[same])
    if len(apart) == 0:
        return []
    values, low, count = np.unique(owner, return_index=True, return_counts=True)
    usual = apart[low + count // 2]
    kept = (count + 1 >= REPEATS) & (usual * (REPEATS - 0.5) <= len(symbols))
    of = np.repeat(np.arange(len(values)), count)
    near = np.abs(apart - usual[of]) <= WITHIN * usual[of]
    regular = np.bincount(of, near, len(values)) / count
    reach = np.minimum((np.bincount(of, apart, len(values)) + usual) / len(symbols), 1.0)
    kept &= (regular >= REGULAR) & (reach >= REACH)
    first = order[np.searchsorted(code, values)]
    rows = np.flatnonzero(kept)
    # of equal ones those that come first, whatever the symbols are
    rows = rows[np.lexsort((first[rows], -(regular * reach)[rows]))[:MOST_MARKS]]
    return [
        (int(usual[row]), int(count[row]) + 1, float(regular[row] * reach[row]), int(first[row]))
        for row in rows.tolist()
    ]
