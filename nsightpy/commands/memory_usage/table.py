"""The tables of `memory-usage`: who held what at the peak, and how two snapshots differ."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nsightpy.analysis.memory.allocations import Holder
from nsightpy.results import Field, Row, rank_order
from nsightpy.results.series import MemoryGrowth, MemorySeries, MemoryUsage

FIELDS = (
    Field("device", "id", importance=5, place=2),
    Field("memory", "text", own=True, importance=4, place=3),
    Field("peak_bytes", "bytes", heading="peak", importance=3, place=4),
    Field("peak_ns", "moment", heading="peak at", importance=11),
    Field("left_bytes", "bytes", heading="left", importance=7),
    Field("at_peak_bytes", "bytes", heading="at peak", importance=2, place=5),
    Field("at_peak_allocations", heading="allocations at peak", importance=8),
    Field("allocations", importance=9),
    Field("largest_bytes", "bytes", heading="largest", importance=10),
    Field("allocated_by", "name", importance=1),
    Field("at_end_bytes", "bytes", heading="at end", importance=6),
    Field("rank", "id", place=1),
)
DIFFERENCE_FIELDS = (
    Field("device", "id", importance=5, place=2),
    Field("memory", "text", importance=4, place=3),
    Field("delta_at_peak_bytes", "bytes", heading="change at peak"),
    Field("delta_at_end_bytes", "bytes", heading="change at end"),
    Field("before_at_peak_bytes", "bytes", heading="before at peak"),
    Field("after_at_peak_bytes", "bytes", heading="after at peak"),
    Field("before_at_end_bytes", "bytes", heading="before at end"),
    Field("after_at_end_bytes", "bytes", heading="after at end"),
    Field("allocated_by", "name", importance=1),
)


@dataclass(frozen=True)
class DeviceMemory:
    """What was allocated of one kind of memory on a device, by whom, and what is drawn of it."""

    peak_bytes: int
    peak_ns: int | None
    left_bytes: int
    holders: list[Holder]
    series: MemorySeries
    growth: Sequence[MemoryGrowth] = ()


def usage_table(devices: Sequence[DeviceMemory]) -> MemoryUsage:
    """A row for each holder, that of most bytes at the peak first."""

    def place(series: MemorySeries) -> tuple[object, ...]:
        return (*rank_order(series.rank), series.device, series.memory)

    held = [(device, holder) for device in devices for holder in device.holders]
    held.sort(key=lambda pair: (*place(pair[0].series), -pair[1].at_peak_bytes, str(pair[1].name)))
    rows = tuple(
        (
            *(device.series.device, device.series.memory),
            *(device.peak_bytes, device.peak_ns, device.left_bytes),
            *(holder.at_peak_bytes, holder.at_peak_allocations, holder.allocations),
            *(holder.largest_bytes, holder.name, holder.at_end_bytes, device.series.rank),
        )
        for device, holder in held
    )
    return MemoryUsage(
        "memory-usage",
        FIELDS,
        rows,
        series=tuple(sorted((device.series for device in devices), key=place)),
        iterations=tuple(each for device in devices for each in device.growth),
    )


def difference_table(before: Iterable[DeviceMemory], after: Iterable[DeviceMemory]) -> MemoryUsage:
    """A row for each device and place, what changed most first; a place that is not there has 0."""

    def order(row: Row) -> tuple[object, ...]:
        peak, end = (abs(int(change or 0)) for change in row[2:4])
        return (row[0], -max(peak, end), -peak, str(row[-1]))

    sides = [
        {
            (each.series.device, each.series.memory, str(holder.name)): holder
            for each in side
            for holder in each.holders
        }
        for side in (before, after)
    ]
    rows: list[Row] = []
    for key in sides[0] | sides[1]:
        device, memory, name = key
        held = [side.get(key) for side in sides]
        peaks, ends = (
            [0 if holder is None else getattr(holder, part) for holder in held]
            for part in ("at_peak_bytes", "at_end_bytes")
        )
        deltas = (peaks[1] - peaks[0], ends[1] - ends[0])
        rows.append((device, memory, *deltas, *peaks, *ends, name))
    return MemoryUsage("memory-usage", DIFFERENCE_FIELDS, tuple(sorted(rows, key=order)))
