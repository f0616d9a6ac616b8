"""Live memory over time for a picture: few moments, the highest of each stretch, by place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsightpy.analysis.memory.recorded import Recorded
from nsightpy.frames import Ints
from nsightpy.results.series import MemorySeries

STRETCHES, PLACES = 1200, 8


def over_time(
    recorded: Recorded,
    codes: Ints,
    names: Sequence[str],
    within: tuple[int, int],
    base: Sequence[str],
    rest: str,
) -> MemorySeries:
    """The states `within` (first, last) of an allocator, one for each stretch: its highest.

    codes: the place of each allocation in `names`. Those that hold most at any moment get a
    layer; `rest` names that of all others. `base` are names that stand at the bottom, in order.
    Without a clock times are the numbers of the events.
    """
    live = recorded.live
    states = _highest(live, *within)
    clock = bool(recorded.events) and bool((recorded.times >= 0).all())
    order = np.arange(recorded.events + 1, dtype=np.int64)
    times = np.append(recorded.times[:1], recorded.times) if clock else order
    by_place = _by_place(recorded, states, codes, len(names))
    most = by_place.max(axis=1, initial=0)
    order = np.argsort(-most, kind="stable")
    lowest = [row for row in map(names.index, base) if most[row]]
    kept = [row for row in order.tolist() if most[row] and row not in lowest][:PLACES]
    others = by_place.sum(axis=0) - by_place[[*lowest, *kept]].sum(axis=0)
    layers = [
        *((names[row], by_place[row].tolist()) for row in lowest),
        *([(rest, others.tolist())] if others.any() else []),
        *((names[row], by_place[row].tolist()) for row in kept),
    ]
    return MemorySeries(
        times_ns=times[states].tolist(),
        live=live[states].tolist(),
        reserved=recorded.reserved[states].tolist(),
        layers=tuple(layers),
        clock=clock,
    )


def _highest(live: Ints, first: int, last: int) -> Ints:
    """The first and the last state, and the highest one of every stretch between."""
    edges = np.unique(np.linspace(first, last + 1, STRETCHES + 1).astype(np.int64))
    if last - first < STRETCHES:
        return np.arange(first, last + 1)
    most = np.maximum.reduceat(live[: last + 1], edges[:-1])
    size = np.diff(edges)
    at_most = np.flatnonzero(live[first : last + 1] == np.repeat(most, size)) + first
    stretch = np.searchsorted(edges, at_most, side="right") - 1
    return np.unique(
        np.concatenate([at_most[np.unique(stretch, return_index=True)[1]], [first, last]])
    )


def _by_place(recorded: Recorded, states: Ints, rows: Ints, count: int) -> Ints:
    """Live bytes of each place at each of the states: what came minus what went, summed up."""
    width = len(states) + 1
    change = np.zeros(count * width, dtype=np.int64)
    for event, sign in ((recorded.start, 1), (recorded.freed, -1)):
        column = np.searchsorted(states, event + 1, side="left")
        weights = np.bincount(rows * width + column, recorded.bytes, count * width)
        change += sign * weights.astype(np.int64)
    return np.cumsum(change.reshape(count, width), axis=1)[:, :-1]
