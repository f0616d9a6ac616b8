"""The one clock of a timeline: that of its first report, on which every rank is placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from nsightpy.analysis.clock_alignment import clocks
from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.frames import Ints
from nsightpy.query.common_clock import CommonClock
from nsightpy.query.rank_alignment import alignment_of
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.results.tracks import COMMUNICATION, NO_COLLECTIVE, Lane, Place
from nsightpy.units import format_count, format_time

Stream: TypeAlias = tuple[str, int, int, int]

_UNCORRECTED = {
    clocks.ONE_SESSION: "one session, one clock",
    clocks.SYSTEM_CLOCK: "ranks placed by their host's system clock",
    clocks.WALL_CLOCK: "ranks placed by UTC, as good as their hosts keep time",
    clocks.UNKNOWN: "not aligned: no common clock",
}
_WORST_FIRST = (clocks.UNKNOWN, clocks.WALL_CLOCK, clocks.SYSTEM_CLOCK, clocks.ONE_SESSION)


@dataclass(frozen=True)
class Clocks:
    """How each place's own time becomes the clock of the picture, and how well that is known.

    `collectives` holds, by report, pid, device and stream, when collectives began (in the
    report's own time, ascending) and which instance each was.
    """

    caption: str
    common: CommonClock = field(default_factory=CommonClock)
    collectives: Mapping[Stream, tuple[Ints, Ints]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def move(self, place: Place, times: Ints) -> Ints:
        """Times of a place's report on the clock of the picture."""
        return self.common.aligned(place.report, place.pid, times)

    def aligned(self, place: Place, *times: int) -> tuple[int, ...]:
        """A few single times on the clock of the picture."""
        return tuple(self.move(place, np.asarray(times, dtype=np.int64)).tolist())

    def joined(self, place: Place, lane: Lane) -> Lane:
        """A stream's lane, in the report's own time, with the instances of its collectives."""
        instances = self.collectives.get((place.report, place.pid, place.device or 0, lane.number))
        if instances is None:
            return lane
        starts, numbers = instances
        rows = np.minimum(np.searchsorted(starts, lane.starts), len(starts) - 1)
        hits = (starts[rows] == lane.starts) & (lane.categories == COMMUNICATION)
        return replace(lane, collectives=np.where(hits, numbers[rows], NO_COLLECTIVE))


def clocks_of(ranks: RankSet, places: Sequence[Place]) -> Clocks:
    """The clocks of the places' processes; one report on its own keeps its own."""
    if len(ranks) == 1 and len(places) == 1:
        return Clocks("the report's own clock")
    units = dict.fromkeys((place.report, place.pid) for place in places)
    alignment = alignment_of(ranks)
    by_unit = {(fit.report, fit.pid): fit for fit in alignment.fits}
    fits = {unit: by_unit[unit] for unit in units if unit in by_unit}
    if not fits:
        return Clocks(_UNCORRECTED[clocks.UNKNOWN])
    missing = [f"pid {pid} of {report}" for report, pid in units if (report, pid) not in fits]
    notes = list(alignment.notes)
    if missing:
        notes.append(f"not aligned, on their own clocks: {', '.join(missing)}")
    if len(units) > 1 and any(fit.method == clocks.UNKNOWN for fit in fits.values()):
        notes.append("Some reports have no time of day: they begin at their own zero.")
    caption = _caption(list(fits.values())) if len(units) > 1 else "the report's own clock"
    common = CommonClock.of(alignment)
    return Clocks(caption, common, _instances(alignment), tuple(notes))


def _instances(alignment: Alignment) -> dict[Stream, tuple[Ints, Ints]]:
    """When each stream's matched collectives began, and their instances."""
    ledger, numbers = alignment.ledger, alignment.instances.number
    instances: dict[Stream, tuple[Ints, Ints]] = {}
    for place, unit in enumerate(ledger.units):
        fit = alignment.fits[unit.clock]
        mine = np.flatnonzero((ledger.unit == place) & (numbers >= 0))
        starts = ledger.starts[mine] - (fit.epoch_ns - alignment.base_ns)
        for stream in np.unique(ledger.stream[mine]).tolist():
            on_stream = ledger.stream[mine] == stream
            key = (fit.report, unit.pid, unit.device, int(stream))
            instances[key] = (starts[on_stream], numbers[mine][on_stream])
    return instances


def _caption(fits: Sequence[clocks.ClockFit]) -> str:
    """How the ranks came together, in one sentence with its error bar."""
    corrected = [fit for fit in fits if fit.method == clocks.COLLECTIVES]
    by_mpi = [fit for fit in fits if fit.method == clocks.MPI]
    rest = [fit for fit in fits if fit.method not in (clocks.COLLECTIVES, clocks.MPI)]
    method = next(
        (method for method in _WORST_FIRST if any(f.method == method for f in rest)), clocks.UNKNOWN
    )
    if not corrected and not by_mpi:
        return _UNCORRECTED[method]
    what = ("by the ends of {} collectives", corrected), ("by {} MPI operations", by_mpi)
    parts = [f"{words.format(_most(some))}, within {_within(some)}" for words, some in what if some]
    text = f"aligned {' and '.join(parts)}"
    exact = (clocks.ONE_SESSION, clocks.SYSTEM_CLOCK) if by_mpi else (clocks.ONE_SESSION,)
    left = [fit for fit in rest if fit.method not in exact]
    return f"{text}; {len(left)} of {len(fits)} {_UNCORRECTED[method]}" if left else text


def _most(fits: Sequence[clocks.ClockFit]) -> str:
    return format_count(max(fit.instances for fit in fits))


def _within(fits: Sequence[clocks.ClockFit]) -> str:
    """The largest residual."""
    residuals = (
        residual for fit in fits for residual in (fit.residual_p05_ns, fit.residual_p95_ns)
    )
    return format_time(max(abs(residual or 0) for residual in residuals))
