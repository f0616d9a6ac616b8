"""What ran in each unit of one device: launches and time by name."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nsightpy.frames import Floats, Ints, Labels

# So many units are looked at one by one, evenly chosen, and so many names.
MOST_UNITS = 256
MOST_NAMES = 2_000
# A name that runs as often in so many of the units is typical by its median, else by its mean.
REGULAR = 0.9


@dataclass(frozen=True)
class UnitWorks:
    """By name: launches a unit on average, and the time in each unit, ns."""

    names: tuple[str, ...]
    counts: Floats
    regular: tuple[bool, ...]
    totals: Ints
    paths: dict[str, str] = field(default_factory=dict)
    positions: dict[str, float] = field(default_factory=dict)
    order: tuple[str, ...] = ()


def some_units(count: int) -> Ints:
    """At most MOST_UNITS of so many units, evenly chosen."""
    if count <= MOST_UNITS:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, MOST_UNITS).round().astype(np.int64))


def owners(start: Ints, end: Ints, times: Ints) -> Ints:
    """The unit [start, end) in which each moment lies; -1 for none. Units ascend."""
    place = np.searchsorted(start, times, side="right") - 1
    found: Ints = np.where((place >= 0) & (times < end[np.maximum(place, 0)]), place, -1)
    return found


def unit_works(names: Labels, owner: Ints, lengths: Ints, units: int) -> UnitWorks:
    """Launches and times of names, each row in the unit `owner` (-1: none), `lengths` in ns."""
    inside = owner >= 0
    names = names.take(inside).merged()
    owner, lengths = owner[inside], lengths[inside]
    used, codes = np.unique(names.codes, return_inverse=True)
    if len(used) > MOST_NAMES:
        totals = np.bincount(codes, lengths, len(used))
        longest = np.sort(np.argsort(-totals, kind="stable")[:MOST_NAMES])
        kept = np.isin(codes, longest)
        codes, owner, lengths = np.searchsorted(longest, codes[kept]), owner[kept], lengths[kept]
        used = used[longest]
    cells = codes.astype(np.int64) * units + owner
    size = len(used) * units
    counts = np.bincount(cells, minlength=size).reshape(len(used), units)
    times = np.bincount(cells, lengths.astype(np.float64), size).reshape(len(used), units)
    usual = np.median(counts, axis=1)
    alike = (counts == usual[:, None]).mean(axis=1) >= REGULAR if units else np.zeros(len(used))
    return UnitWorks(
        tuple(names.values[code] for code in used.tolist()),
        counts.mean(axis=1) if units else np.zeros(len(used)),
        tuple(bool(one) for one in alike),
        np.rint(times).astype(np.int64),
    )


def typical(times: Ints | Floats, regular: bool) -> int:
    """The time of a name in one unit, in ns: the median where it runs alike in all, else the mean.

    The median of what runs in every third unit only would be nothing.
    """
    if not len(times):
        return 0
    return round(float(np.median(times) if regular else np.mean(times)))
