"""Live memory over time for a picture, by place, and what each iteration leaves behind."""

from collections.abc import Sequence

import numpy as np

from nsightpy.analysis.memory.allocations import Allocations
from nsightpy.frames import Frame, Ints
from nsightpy.results.series import MemoryGrowth, MemorySeries

STRETCHES, PLACES = 1200, 9
# What is no place of the program.
EARLIER, NO_STACK, OTHERS = "(before the recording)", "(no stack recorded)", "(other places)"


def over_time(
    recorded: Allocations, codes: Ints, names: Sequence[str], within: tuple[int, int]
) -> MemorySeries:
    """The states `within` (first, last) of an allocator, one for each stretch: its highest.

    codes: the place of each allocation in `names`, EARLIER and NO_STACK among them. Those that hold
    most at any moment get a layer. Without a clock times are the numbers of the events.
    """
    live = recorded.live
    states = _highest(live, *within)
    clock = bool(recorded.moments) and bool((recorded.times >= 0).all())
    order = np.arange(recorded.moments + 1, dtype=np.int64)
    times = np.append(recorded.times[:1], recorded.times) if clock else order
    by_place = _by_place(recorded, states, codes, len(names))
    most = by_place.max(axis=1, initial=0)
    kept = [row for row in np.argsort(-most, kind="stable").tolist() if most[row]][:PLACES]
    # what is no place of the program stands at the bottom
    kept.sort(key=lambda row: names[row] not in (EARLIER, NO_STACK))
    layers = [(names[row], by_place[row].tolist()) for row in kept]
    others = by_place.sum(axis=0) - by_place[kept].sum(axis=0)
    if others.any():
        layers.append((OTHERS, others.tolist()))
    return MemorySeries(
        times_ns=times[states].tolist(),
        live=live[states].tolist(),
        reserved=recorded.reserved[states].tolist(),
        layers=tuple(layers),
        clock=clock,
    )


def _highest(live: Ints, first: int, last: int) -> Ints:
    """The first and the last state, and the highest one of every stretch between."""
    if last - first < STRETCHES:
        return np.arange(first, last + 1)
    stretches = np.array_split(np.arange(first, last + 1), STRETCHES)
    highest = [int(states[np.argmax(live[states])]) for states in stretches]
    return np.unique([first, *highest, last])


def _by_place(recorded: Allocations, states: Ints, rows: Ints, count: int) -> Ints:
    """Live bytes of each place at each of the states: what came minus what went, summed up."""
    width = len(states) + 1
    change = np.zeros(count * width, dtype=np.int64)
    for event, sign in ((recorded.start, 1), (recorded.freed, -1)):
        column = np.searchsorted(states, event + 1, side="left")
        weights = np.bincount(rows * width + column, recorded.bytes, count * width)
        change += sign * weights.astype(np.int64)
    return np.cumsum(change.reshape(count, width), axis=1)[:, :-1]


def snapshot_iterations(ranges: Frame) -> tuple[str, Ints, Ints]:
    """What the iterations of a snapshot (schema snapshot_ranges) are known by; their starts, ends.

    The profiler's steps, else the time from one optimizer step's end to the next one's end: the
    first of them has no beginning, and is left out.
    """
    names = ranges.labels("name")
    start, end = ranges.ints("start_ns"), ranges.ints("end_ns")
    closed = (start >= 0) & (end >= start)
    rows = np.flatnonzero(names.where(lambda name: name.startswith("ProfilerStep")) & closed)
    if len(rows):
        rows = rows[np.argsort(start[rows], kind="stable")]
        return "ProfilerStep", start[rows], end[rows]
    for name in names.values:
        if name.startswith("Optimizer.step#"):
            ends = np.sort(end[names.equals([name]) & closed])
            return name.replace("#", " of ", 1), ends[:-1], ends[1:]
    return "", start[:0], end[:0]


def left_behind(
    recorded: Allocations, starts: Ints, ends: Ints, codes: Ints, names: Sequence[str]
) -> list[MemoryGrowth]:
    """What every iteration leaves, of those that the events cover from their start.

    codes: the place of each allocation in `names`.
    """
    growth = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if not recorded.moments or start < recorded.times[0]:
            continue
        first, last = recorded.states(start, end)
        live = recorded.live[first : last + 1]
        change = recorded.alive(last).astype(np.int64) - recorded.alive(first)
        grown = np.bincount(codes, change * recorded.bytes, len(names)).astype(np.int64)
        most = int(np.argmax(grown))
        at, size = (names[most], int(grown[most])) if grown[most] > 0 else ("", 0)
        left = int(live[-1] - live[0])
        growth.append(MemoryGrowth(start, end, int(live.max()), left, at, size))
    return growth
