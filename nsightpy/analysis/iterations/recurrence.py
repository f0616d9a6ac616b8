"""What comes back in a long sequence of symbols at much the same distance.

Launches in order are such a sequence. A program repeats on several levels, one in the other: inner
loops, layers, steps, epochs. All are found here; which of them is a step is judged elsewhere.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from nsightpy.analysis.iterations.thresholds import GRAMS, LOOKED_AT, LOOKED_INTO, REPEATS
from nsightpy.analysis.thresholds import ABOUT, CLOSE, MOST
from nsightpy.frames import Ints

# Symbols that follow one another and mark where a turn begins.
Run: TypeAlias = tuple[int, ...]
_MIX = np.uint64(0x9E3779B97F4A7C15)


class _Mark(NamedTuple):
    """A run at regular distances: the usual one, how often it comes, where first.

    `missing`: one less the share of the sequence between the first and the last, times the share of
    the distances that are about the usual one.
    """

    missing: float
    first: int
    run: Run
    period: int
    times: int


def recurring(symbols: NDArray[np.int32] | Ints) -> list[Run]:
    """Runs that come once a turn, one for each level, the most regular levels first.

    Of a long sequence the middle is looked at.
    """
    low = max(len(symbols) - LOOKED_AT, 0) // 2
    symbols = np.asarray(symbols[low : low + LOOKED_AT], dtype=np.int64)
    levels: list[_Mark] = []
    for mark in sorted(mark for size in GRAMS for mark in _marks(symbols, size)):
        # a run of several symbols may miss turns that one symbol does not
        again = any(
            mark.period == level.period
            and abs(mark.times - level.times) <= max(1, CLOSE * mark.times)
            for level in levels
        )
        if not again and len(levels) < LOOKED_INTO:
            levels.append(mark)
    return [mark.run for mark in levels]


def places_of(symbols: NDArray[np.int32] | Ints, run: Run) -> Ints:
    """Where a run of symbols begins, ascending."""
    if len(run) > len(symbols):
        return np.empty(0, dtype=np.int64)
    places = np.flatnonzero(symbols[: len(symbols) - len(run) + 1] == run[0])
    for offset, symbol in enumerate(run[1:], 1):
        places = places[symbols[places + offset] == symbol]
    return places


def _marks(symbols: Ints, size: int) -> Iterator[_Mark]:
    """Runs of `size` symbols at regular distances."""
    if len(symbols) < size * REPEATS:
        return
    # a number for each run, equal for equal runs
    runs = sliding_window_view(symbols.view(np.uint64) + np.uint64(1), size)
    codes = (runs * np.cumprod(np.full(size, _MIX))).sum(axis=1)
    order = np.argsort(codes, kind="stable")
    code = codes[order]
    same = code[1:] == code[:-1]
    owner, apart = code[1:][same], np.diff(order)[same]
    apart = apart[np.lexsort((apart, owner))]
    values, low, count = np.unique(owner, return_index=True, return_counts=True)
    usual = apart[low + count // 2]
    of = np.repeat(np.arange(len(values)), count)
    near = np.abs(apart - usual[of]) <= ABOUT * usual[of]
    regular = np.bincount(of, near, len(values)) / count
    reach = np.minimum((np.bincount(of, apart, len(values)) + usual) / len(symbols), 1.0)
    first = order[np.searchsorted(code, values)]
    kept = (count + 1 >= REPEATS) & (regular >= MOST) & (reach >= ABOUT)
    for row in np.flatnonzero(kept).tolist():
        begin, score = int(first[row]), float(regular[row] * reach[row])
        run = tuple(symbols[begin : begin + size].tolist())
        yield _Mark(1 - score, begin, run, int(usual[row]), int(count[row]) + 1)
