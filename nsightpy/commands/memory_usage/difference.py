"""Two memory snapshots side by side: what each place holds in one and in the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nsightpy.analysis.memory.holders import Holder
from nsightpy.commands.memory_usage.snapshot_usage import MEMORY
from nsightpy.results import Field, Value, fields_in
from nsightpy.results.series import MemoryUsage

FIELDS = (
    Field("device", "id"),
    Field("memory", "text"),
    *fields_in("bytes", "delta_at_peak_bytes", "delta_at_end_bytes", "before_at_peak_bytes"),
    *fields_in("bytes", "after_at_peak_bytes", "before_at_end_bytes", "after_at_end_bytes"),
    Field("before_allocations"),
    Field("after_allocations"),
    Field("allocated_by", "text"),
)


def difference(
    before: Mapping[int, Sequence[Holder]],
    after: Mapping[int, Sequence[Holder]],
    top: int | None = None,
) -> MemoryUsage:
    """One row per device and place, what changed most first; a place that is not there has 0.

    before, after: the holders of each device.
    """
    rows: list[tuple[Value, ...]] = []
    for device in sorted({*before, *after}):
        held = [
            {str(holder.name): holder for holder in side.get(device, ())}
            for side in (before, after)
        ]
        device_rows = [
            _row(device, name, *(side.get(name) for side in held)) for name in held[0] | held[1]
        ]
        rows += sorted(device_rows, key=_order)
    return MemoryUsage("memory-usage", FIELDS, tuple(rows)).first(top)


def _row(device: int, name: str, before: Holder | None, after: Holder | None) -> tuple[Value, ...]:
    peaks = [0 if holder is None else holder.at_peak_bytes for holder in (before, after)]
    ends = [0 if holder is None else holder.at_end_bytes for holder in (before, after)]
    counts = [0 if holder is None else holder.allocations for holder in (before, after)]
    changes = (peaks[1] - peaks[0], ends[1] - ends[0])
    return (device, MEMORY, *changes, *peaks, *ends, *counts, name)


def _order(row: tuple[Value, ...]) -> tuple[object, ...]:
    changes = [abs(int(row[place] or 0)) for place in (2, 3)]
    return (-max(changes), -changes[0], str(row[-1]))
