"""Collectives that took abnormally long against others of their own size class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.tally import Key
from nsightpy.frames import Ints

DEVIATIONS = 5.0
LEAST_RATIO = 1.5
LEAST_INSTANCES = 8


@dataclass(frozen=True, slots=True)
class SlowCollectives:
    """Instances beyond median + 5 x MAD (and 1.5 x median) of their class, and what they cost.

    `lost_ns` is the time beyond their medians; the class named is the one that lost most.
    """

    instances: int
    lost_ns: int
    worst_class: Key
    worst_ratio: float
    worst_median_ns: float


def slow_collectives(
    duration: Ints, codes: NDArray[np.int32], keys: Sequence[Key]
) -> SlowCollectives | None:
    """The abnormal instances of one device; codes[i] is the class of instance i. None for none."""
    order = np.lexsort((duration, codes))
    duration, codes = duration[order], codes[order]
    edges = np.flatnonzero(np.diff(codes)) + 1
    instances, lost, worst = 0, 0, (0, 0, 0.0, 0.0)
    for group in np.split(np.arange(len(codes)), edges):
        lengths = duration[group]
        if len(lengths) < LEAST_INSTANCES:
            continue
        median = float(np.median(lengths))
        spread = float(np.median(np.abs(lengths - median)))
        limit = max(median + DEVIATIONS * spread, LEAST_RATIO * median)
        slow = lengths[lengths > limit]
        if not len(slow):
            continue
        here = int((slow - median).sum())
        instances += len(slow)
        lost += here
        worst = max(worst, (here, int(codes[group[0]]), float(slow[-1]) / median, median))
    if not instances:
        return None
    return SlowCollectives(instances, lost, keys[worst[1]], worst[2], worst[3])
