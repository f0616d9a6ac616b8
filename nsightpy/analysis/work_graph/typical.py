"""What is usual for a kind of thing, as seen where nothing else held it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Ints


def typical(
    values: Ints, group: NDArray[np.signedinteger], usable: NDArray[np.bool_], fallback: Ints
) -> Ints:
    """For each row the lower median of the usable values of its group; else its own fallback."""
    rows = np.flatnonzero(usable)
    present, code = np.unique(group[rows], return_inverse=True)
    if not len(present):
        return fallback
    rows = rows[np.argsort(code.astype(np.int32), kind="stable")]
    counts = np.bincount(code, minlength=len(present))
    middle = [
        int(np.partition(part, (len(part) - 1) // 2)[(len(part) - 1) // 2])
        for part in np.split(values[rows], np.cumsum(counts)[:-1])
    ]
    at = np.minimum(np.searchsorted(present, group), len(present) - 1)
    return np.where(present[at] == group, np.asarray(middle, dtype=np.int64)[at], fallback)
