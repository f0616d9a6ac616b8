"""The order of rows by time, and look-ups of rows that are by group, then by time."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

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


Grouped: TypeAlias = tuple[NDArray[np.integer[Any]], NDArray[np.int64]]


def positions(
    rows: Grouped, wanted: Grouped, side: Literal["left", "right"] = "left"
) -> NDArray[np.int64]:
    """Where each wanted (group, time) would stand among rows that are by group, then by time."""
    edge = len(rows[0])
    groups, times = (np.concatenate(pair) for pair in zip(rows, wanted, strict=True))
    if not len(times):
        return np.empty(0, dtype=np.int64)
    low, span = int(times.min()), int(times.max()) - int(times.min()) + 1
    if _is_wide(groups, span):
        groups = np.unique(groups, return_inverse=True)[1]  # small numbers in the same order
    if _is_wide(groups, span):
        # too far apart to lay the groups end to end; only their order counts
        times = np.unique(times, return_inverse=True)[1]
        low, span = 0, len(times)
    axis = groups.astype(np.int64) * span + (times - low)
    at: NDArray[np.int64] = np.searchsorted(axis[:edge], axis[edge:], side)
    return at


def _is_wide(groups: NDArray[np.integer[Any]], span: int) -> bool:
    """Whether times of so wide a span, group after group, are beyond 64 bits."""
    return (max(abs(int(groups.min())), int(groups.max())) + 1) * span >= _MOST


def last_before(
    rows: Grouped, wanted: Grouped, side: Literal["left", "right"] = "right"
) -> NDArray[np.int64]:
    """The last row of each wanted group that is not later than its time; -1 where there is none.

    Rows are by group, then by time; with side "left" it is earlier.
    """
    before = positions(rows, wanted, side) - 1
    same = (before >= 0) & (np.append(rows[0], 0)[before] == wanted[0])
    return np.where(same, before, -1)
