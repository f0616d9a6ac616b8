"""How the ranks of a timeline came together on one clock, and which collectives they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from nsightpy.analysis.clock_alignment import clocks
from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.frames import Ints
from nsightpy.results.tracks import COMMUNICATION, NO_COLLECTIVE, Lane, Owner
from nsightpy.units import format_count, format_time

# By report, process, device and stream: when collectives began, in the report's own time and
# ascending, and which instance each was.
Collectives: TypeAlias = Mapping[tuple[str, int, int, int], tuple[Ints, Ints]]

# The worst first.
UNCORRECTED = {
    clocks.UNKNOWN: "not aligned: no common clock",
    clocks.WALL_CLOCK: "ranks placed by UTC, as good as their hosts keep time",
    clocks.SYSTEM_CLOCK: "ranks placed by their host's system clock",
    clocks.ONE_SESSION: "one session, one clock",
}
_CORRECTED = {
    clocks.COLLECTIVES: "by the ends of {} collectives",
    clocks.MPI: "by {} MPI operations",
}


def collectives_of(alignment: Alignment) -> Collectives:
    """When each stream's matched collectives began, and their instances."""
    ledger, numbers = alignment.ledger, alignment.instances.number
    found: dict[tuple[str, int, int, int], tuple[Ints, Ints]] = {}
    for number, unit in enumerate(ledger.units):
        fit = alignment.fits[unit.clock]
        of_unit = np.flatnonzero((ledger.unit == number) & (numbers >= 0))
        starts = ledger.starts[of_unit] - alignment.ledger_ahead_ns(number)
        for stream in np.unique(ledger.stream[of_unit]).tolist():
            on_stream = ledger.stream[of_unit] == stream
            key = (fit.report, unit.pid, unit.device, int(stream))
            found[key] = (starts[on_stream], numbers[of_unit][on_stream])
    return found


def with_collectives(lane: Lane, owner: Owner, collectives: Collectives) -> Lane:
    """A stream's lane, in the report's own time, with the instances of its collectives."""
    instances = collectives.get((owner.report, owner.pid, owner.device or 0, lane.number))
    if instances is None:
        return lane
    starts, numbers = instances
    rows = np.minimum(np.searchsorted(starts, lane.starts), len(starts) - 1)
    hits = (starts[rows] == lane.starts) & (lane.categories == COMMUNICATION)
    return replace(lane, collectives=np.where(hits, numbers[rows], NO_COLLECTIVE))


def caption_of(fits: Sequence[clocks.ClockFit]) -> str:
    """How the ranks came together, in one sentence with its error bar."""
    methods = [fit.method for fit in fits]
    parts = []
    for method, words in _CORRECTED.items():
        if aligned := [fit for fit in fits if fit.method == method]:
            count = format_count(max(fit.instances for fit in aligned))
            residuals = (r for fit in aligned for r in (fit.residual_p05_ns, fit.residual_p95_ns))
            within = format_time(max(abs(residual or 0) for residual in residuals))
            parts.append(f"{words.format(count)}, within {within}")
    worst = next((method for method in UNCORRECTED if method in methods), clocks.UNKNOWN)
    if not parts:
        return UNCORRECTED[worst]
    text = f"aligned {' and '.join(parts)}"
    exact = (*_CORRECTED, clocks.ONE_SESSION)
    exact += (clocks.SYSTEM_CLOCK,) if clocks.MPI in methods else ()
    left = sum(method not in exact for method in methods)
    return f"{text}; {left} of {len(fits)} {UNCORRECTED[worst]}" if left else text
