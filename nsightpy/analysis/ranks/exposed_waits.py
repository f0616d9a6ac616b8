"""Exposed communication, divided: waiting for ranks that come later, and moving data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.intervals import Spans, overlap_total, union
from nsightpy.analysis.ranks.arrivals import Arrivals

# Report, process and device.
Device = tuple[str, int, int]


def exposed_waits(
    alignment: Alignment, arrivals: Arrivals, exposed: Mapping[Device, Spans]
) -> dict[Device, int]:
    """For how long each device's exposed communication waited for others, in ns.

    `exposed` is each one's time in communication with nothing beside it, in its report's own time.
    Devices without a collective that others share are left out.
    """
    ledger, waits = alignment.ledger, {}
    for unit, participant in enumerate(ledger.units):
        device = (alignment.clocks[participant.clock].report, participant.pid, participant.device)
        own = arrivals.unit == unit
        if device not in exposed or not own.any():
            continue
        began = ledger.starts[arrivals.rows[own]] - alignment.ledger_ahead_ns(unit)
        ended = began + np.asarray(arrivals.waits[own])
        waits[device] = overlap_total(exposed[device], union(began, ended))
    return waits
