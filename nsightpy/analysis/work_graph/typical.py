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
    rows = rows[np.lexsort((values[rows], group[rows]))]
    present, first, counts = np.unique(group[rows], return_index=True, return_counts=True)
    if not len(present):
        return fallback
    middle = values[rows[first + (counts - 1) // 2]]
    at = np.minimum(np.searchsorted(present, group), len(present) - 1)
    return np.where(present[at] == group, middle[at], fallback)
