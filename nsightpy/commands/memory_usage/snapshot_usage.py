"""The memory of the devices of one memory snapshot, what is drawn of it, and notes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nsightpy.analysis.memory.allocation_places import places
from nsightpy.analysis.memory.allocations import BEFORE, Allocations, holders, recorded
from nsightpy.analysis.memory.over_time import (
    EARLIER,
    NO_STACK,
    left_behind,
    over_time,
    snapshot_iterations,
)
from nsightpy.commands.memory_usage.table import DeviceMemory
from nsightpy.errors import MissingDataError
from nsightpy.frames import Frame, Labels
from nsightpy.query.scope import Scope
from nsightpy.reports.one_file import MemorySnapshot
from nsightpy.results import Said
from nsightpy.results.series import MemoryGrowth
from nsightpy.units import counted, format_bytes, format_time

ANY_DEVICE = -1
OOM = "oom"
_FRAMES = ("allocator_events", "memory_segments", "memory_blocks")


def memory_of(
    snapshot: MemorySnapshot, *, by: str, scope: Scope
) -> tuple[list[DeviceMemory], list[Said]]:
    """The memory of the devices of a snapshot that are in scope, and what must be text of it.

    Raises MissingDataError for times that it lacks.
    """
    stacks = places(snapshot.frame("stack_frames"), by)
    devices = [device for device in snapshot.devices if scope.includes(snapshot.rank, device)]
    parts = [_of_device(snapshot, device, stacks, scope) for device in devices]
    return [memory for memory, _ in parts], [*snapshot.notes, *(n for _, ns in parts for n in ns)]


def _of_device(
    snapshot: MemorySnapshot, device: int, stacks: Labels, scope: Scope
) -> tuple[DeviceMemory, list[str]]:
    """The memory of one device in the stretch of time, and what has to be text about it."""
    events, segments, blocks = (snapshot.frame(name).at(device=device) for name in _FRAMES)
    recording = recorded(events, segments, blocks)
    timed = recording.time_of(0) is not None
    if scope.is_timed and not timed:
        problem = "has no times that --from and --to could be measured by"
        raise MissingDataError(snapshot.path, problem, "leave them out.")
    names = (*stacks.values, EARLIER, NO_STACK)
    missing = len(stacks.values) + (recording.start != BEFORE)
    codes = np.where(recording.source >= 0, np.append(stacks.codes, 0)[recording.source], missing)
    first, last = recording.states(scope.from_ns, scope.to_ns)
    live = recording.live[first : last + 1]
    peak = first + int(np.argmax(live))  # the first state where most was live
    rows = np.flatnonzero((recording.start < last) & (recording.freed >= first))
    at_peak, at_end = (recording.alive(state)[rows] for state in (peak, last))
    held = holders(codes[rows], names, recording.bytes[rows], at_peak, at_end)
    ranges = snapshot.frame("snapshot_ranges")
    ranges = ranges.take(np.isin(ranges.ints("device"), (device, ANY_DEVICE)))
    source, starts, ends = snapshot_iterations(ranges)
    growth = [
        replace(each, rank=snapshot.rank, device=device)
        for each in (left_behind(recording, starts, ends, codes, names) if timed else ())
        if _within(each.start_ns, scope) and _within(each.end_ns, scope)
    ]
    failed = np.flatnonzero(events.labels("action").equals([OOM])).tolist()
    failures = [row for row in failed if _within(recording.time_of(row + 1), scope)]
    drawn = over_time(recording, codes, names, (first, last))
    series = replace(
        drawn,
        rank=snapshot.rank,
        device=device,
        iterations_ns=np.union1d(starts, ends).tolist() if drawn.clock else (),
        failures_ns=[time for time in recording.times[failures].tolist() if time >= 0],
    )
    notes = (
        _reserve_note(segments, blocks, recording, peak),
        _failure_note(events, failures, recording),
        _growth_note(growth, source),
    )
    peak_ns = recording.time_of(peak)
    memory = DeviceMemory(int(live.max()), peak_ns, int(live[-1]), held, series, growth)
    return memory, [f"Device {device}{note}." for note in notes if note]


def _within(time: int | None, scope: Scope) -> bool:
    low, high = scope.from_ns, scope.to_ns
    return time is None or ((low is None or time >= low) and (high is None or time <= high))


def _reserve_note(segments: Frame, blocks: Frame, recording: Allocations, peak: int) -> str:
    """Reserved against allocated memory; what follows the name of the device.

    Unused is what was neither asked for nor what the allocator rounds that up by; a new allocation
    larger than the largest unused piece needs new memory.
    """
    reserved = int(segments.ints("bytes").sum())
    if not reserved:
        return ""
    active = blocks.labels("state").where(lambda state: state.startswith("active"))
    size, requested = blocks.ints("bytes"), int(blocks.ints("requested_bytes")[active].sum())
    free, unused = size[~active], reserved - int(size[active].sum())
    return (
        f" at the dump: {format_bytes(reserved)} reserved, {format_bytes(requested)} allocated; "
        f"{format_bytes(unused)} ({100 * unused / reserved:.0f} %) reserved and unused in "
        f"{counted(len(free), 'piece')}, the largest {format_bytes(int(free.max(initial=0)))}. "
        f"At the peak {format_bytes(int(recording.reserved[peak]))} were reserved"
    )


def _failure_note(events: Frame, failures: Sequence[int], recording: Allocations) -> str:
    """On the first allocation that failed: what was asked for, and what there was."""
    if not failures:
        return ""
    row = failures[0]
    time, free = recording.time_of(row + 1), int(events.ints("device_free_bytes")[row])
    when = "" if time is None else f", first at {format_time(time)}"
    left = f"; the device had {format_bytes(free)} free" if free >= 0 else ""
    asked, live = int(events.ints("bytes")[row]), int(recording.live[row])
    return (
        f" ran out of memory {counted(len(failures), 'time')}{when}: {format_bytes(asked)} were "
        f"asked for with {format_bytes(live)} allocated and "
        f"{format_bytes(int(recording.reserved[row]) - live)} reserved and unused{left}"
    )


def _growth_note(growth: Sequence[MemoryGrowth], source: str) -> str:
    if not growth:
        return ""
    left = sorted(each.left_bytes for each in growth)
    most = max(growth, key=lambda each: each.left_bytes)
    text = (
        f": {counted(len(growth), 'iteration')} ({source}), in the median "
        f"{format_bytes(left[(len(left) - 1) // 2])} are left behind; iteration "
        f"{growth.index(most) + 1} leaves most, {format_bytes(most.left_bytes)}"
    )
    return text + f", {format_bytes(most.grown_bytes)} at {most.grown_at}" * (most.grown_bytes > 0)
