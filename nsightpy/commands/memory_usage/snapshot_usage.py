"""The memory of the devices of one memory snapshot, what is drawn of it, and notes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nsightpy.analysis.memory.allocation_places import AllocationPlaces, places
from nsightpy.analysis.memory.holders import Holder, holders
from nsightpy.analysis.memory.left_behind import (
    SnapshotIterations,
    left_behind,
    snapshot_iterations,
)
from nsightpy.analysis.memory.over_time import over_time
from nsightpy.analysis.memory.recorded import BEFORE, Recorded, recorded
from nsightpy.analysis.memory.reserved import OutOfMemory, Reserve, out_of_memory, reserve
from nsightpy.commands.memory_usage.table import DeviceMemory
from nsightpy.errors import MissingDataError
from nsightpy.frames import Ints
from nsightpy.query.scope import Scope
from nsightpy.reports.memory_snapshot import MemorySnapshot
from nsightpy.results import Said
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
    failures: list[OutOfMemory]
    growth: list[MemoryGrowth]
    iterations: SnapshotIterations

    @property
    def live(self) -> Ints:
        return self.recorded.live[self.first : self.last + 1]

    @cached_property
    def peak(self) -> int:
        """The state of the peak: the first where most was live."""
        return self.first + int(np.argmax(self.live))

    @cached_property
    def holders(self) -> list[Holder]:
        """Who holds what, of the allocations that were live in the stretch of time."""
        within = (self.recorded.start < self.last) & (self.recorded.freed >= self.first)
        rows = np.flatnonzero(within)
        peak, end = self.recorded.alive(self.peak)[rows], self.recorded.alive(self.last)[rows]
        return holders(self.codes[rows], self.names, self.recorded.bytes[rows], peak, end)


def memory_of(
    snapshot: MemorySnapshot, *, by: str, scope: Scope
) -> tuple[list[DeviceMemory], list[Said]]:
    """The memory of the devices of a snapshot that are in scope, and what must be text of it.

    Raises MissingDataError for times that it lacks.
    """
    usages = _usages(snapshot, by, scope)
    notes: list[Said] = [*snapshot.notes, *(note for usage in usages for note in _notes(usage))]
    return [_memory(snapshot, usage) for usage in usages], notes


def _memory(snapshot: MemorySnapshot, usage: DeviceUsage) -> DeviceMemory:
    within, base = (usage.first, usage.last), (EARLIER, NO_STACK)
    drawn = over_time(usage.recorded, usage.codes, usage.names, within, base, OTHERS)
    spans, held = usage.iterations, usage.holders
    series = MemorySeries(
        snapshot.rank,
        usage.device,
        MEMORY,
        drawn.times.tolist(),
        drawn.live.tolist(),
        str(held[0].name or "") if held else "",
        drawn.reserved.tolist(),
        tuple((layer.name, layer.live.tolist()) for layer in drawn.layers),
        np.union1d(spans.start, spans.end).tolist() if drawn.clock else (),
        [failure.start_ns for failure in usage.failures if failure.start_ns is not None],
        drawn.clock,
    )
    peak_ns, live = usage.recorded.time_of(usage.peak), usage.live
    return DeviceMemory(int(live.max()), peak_ns, int(live[-1]), held, series, usage.growth)


def _usages(snapshot: MemorySnapshot, by: str, scope: Scope) -> list[DeviceUsage]:
    known = places(snapshot.frame("stack_frames"), by)
    ranges = snapshot.frame("snapshot_ranges")
    usages = []
    for device in snapshot.devices:
        if scope.devices is not None and device not in scope.devices:
            continue
        events, segments, blocks = (snapshot.frame(name).at(device=device) for name in _FRAMES)
        recording = recorded(events, segments, blocks)
        timed = recording.time_of(0) is not None
        if (scope.from_ns, scope.to_ns) != (None, None) and not timed:
            problem = "has no times that --from and --to could be measured by"
            raise MissingDataError(snapshot.path, problem, "leave them out.")
        codes, names = _named(known, recording)
        first, last = recording.states(scope.from_ns, scope.to_ns)
        of_device = np.isin(ranges.ints("device"), (device, ANY_DEVICE))
        spans = snapshot_iterations(ranges.take(of_device))
        growth = [
            replace(iteration, rank=snapshot.rank, device=device)
            for iteration in (left_behind(recording, spans, codes, names) if timed else ())
            if _within(iteration.start_ns, scope) and _within(iteration.end_ns, scope)
        ]
        failures = [
            failure
            for failure in out_of_memory(events, recording)
            if _within(failure.start_ns, scope)
        ]
        held = reserve(segments, blocks)
        place = (device, recording, codes, names, first, last)
        usages.append(DeviceUsage(*place, held, failures, growth, spans))
    return usages


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


def _notes(usage: DeviceUsage) -> list[str]:
    """What has to be text about one device, in sentences that begin with its name."""
    device = f"Device {usage.device}"
    return [
        *_reserve_notes(usage, device),
        *_failure_notes(usage, device),
        *_growth_notes(usage, device),
    ]


def _reserve_notes(usage: DeviceUsage, device: str) -> list[str]:
    state, share = usage.reserve, usage.reserve.unused_share
    if share is None:
        return []
    at_peak = int(usage.recorded.reserved[usage.peak])
    text = (
        f"{device} at the dump: {format_bytes(state.reserved)} reserved, "
        f"{format_bytes(state.requested)} allocated; {format_bytes(state.unused)} "
        f"({100 * share:.0f} %) reserved and unused"
    )
    if state.free_pieces:
        pieces = counted(state.free_pieces, "piece")
        text += f" in {pieces}, the largest {format_bytes(state.largest_free)}"
    if usage.recorded.events:
        text += f". At the peak {format_bytes(at_peak)} were reserved"
    return [f"{text}."]


def _failure_notes(usage: DeviceUsage, device: str) -> list[str]:
    notes = []
    for failure in usage.failures[:MOST_FAILURES]:
        when = "" if failure.start_ns is None else f" at {format_time(failure.start_ns)}"
        free = failure.device_free
        left = "" if free is None else f"; the device had {format_bytes(free)} free"
        unused = format_bytes(failure.reserved - failure.live)
        notes.append(
            f"{device} ran out of memory{when}: {format_bytes(failure.asked)} were asked for with "
            f"{format_bytes(failure.live)} allocated and {unused} reserved and unused{left}."
        )
    if len(usage.failures) > MOST_FAILURES:
        notes.append(f"{device} ran out of memory {len(usage.failures):,} times in all.")
    return notes


def _growth_notes(usage: DeviceUsage, device: str) -> list[str]:
    if not usage.growth:
        return []
    left = sorted(growth.left_bytes for growth in usage.growth)
    most = max(usage.growth, key=lambda growth: growth.left_bytes)
    known = f"{counted(len(left), 'iteration')} ({usage.iterations.source})"
    if left[0] == left[-1]:
        text = f"{device}: {known}: each leaves {_signed(left[0])} behind"
    else:
        median = left[(len(left) - 1) // 2]
        text = (
            f"{device}: {known}: each leaves {_signed(left[0])} to {_signed(left[-1])} behind, "
            f"the median {_signed(median)}; iteration {usage.growth.index(most) + 1} leaves most"
        )
    if most.left_bytes > 0:
        text += f"; most grows at {most.grown_at}: {format_bytes(most.grown_bytes)}"
    return [f"{text}."]


def _signed(size: int) -> str:
    return f"-{format_bytes(-size)}" if size < 0 else format_bytes(size)
