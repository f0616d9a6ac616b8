"""What ran in each unit of one device: launches and time by name."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nsightpy.frames import Floats, Ints, Labels

# So many units are divided one by one, evenly chosen; in so many of them works are looked at one by
# one; and so many names are kept.
MOST_UNITS = 4_096
MOST_SAMPLES = 64
MOST_NAMES = 2_000
# A name that runs as often in so many of the units is typical by its median, else by its mean.
REGULAR = 0.9


@dataclass(frozen=True)
class UnitWorks:
    """By name: launches and time a unit on average, ns, and the time in some units, ns."""

    names: tuple[str, ...]
    counts: Floats
    means: Floats
    regular: tuple[bool, ...]
    totals: Ints
    paths: dict[str, str] = field(default_factory=dict)
    positions: dict[str, float] = field(default_factory=dict)
    order: tuple[str, ...] = ()


def some_units(count: int, most: int = MOST_UNITS) -> Ints:
    """At most so many units, evenly chosen."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.int64))


def owners(start: Ints, end: Ints, times: Ints) -> Ints:
    """The unit [start, end) in which each moment lies; -1 for none. Units ascend."""
    if not len(start):
        return np.full(len(times), -1, dtype=np.int64)
    place = np.searchsorted(start, times, side="right") - 1
    owner: Ints = np.where((place >= 0) & (times < end[np.maximum(place, 0)]), place, -1)
    return owner


def unit_works(names: Labels, owner: Ints, lengths: Ints, units: int) -> UnitWorks:
    """Launches and times of names, each row in the unit `owner` (-1: none), `lengths` in ns."""
    inside = owner >= 0
    names = names.take(inside).merged()
    owner, lengths = owner[inside], lengths[inside]
    used, codes = np.unique(names.codes, return_inverse=True)
    means = np.bincount(codes, lengths.astype(np.float64), len(used)) / max(units, 1)
    counts = np.bincount(codes, minlength=len(used)) / max(units, 1)
    kept = np.arange(len(used))
    if len(used) > MOST_NAMES:
        kept = np.sort(np.argsort(-means, kind="stable")[:MOST_NAMES])
    sampled = some_units(units, MOST_SAMPLES)
    often, totals = _by_unit(codes, owner, lengths, kept, sampled)
    usual = np.median(often, axis=1) if units else np.zeros(len(kept))
    alike = (often == usual[:, None]).mean(axis=1) >= REGULAR if units else usual > 0
    return UnitWorks(
        tuple(names.values[code] for code in used[kept].tolist()),
        counts[kept],
        means[kept],
        tuple(bool(same) for same in alike),
        totals,
    )


def _by_unit(
    codes: Ints, owner: Ints, lengths: Ints, kept: Ints, sampled: Ints
) -> tuple[Ints, Ints]:
    """Launches and time of each kept name in each sampled unit."""
    name = np.minimum(np.searchsorted(kept, codes), max(len(kept) - 1, 0))
    unit = np.minimum(np.searchsorted(sampled, owner), max(len(sampled) - 1, 0))
    here = np.flatnonzero((kept[name] == codes) & (sampled[unit] == owner))
    cells = name[here] * len(sampled) + unit[here]
    shape = (len(kept), len(sampled))
    often = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    times = np.bincount(cells, lengths[here].astype(np.float64), shape[0] * shape[1])
    return often, np.rint(times).astype(np.int64).reshape(shape)
