"""What is usual for a kind of thing, as seen where nothing else held it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Ints


def typical(values: Ints, group: Ints, usable: NDArray[np.bool_], fallback: Ints) -> Ints:
    """For each row the median of the usable values of its group; else its own fallback."""
    result = fallback.copy()
    order = np.flatnonzero(usable)
    order = order[np.lexsort((values[order], group[order]))]
    present, first, count = np.unique(group[order], return_index=True, return_counts=True)
    if len(present):
        middle = values[order[first + (count - 1) // 2]]
        at = np.minimum(np.searchsorted(present, group), len(present) - 1)
        result = np.where(present[at] == group, middle[at], result)
    return result
