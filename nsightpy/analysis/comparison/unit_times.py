"""How the time of each unit (a step, or a window) of one device divides, exact in ns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.idle.gap_causes import ALL_CAUSES, IdleGaps
from nsightpy.analysis.intervals import Spans, measure_before, union
from nsightpy.frames import Ints
from nsightpy.results.run_summary import PARTS

IDLE_FROM = len(PARTS) - len(ALL_CAUSES)
_COLUMNS = [PARTS.index(f"idle: {cause}") for cause in ALL_CAUSES]


@dataclass(frozen=True, slots=True)
class DeviceSets:
    """What one device did, as sets of time: kernels that compute, graphs traced as a whole, ..."""

    compute: Spans
    graphs: Spans
    memory: Spans
    communication: Spans


def unit_times(start: Ints, end: Ints, done: DeviceSets, gaps: IdleGaps | None) -> Ints:
    """One row for each unit [start, end), one column for each of PARTS; a row adds up to its unit.

    What runs at once counts once: as compute, else as an opaque graph, else as a copy, else as
    exposed communication. `gaps` are the idle intervals of a window that holds all units.
    """
    times = np.zeros((len(start), len(PARTS)), dtype=np.int64)
    covered, below = done.compute, np.zeros(len(start), dtype=np.int64)
    for column, more in ((0, None), (3, done.graphs), (2, done.memory), (1, done.communication)):
        covered = covered if more is None else covered | more
        inside = _within(start, end, covered)
        times[:, column] = inside - below
        below = inside
    idle = end - start - below
    if gaps is not None:
        for column, part in zip(_COLUMNS, _by_cause(gaps), strict=True):
            times[:, column] = _within(start, end, part)
    # the last part is `unknown`, and takes what nothing is known of
    times[:, -1] += idle - times[:, IDLE_FROM:].sum(axis=1)
    return times


def _within(start: Ints, end: Ints, time: Spans) -> Ints:
    return measure_before(time, end) - measure_before(time, start)


def _by_cause(gaps: IdleGaps) -> list[Spans]:
    """The idle intervals cut by cause: the causes of one lie in it one after the other.

    Their order matters only to an interval that a unit's edge divides.
    """
    edges = np.cumsum(gaps.causes, axis=1) + gaps.opened[:, None]
    starts = np.concatenate([gaps.opened[:, None], edges[:, :-1]], axis=1)
    return [union(starts[:, place], edges[:, place]) for place in range(len(ALL_CAUSES))]
