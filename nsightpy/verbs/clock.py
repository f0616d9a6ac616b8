"""The one clock of a timeline: that of its first report, on which every rank is placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nsightpy.analysis.alignment import (
    COLLECTIVES,
    ONE_SESSION,
    SYSTEM_CLOCK,
    UNKNOWN,
    WALL_CLOCK,
    ClockFit,
)
from nsightpy.frames import Ints
from nsightpy.rank_set import RankSet
from nsightpy.tracks import Place
from nsightpy.units import format_count, format_time
from nsightpy.verbs.ranks import align

_UNCORRECTED = {
    ONE_SESSION: "one report, one clock",
    SYSTEM_CLOCK: "ranks placed by their host's system clock",
    WALL_CLOCK: "ranks placed by UTC, as good as their hosts keep time",
    UNKNOWN: "not aligned: no common clock",
}
_WORST_FIRST = (UNKNOWN, WALL_CLOCK, SYSTEM_CLOCK, ONE_SESSION)


@dataclass(frozen=True)
class Clocks:
    """How each place's own time becomes the clock of the picture, and how well that is known."""

    caption: str
    fits: Mapping[tuple[str, int], ClockFit]
    zero_ns: int = 0
    notes: list[str] = field(default_factory=list)

    def move(self, place: Place, times: Ints) -> Ints:
        """Times of a place's report on the clock of the picture."""
        fit = self.fits.get((place.report, place.pid))
        return times if fit is None else fit.to_aligned(times) - self.zero_ns

    def aligned(self, place: Place, *times: int) -> tuple[int, ...]:
        """A few single times on the clock of the picture."""
        return tuple(self.move(place, np.asarray(times, dtype=np.int64)).tolist())


def clocks_of(ranks: RankSet, places: Sequence[Place]) -> Clocks:
    """The clocks of the places' processes; a process on its own keeps its own."""
    units = dict.fromkeys((place.report, place.pid) for place in places)
    if len(units) == 1:
        return Clocks("the report's own clock", {})
    by_unit = {(fit.report, fit.pid): fit for fit in align(ranks)}
    fits = {unit: by_unit[unit] for unit in units if unit in by_unit}
    if not fits:
        return Clocks(_UNCORRECTED[UNKNOWN], {})
    first = next(iter(fits.values()))
    zero = int(first.to_aligned(np.zeros(1, dtype=np.int64))[0])
    missing = [f"pid {pid} of {report}" for report, pid in units if (report, pid) not in fits]
    notes = [f"not aligned, on their own clocks: {', '.join(missing)}"] if missing else []
    if any(fit.method == UNKNOWN for fit in fits.values()):
        notes.append("Some reports do not tell their time of day: they begin at their own zero.")
    return Clocks(_caption(list(fits.values())), fits, zero, notes)


def _caption(fits: Sequence[ClockFit]) -> str:
    """How the ranks came together, in one sentence with its error bar."""
    corrected = [fit for fit in fits if fit.method == COLLECTIVES]
    rest = [fit for fit in fits if fit.method != COLLECTIVES]
    method = next((one for one in _WORST_FIRST if any(f.method == one for f in rest)), UNKNOWN)
    if not corrected:
        return _UNCORRECTED[method]
    worst = max(abs(fit.residual_p95_ns or 0) for fit in corrected)
    low = max(abs(fit.residual_p05_ns or 0) for fit in corrected)
    instances = format_count(max(fit.instances for fit in corrected))
    text = f"aligned by the ends of {instances} collectives, within {format_time(max(worst, low))}"
    left = [fit for fit in rest if fit.method != ONE_SESSION]
    return f"{text}; {len(left)} of {len(fits)} {_UNCORRECTED[method]}" if left else text
