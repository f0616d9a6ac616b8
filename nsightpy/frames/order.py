"""The one order of rows: by time, and those of one time by what else tells them apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST = 2**62


def time_order(times: NDArray[np.int64], keys: Iterable[NDArray[Any]]) -> NDArray[np.int64] | None:
    """The rows by time, those of one time by the keys; None where they are in that order already.

    A key is asked for only where those before it leave rows equal.
    """
    is_sorted = bool(np.all(times[1:] >= times[:-1]))
    rows = np.arange(len(times)) if is_sorted else np.argsort(times, kind="stable")
    is_next = times[rows[1:]] != times[rows[:-1]]
    apart = np.concatenate([[True], is_next, [True]])
    tied = np.flatnonzero(~(apart[:-1] & apart[1:]))
    group = np.cumsum(apart[:-1][tied])
    for key in keys if len(tied) else ():
        # as one number, which is nearly sorted: that is fast
        place = _places(key[rows[tied]])
        order = np.argsort(group * (int(place.max()) + 1) + place, kind="stable")
        rows[tied] = rows[tied][order]
        place = place[order]
        is_next = (group[1:] != group[:-1]) | (place[1:] != place[:-1])
        if is_next.all():
            break
        group = np.cumsum(np.concatenate([[True], is_next]))
    return None if is_sorted and bool(np.all(rows[1:] > rows[:-1])) else rows


def _places(key: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers from 0 on that sort as a key does, small enough to be one with those of groups."""
    if key.dtype.kind == "i":
        low, high = int(key.min()), int(key.max())
        if (high - low + 1) * (len(key) + 1) < _MOST:
            return key - low
    return np.unique(key, return_inverse=True)[1].astype(np.int64)
