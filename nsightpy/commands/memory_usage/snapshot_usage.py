"""Memory snapshots for `memory-usage`: rows, pictures and notes of one snapshot."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from nsightpy.analysis.memory.allocation_places import AllocationPlaces, places
from nsightpy.analysis.memory.holders import Holder, holders
from nsightpy.analysis.memory.left_behind import (
    SnapshotIterations,
    left_behind,
    snapshot_iterations,
)
from nsightpy.analysis.memory.over_time import OverTime, over_time
from nsightpy.analysis.memory.recorded import BEFORE, Recorded, recorded
from nsightpy.analysis.memory.reserved import OutOfMemory, Reserve, out_of_memory, reserve
from nsightpy.errors import MissingDataError
from nsightpy.frames import Ints
from nsightpy.query.scope import Scope
from nsightpy.reports.memory_snapshot import MemorySnapshot
from nsightpy.results.series import MemoryGrowth, MemorySeries
from nsightpy.units import counted, format_bytes, format_time

MEMORY, ANY_DEVICE = "Device", -1
EARLIER, NO_STACK, OTHERS = "(before the recording)", "(no stack recorded)", "(other places)"
MOST_FAILURES = 3
_FRAMES = ("allocator_events", "memory_segments", "memory_blocks")


@dataclass(frozen=True)
class DeviceUsage:
    """One device of a snapshot: its allocations, by place, within a stretch of its states."""

    device: int
    recorded: Recorded
    codes: Ints
    names: tuple[str, ...]
    first: int
    last: int
    reserve: Reserve
    failures: list[OutOfMemory] = field(default_factory=list)
    growth: list[MemoryGrowth] = field(default_factory=list)
    iterations: SnapshotIterations | None = None

    @property
    def live(self) -> Ints:
        return self.recorded.live[self.first : self.last + 1]

    @cached_property
    def peak(self) -> int:
        """The state of the peak: the first where most was live."""
        return self.first + int(np.argmax(self.live))

    @property
    def peak_bytes(self) -> int:
        return int(self.live.max())

    @property
    def left_bytes(self) -> int:
        return int(self.live[-1])

    @cached_property
    def holders(self) -> list[Holder]:
        """Who holds what, of the allocations that were live in the stretch of time."""
        within = (self.recorded.start < self.last) & (self.recorded.freed >= self.first)
        rows = np.flatnonzero(within)
        peak, end = self.recorded.alive(self.peak)[rows], self.recorded.alive(self.last)[rows]
        return holders(self.codes[rows], self.names, self.recorded.bytes[rows], peak, end)

    @property
    def over_time(self) -> OverTime:
        within, base = (self.first, self.last), (EARLIER, NO_STACK)
        return over_time(self.recorded, self.codes, self.names, within, base, OTHERS)


def usage_of(snapshot: MemorySnapshot, by: str, scope: Scope) -> list[DeviceUsage]:
    """The devices of a snapshot that are in scope; raises MissingDataError for times it lacks."""
    known = places(snapshot.frame("stack_frames"), by)
    ranges = snapshot.frame("snapshot_ranges")
    made = []
    for device in snapshot.devices:
        if scope.devices is not None and device not in scope.devices:
            continue
        events, segments, blocks = (snapshot.frame(name).at(device=device) for name in _FRAMES)
        recording = recorded(events, segments, blocks)
        if (scope.from_ns, scope.to_ns) != (None, None) and recording.time_of(0) is None:
            problem = "has no times that --from and --to could be measured by"
            raise MissingDataError(snapshot.path, problem, "leave them out.")
        codes, names = _named(known, recording)
        first, last = recording.states(scope.from_ns, scope.to_ns)
        spans = snapshot_iterations(
            ranges.take(np.isin(ranges.ints("device"), (device, ANY_DEVICE)))
        )
        growth = (
            left_behind(recording, spans, codes, names) if recording.time_of(0) is not None else []
        )
        made.append(
            DeviceUsage(
                device,
                recording,
                codes,
                names,
                first,
                last,
                reserve(segments, blocks),
                [
                    failure
                    for failure in out_of_memory(events, recording)
                    if _within(failure.start_ns, scope)
                ],
                [
                    replace(iteration, rank=snapshot.rank, device=device)
                    for iteration in growth
                    if _within(iteration.start_ns, scope) and _within(iteration.end_ns, scope)
                ],
                spans,
            )
        )
    return made


def _within(time: int | None, scope: Scope) -> bool:
    if time is None:
        return True
    after = scope.from_ns is None or time >= scope.from_ns
    return after and (scope.to_ns is None or time <= scope.to_ns)


def _named(known: AllocationPlaces, recording: Recorded) -> tuple[Ints, tuple[str, ...]]:
    """The place of each allocation; those without a stack have one of two names of their own."""
    codes = known.of(recording.stack)
    count = len(known.names)
    missing = np.where(recording.start == BEFORE, count, count + 1)
    return np.where(codes >= 0, codes, missing), (*known.names, EARLIER, NO_STACK)


def series_of(snapshot: MemorySnapshot, usage: DeviceUsage) -> MemorySeries:
    """What is drawn of a device."""
    drawn = usage.over_time
    spans = usage.iterations
    edges = np.union1d(spans.start, spans.end).tolist() if spans is not None else []
    held = usage.holders
    return MemorySeries(
        snapshot.rank,
        usage.device,
        MEMORY,
        drawn.times.tolist(),
        drawn.live.tolist(),
        str(held[0].name or "") if held else "",
        drawn.reserved.tolist(),
        tuple((layer.name, layer.live.tolist()) for layer in drawn.layers),
        edges if drawn.clock else (),
        [failure.start_ns for failure in usage.failures if failure.start_ns is not None],
        drawn.clock,
    )


def notes_of(usage: DeviceUsage) -> list[str]:
    """What has to be said about one device, in sentences that begin with its name."""
    device = f"Device {usage.device}"
    return [
        *_reserve_notes(usage, device),
        *_failure_notes(usage, device),
        *_growth_notes(usage, device),
        *_doubts(usage, device),
    ]


def _reserve_notes(usage: DeviceUsage, device: str) -> list[str]:
    state, share = usage.reserve, usage.reserve.unused_share
    if share is None:
        return []
    at_peak = int(usage.recorded.reserved[usage.peak])
    said = (
        f"{device} at the dump: {format_bytes(state.reserved)} reserved, "
        f"{format_bytes(state.requested)} allocated; {format_bytes(state.unused)} "
        f"({100 * share:.0f} %) reserved and unused"
    )
    if state.free_pieces:
        pieces = counted(state.free_pieces, "piece")
        said += f" in {pieces}, the largest {format_bytes(state.largest_free)}"
    if usage.recorded.events:
        said += f". At the peak {format_bytes(at_peak)} were reserved"
    return [f"{said}."]


def _failure_notes(usage: DeviceUsage, device: str) -> list[str]:
    said = []
    for failure in usage.failures[:MOST_FAILURES]:
        when = "" if failure.start_ns is None else f" at {format_time(failure.start_ns)}"
        free = failure.device_free
        left = "" if free is None else f"; the device had {format_bytes(free)} free"
        unused = format_bytes(failure.reserved - failure.live)
        said.append(
            f"{device} ran out of memory{when}: {format_bytes(failure.asked)} were asked for with "
            f"{format_bytes(failure.live)} allocated and {unused} reserved and unused{left}."
        )
    if len(usage.failures) > MOST_FAILURES:
        said.append(f"{device} ran out of memory {len(usage.failures):,} times in all.")
    return said


def _growth_notes(usage: DeviceUsage, device: str) -> list[str]:
    if not usage.growth or usage.iterations is None:
        return []
    left = sorted(growth.left_bytes for growth in usage.growth)
    most = max(usage.growth, key=lambda growth: growth.left_bytes)
    known = f"{counted(len(left), 'iteration')} ({usage.iterations.source})"
    if left[0] == left[-1]:
        said = f"{device}: {known}: each leaves {_signed(left[0])} behind"
    else:
        median = left[(len(left) - 1) // 2]
        said = (
            f"{device}: {known}: each leaves {_signed(left[0])} to {_signed(left[-1])} behind, "
            f"the median {_signed(median)}; iteration {usage.growth.index(most) + 1} leaves most"
        )
    if most.left_bytes > 0:
        said += f"; most grows at {most.grown_at}: {format_bytes(most.grown_bytes)}"
    return [f"{said}."]


def _signed(size: int) -> str:
    return f"-{format_bytes(-size)}" if size < 0 else format_bytes(size)


def _doubts(usage: DeviceUsage, device: str) -> list[str]:
    """Where the recording does not fit together."""
    recording = usage.recorded
    said = []
    if recording.unmatched:
        said.append(f"{device}: {recording.unmatched:,} frees end no known allocation; left out.")
    if recording.replaced:
        said.append(
            f"{device}: {recording.replaced:,} allocations were freed unseen; they end where their "
            "address is allocated again."
        )
    if recording.later:
        said.append(
            f"{device}: {counted(recording.later, 'block')} of the dump came after the recording; "
            "left out."
        )
    if recording.events and bool((recording.reserved < recording.live).any()):
        said.append(
            f"{device}: less is reserved than allocated at times: the recording ended before the "
            "dump, and reserved memory is uncertain."
        )
    return said
