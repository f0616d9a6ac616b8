"""Which launches of two sequences correspond, and what lies between those that do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

# A table of so many cells by so many is filled; longer sequences are cut.
MOST_LAUNCHES = 3_000

Block = tuple[tuple[str, ...], tuple[str, ...]]


def blocks_between(
    before: Sequence[str], after: Sequence[str], same: dict[str, str]
) -> Counter[Block]:
    """What stands in the place of what: names of `before` and `after` between common launches.

    `same`: the name after that a name before is known as. Blocks are counted.
    """
    first, second = list(before[:MOST_LAUNCHES]), list(after[:MOST_LAUNCHES])
    codes: dict[str, int] = {}
    above = np.asarray([codes.setdefault(name, len(codes)) for name in second], dtype=np.int64)
    left = np.asarray([codes.get(same.get(name, ""), -1) for name in first], dtype=np.int64)
    blocks: Counter[Block] = Counter()
    row = column = 0
    for here, there in [*_common(left, above), (len(first), len(second))]:
        block = (tuple(first[row:here]), tuple(second[column:there]))
        if block[0] or block[1]:
            blocks[block] += 1
        row, column = here + 1, there + 1
    return blocks


def _common(left: np.ndarray, above: np.ndarray) -> list[tuple[int, int]]:
    """Places of a longest common subsequence, ascending.

    Row by row: length[i, j] = max over k <= j of max(length[i-1, k], length[i-1, k-1] + equal).
    """
    rows, columns = len(left), len(above)
    length = np.zeros((rows + 1, columns + 1), dtype=np.int16)
    for row in range(rows):
        longer = np.maximum(length[row, 1:], length[row, :-1] + (above == left[row]))
        np.maximum.accumulate(longer, out=length[row + 1, 1:])
    places = []
    row, column = rows, columns
    while row and column:
        here = length[row, column]
        if here == length[row - 1, column]:
            row -= 1
        elif here == length[row, column - 1]:
            column -= 1
        else:
            row, column = row - 1, column - 1
            places.append((row, column))
    return places[::-1]
