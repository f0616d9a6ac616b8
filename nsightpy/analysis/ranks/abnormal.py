"""Collectives that took abnormally long: the one definition, for every command that names them.

An instance lasts as long as its middle participant, the longer of two: at least half of the ranks
took that long, so one early bird among many makes no slow instance. It is abnormal beyond
median + 8 normalised median deviations of its operation, size and group, and beyond twice it.
Where sizes are not known, some that are equally long are of another size, and not abnormal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.clock_alignment.fit import NORMAL
from nsightpy.analysis.collectives.log import Mask
from nsightpy.frames import Ints

DEVIATIONS = 8.0
LEAST_RATIO = 2.0
LEAST_INSTANCES = 8
# So many of one length, within this share of it, are a size of their own.
OF_ONE_SIZE, ALIKE = 5, 0.1


@dataclass(frozen=True, slots=True)
class Abnormal:
    """One instance far beyond the median of its kind; times in ns of the common clock.

    `rows` are its places in the ledger; `late_unit` is whom it waited for, None for nobody.
    `whole` is False where no second rank was captured, so that waiting cannot be known.
    """

    start_ns: int
    duration_ns: int
    usual_ns: float
    late_unit: int | None
    rows: tuple[int, ...]
    whole: bool = True

    @property
    def ratio(self) -> float:
        return self.duration_ns / self.usual_ns if self.usual_ns else float("inf")


def middle(values: Ints) -> int:
    """The middle of some values, the larger of two."""
    return int(np.partition(values, len(values) // 2)[len(values) // 2])


def beyond_usual(lengths: Ints, sized: bool) -> tuple[Mask, float]:
    """Which instances of one kind are abnormal, and their median in ns; none of a few.

    `sized`: the sizes are known, so that all of them move as many bytes.
    """
    if len(lengths) < LEAST_INSTANCES:
        return np.zeros(len(lengths), dtype=np.bool_), 0.0
    usual = float(np.median(lengths))
    deviation = NORMAL * float(np.median(np.abs(lengths - usual)))
    limit = max(usual + DEVIATIONS * deviation, LEAST_RATIO * usual)
    beyond = lengths > limit
    if not sized:
        beyond &= ~_crowded(lengths)
    return beyond, usual


def _crowded(lengths: Ints) -> Mask:
    """Which of some lengths have several others about as long."""
    ordered = np.sort(lengths)
    low, high = (np.searchsorted(ordered, (1 + by) * lengths) for by in (-ALIKE, ALIKE))
    crowded: Mask = high - low >= OF_ONE_SIZE
    return crowded


def worst_first(cases: Sequence[Abnormal]) -> tuple[Abnormal, ...]:
    """The largest ratio first, then by time."""
    return tuple(sorted(cases, key=lambda case: (-case.ratio, case.start_ns)))
