"""breakdown --bins: what share of each moment devices were busy, and with what, on one clock."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from nsightpy.analysis.binned import edges_of, shares
from nsightpy.analysis.communication import doubtful_names, is_communication
from nsightpy.analysis.intervals import Spans, union_of
from nsightpy.analysis.time_budget import activity_at, places_of
from nsightpy.frames import Floats, Ints
from nsightpy.query import Parts, Question, Scope, SystemReport
from nsightpy.query.device_time import read_work, suspect_note
from nsightpy.query.rank_alignment import CommonClock
from nsightpy.query.sampled_metrics import (
    NO_SAMPLES,
    SHARES,
    GpuKey,
    gpu_key,
    gpus_of,
    sampled_shares,
)
from nsightpy.readers.activity import bounds_of
from nsightpy.results import Field, Table, Value, rank_order
from nsightpy.results.series import stretches_of

BUSY = ("busy_share", "compute_share", "communication_share", "memory_share")
OVER_TIME = (
    Field("rank", "id", importance=1),
    Field("device", "id", importance=2),
    Field("start_ns", "moment", importance=3),
    Field("duration_ns", "time", importance=4),
    *(Field(name, "share", 4) for name in (*BUSY, *SHARES)),
)
MOST_BINS = 100_000
# What a terminal shows of a device over time.
CURVE, HEIGHTS = 25, "▁▂▃▄▅▆▇█"

# The edges of the stretches in the own time of each process, by report and process.
Edges = Mapping[tuple[str, int], Ints]


# Rank, process and number of a device, which GPU it is, and its shares in the order of BUSY.
_Device: TypeAlias = tuple[int | None, int, int, GpuKey, list[Floats]]
# A report's devices, what it sampled of GPUs, kernels that may be communication.
_Shares: TypeAlias = tuple[list[_Device], dict[GpuKey, Floats], list[str]]
# A process, and from when to when its GPU work was.
Extent: TypeAlias = tuple[int, int, int]


def over_time(bins: int, communication: tuple[str, ...]) -> Question[Table]:
    """Each device's shares of time in so many equal stretches, on the clock of all ranks.

    The stretches run from the first start to the last end of any GPU work, or from --from to --to.
    A share is the measure of a union over all streams, divided by the captured part of the stretch.
    Figures are None where nothing was captured, and outside the windows of --nvtx and --iteration.
    """

    def divided(parts: Parts[list[Extent]]) -> Table | Question[Table]:
        edges = _edges(parts.results, parts.scope, parts.clock, bins)
        if edges is None:
            return Table("breakdown", OVER_TIME, ())
        of_reports = {
            (str(report.path), pid): parts.clock.own_times(str(report.path), pid, edges)
            for report in parts.ranks.readable
            for pid in report.pids
        }
        work = partial(_shares, edges=of_reports, communication=communication)
        return Question(work, partial(_table, edges=edges), ranked=True)

    return Question(_extents, divided, ranked=True, clock=True)


def _table(parts: Parts[_Shares], *, edges: Ints) -> Table:
    devices = [device for own, *_ in parts.values for device in own]
    devices.sort(key=lambda device: (*rank_order(device[0]), *device[1:3]))
    samples = [part for _, part, _ in parts.values]
    starts, lengths = edges[:-1].tolist(), np.diff(edges).tolist()
    rows: list[tuple[Value, ...]] = []
    for rank, _, number, gpu, busy in devices:
        sampled = np.full((len(SHARES), len(lengths)), np.nan)
        # what any report sampled of the GPU
        for figures in (part[gpu] for part in samples if gpu in part):
            sampled = np.where(np.isnan(sampled), figures, sampled)
        values = np.vstack([*busy, *sampled]).T.tolist()
        for start, length, row in zip(starts, lengths, values, strict=True):
            known = (None if math.isnan(value) else value for value in row)
            rows.append((rank, number, start, length, *known))
    doubtful = dict.fromkeys(name for *_, names in parts.values for name in names)
    several = parts.clock.notes if len(parts.ranks) > 1 else ()
    unsampled = () if any(samples) else (NO_SAMPLES,)
    notes = (*map(suspect_note, doubtful), *unsampled, *several)
    return Table("breakdown", OVER_TIME, tuple(rows), notes=notes)


def _edges(
    placed: Sequence[tuple[SystemReport, list[Extent]]],
    scope: Scope,
    clock: CommonClock,
    bins: int,
) -> Ints | None:
    """The edges of the stretches on the common clock; None without GPU work in scope."""
    bounds = [
        clock.aligned(str(report.path), pid, np.asarray(ends, dtype=np.int64))
        for report, extents in placed
        for pid, *ends in extents
    ]
    if not bounds:
        return None
    low = int(np.min(bounds)) if scope.from_ns is None else scope.from_ns
    high = int(np.max(bounds)) if scope.to_ns is None else scope.to_ns
    return edges_of(low, max(high, low + 1), bins)


def _extents(report: SystemReport, scope: Scope) -> list[Extent]:
    """When the GPU work in scope was, by process, in ns of the report."""
    frames = [scope.narrow(report, frame) for frame in read_work(report, scope)]
    pids = sorted({pid for pid, _ in places_of(*frames)})
    bounds = ((pid, bounds_of(frame.at(pid=pid) for frame in frames)) for pid in pids)
    return [(pid, *ends) for pid, ends in bounds if ends is not None]


def _shares(
    report: SystemReport, scope: Scope, *, edges: Edges, communication: tuple[str, ...]
) -> _Shares:
    work = read_work(report, scope)
    windows = scope.windows(report)
    captured = Spans.of(*(report.bounds() or (0, 0)))
    own = {pid: times for (path, pid), times in edges.items() if path == str(report.path)}
    communicates = is_communication(work.kernels.labels("name"), communication)
    first = next(iter(own.values()), None)
    gpus, devices = gpus_of(report), []
    for pid, device in places_of(*work):
        window = captured if windows is None else windows.get((pid, device), Spans.of(0, 0))
        active = activity_at((pid, device), work.kernels, communicates, *work[1:])
        did = active.inside(window)
        sets = (union_of(did.sets), did.compute, did.communication, did.memory)
        # rows of damaged exports name processes that the report does not
        stretches = own.get(pid, first)
        if stretches is not None:
            figures = [shares(spans, window, stretches) for spans in sets]
            gpu = gpu_key(report, gpus.get((pid, device), device))
            devices.append((report.rank_of(pid)[0], pid, device, gpu, figures))
    sampled = {} if first is None else sampled_shares(report, first)
    doubtful = doubtful_names(scope.within(report, work.kernels), communication)
    return devices, sampled, doubtful


def by_device(table: Table) -> Table:
    """The table for people: one row a device, the means of its stretches, and busy over time."""
    shown = (*table.fields[:2], *table.fields[4:], Field("busy_over_time", "text"))
    count, rows = stretches_of(table), []
    for first in range(0, len(table.rows), count):
        stretches = table.rows[first : first + count]
        means = (_mean([row[at] for row in stretches]) for at in range(4, len(table.fields)))
        busy = np.array_split([np.nan if row[4] is None else row[4] for row in stretches], CURVE)
        curve = "".join(_height(part) for part in busy if len(part))
        rows.append((*stretches[0][:2], *means, curve))
    return replace(table, fields=shown, rows=tuple(rows))


def _mean(values: Sequence[Value]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _height(shares: Floats) -> str:
    """The mean of some shares as the height of a character; a blank for unknown."""
    known = shares[~np.isnan(shares)]
    return HEIGHTS[min(int(known.mean() * len(HEIGHTS)), 7)] if len(known) else " "
