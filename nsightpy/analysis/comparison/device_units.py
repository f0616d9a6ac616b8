"""The units (steps, or a window) of one device: how their time divides, and what ran in them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.comparison.thresholds import MOST_SAMPLED, MOST_SAMPLES
from nsightpy.analysis.intervals import Spans, measure_before, union
from nsightpy.analysis.thresholds import NEARLY_ALL
from nsightpy.analysis.time_budget import Activity
from nsightpy.analysis.work_graph.idle_intervals import CAUSES, IdleIntervals
from nsightpy.frames import Floats, Ints, Labels
from nsightpy.results.run_summary import PARTS, WorkSummary

_CAUSES = [PARTS.index(f"idle: {cause}") for cause in CAUSES]


def unit_times(start: Ints, end: Ints, did: Activity, gaps: IdleIntervals | None) -> Ints:
    """One row for each unit [start, end), one column for each of PARTS; a row adds up to its unit.

    What runs at once counts once: as compute (an opaque graph apart from the rest of it), else as a
    copy, else as exposed communication. `gaps` are the idle intervals of a window that holds all
    units.
    """

    def within(time: Spans) -> Ints:
        return measure_before(time, end) - measure_before(time, start)

    working = did.compute | did.memory
    parts = {
        "opaque CUDA graphs": within(did.graphs),
        "compute": within(did.compute) - within(did.graphs),
        "copies alone": within(working) - within(did.compute),
        "exposed communication": within(working | did.communication) - within(working),
    }
    times = np.zeros((len(start), len(PARTS)), dtype=np.int64)
    for name, time in parts.items():
        times[:, PARTS.index(name)] = time
    if gaps is not None:
        # one after the other; their order matters only where a unit's edge divides an interval
        ends = np.cumsum(gaps.times, axis=1) + gaps.opened[:, None]
        starts = ends - gaps.times
        for cause, column in enumerate(_CAUSES):
            times[:, column] = within(union(starts[:, cause], ends[:, cause]))
    # the last part is `unknown`, and takes what nothing is known of
    times[:, -1] += end - start - times.sum(axis=1)
    return times


@dataclass(frozen=True)
class UnitWorks:
    """By name: launches and time a unit on average, whether it runs alike in all of them, and the
    time in some units; times in ns."""

    names: tuple[str, ...]
    counts: Floats
    means: Floats
    regular: NDArray[np.bool_]
    times: Floats


def some_units(count: int) -> Ints:
    """At most MOST_SAMPLES units, evenly chosen."""
    return np.unique(np.linspace(0, count - 1, min(count, MOST_SAMPLES)).round().astype(np.int64))


def unit_works(names: Labels, owner: Ints, lengths: Ints, units: int) -> UnitWorks:
    """Launches and times of names, each row in the unit `owner` (-1: none), `lengths` in ns."""
    inside = owner >= 0
    names = names.take(inside).merged()
    used, row = np.unique(names.codes, return_inverse=True)
    sampled = some_units(units)
    # all units that are no samples share the last column
    column = np.full(units, len(sampled))
    column[sampled] = np.arange(len(sampled))
    shape = len(used), len(sampled) + 1
    cells = np.ravel_multi_index((row, column[owner[inside]]), shape)
    often, times = (
        np.bincount(cells, weights, shape[0] * shape[1]).reshape(shape)
        for weights in (None, lengths[inside])
    )
    usual = np.median(often[:, :-1], axis=1, keepdims=True)
    return UnitWorks(
        tuple(names.values[code] for code in used.tolist()),
        often.sum(axis=1) / units,
        times.sum(axis=1) / units,
        (often[:, :-1] == usual).mean(axis=1) >= NEARLY_ALL,
        times[:, :-1].astype(np.float64),
    )


def mean_works(
    section: str, works: Sequence[UnitWorks], samples: int, devices: int
) -> tuple[WorkSummary, ...]:
    """What ran in a unit on so many devices on average, most time first, and in the last samples.

    Its time is the median of the units where it runs alike in all, else the mean: the median of
    what runs in every third unit only would be nothing.
    """
    names = Labels.of(name for each in works for name in each.names)

    def mean(values: Sequence[NDArray[Any]]) -> Floats:
        summed = np.zeros((len(names.values), *values[0].shape[1:]))
        np.add.at(summed, names.codes, np.concatenate(values))
        return summed / devices

    if not len(names):
        return ()
    times = mean([each.times[:, each.times.shape[1] - samples :] for each in works])
    irregular = mean([~each.regular for each in works]) > 0
    typical = np.where(irregular, mean([each.means for each in works]), np.median(times, axis=1))
    totals = np.rint(typical).astype(int).tolist()
    counts = mean([each.counts for each in works]).tolist()
    single = np.rint(times).astype(int).tolist()
    order = sorted(range(len(totals)), key=lambda row: (-totals[row], names.values[row]))
    sampled = set(order[:MOST_SAMPLED]) if samples > 1 else set()
    columns = zip(names.values, counts, totals, map(tuple, single), strict=True)
    found = [WorkSummary(section, *row) for row in columns]
    return tuple(found[row] if row in sampled else replace(found[row], samples=()) for row in order)
