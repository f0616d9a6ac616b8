"""The one order of rows: by time, and those of one time by what else tells them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_MOST = 2**62

# What some rows sort by.
Key: TypeAlias = Callable[[NDArray[np.int64]], NDArray[Any]]


def time_order(times: NDArray[np.int64], keys: Iterable[Key]) -> NDArray[np.int64] | None:
    """The rows by time, those of one time by the keys; None where they are in that order already.

    A key is asked of the rows alone that those before it leave equal.
    """
    is_sorted = bool(np.all(times[1:] >= times[:-1]))
    rows = np.arange(len(times)) if is_sorted else np.argsort(times, kind="stable")
    tied, group = _tied(np.arange(len(rows)), times[rows[1:]] != times[rows[:-1]])
    for key in keys if len(tied) else ():
        # as one number, which is nearly sorted: that is fast
        rank = _places(key(rows[tied]))
        order = np.argsort(group * (int(rank.max()) + 1) + rank, kind="stable")
        rows[tied] = rows[tied][order]
        rank = rank[order]
        tied, group = _tied(tied, (group[1:] != group[:-1]) | (rank[1:] != rank[:-1]))
        if not len(tied):
            break
    return None if is_sorted and bool(np.all(rows[1:] > rows[:-1])) else rows


def _tied(
    rows: NDArray[np.int64], is_next: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows that are equal to a neighbour, and a number of those that are equal."""
    apart = np.concatenate([[True], is_next, [True]])
    equal = np.flatnonzero(~(apart[:-1] & apart[1:]))
    return rows[equal], np.cumsum(apart[:-1][equal])


def _places(key: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers from 0 on that sort as a key does, small enough to be one with those of groups."""
    if key.dtype.kind == "i":
        low, high = int(key.min()), int(key.max())
        if (high - low + 1) * (len(key) + 1) < _MOST:
            return key - low
    return np.unique(key, return_inverse=True)[1].astype(np.int64)
