"""How the time of a device divides: busy, compute, communication, copies, idle.

Every figure is the measure of a union over all streams, clipped to the window; work is never
added up and called time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis import intervals
from nsightpy.analysis.communication import is_communication
from nsightpy.frames import Frame, distinct_pairs


@dataclass(frozen=True, slots=True)
class Activity:
    """What one device did, as sets of time; `graphs` are CUDA graphs traced as a whole."""

    compute: intervals.Spans
    communication: intervals.Spans
    memory: intervals.Spans
    graphs: intervals.Spans

    @property
    def sets(self) -> tuple[intervals.Spans, intervals.Spans, intervals.Spans, intervals.Spans]:
        return self.compute, self.communication, self.memory, self.graphs

    @property
    def busy(self) -> intervals.Spans:
        return intervals.union_of(self.sets)

    def inside(self, window: intervals.Spans) -> Activity:
        """What it did in a window of one or several parts."""
        return Activity(*(spans & window for spans in self.sets))


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """The division of one window of one device, in ns; `parts` where the window has holes.

    Invariants: compute_ns <= busy_ns <= window_ns; busy_ns + idle_ns = window_ns.
    """

    start_ns: int
    end_ns: int
    busy_ns: int
    compute_ns: int
    communication_ns: int
    memory_ns: int
    overlap_ns: int
    exposed_communication_ns: int
    copy_only_ns: int
    opaque_graph_ns: int
    parts: intervals.Spans | None = None

    @property
    def window(self) -> intervals.Spans:
        """The time that is divided."""
        whole = intervals.Spans.of(self.start_ns, self.end_ns)
        return whole if self.parts is None else self.parts

    @property
    def window_ns(self) -> int:
        return self.end_ns - self.start_ns if self.parts is None else self.parts.total

    @property
    def idle_ns(self) -> int:
        return self.window_ns - self.busy_ns


def activity(
    kernels: Frame, communication: NDArray[np.bool_], operations: Frame, graphs: Frame
) -> Activity:
    """The activity of one device from its kernels (and which are communication), copies, graphs."""
    starts, ends = kernels.ints("start_ns"), kernels.ints("end_ns")
    opaque = intervals.spans_of(graphs)
    compute = intervals.union(starts[~communication], ends[~communication])
    return Activity(
        compute | opaque,
        intervals.union(starts[communication], ends[communication]),
        intervals.spans_of(operations),
        opaque,
    )


def time_budget(
    active: Activity,
    start_ns: int | None = None,
    end_ns: int | None = None,
    parts: intervals.Spans | None = None,
) -> TimeBudget:
    """The budget of a window; by default from the first start to the last end of anything done.

    `parts` is a window with holes, and used instead of start and end.
    """
    if parts is not None:
        start_ns = int(parts.starts[0]) if len(parts) else 0
        end_ns = int(parts.ends[-1]) if len(parts) else 0
    sets = [spans for spans in active.sets if len(spans)]
    if start_ns is None:
        start_ns = min((int(spans.starts[0]) for spans in sets), default=end_ns or 0)
    if end_ns is None:
        end_ns = max((int(spans.ends[-1]) for spans in sets), default=start_ns)
    end_ns = max(start_ns, end_ns)
    inside = active.inside(intervals.Spans.of(start_ns, end_ns) if parts is None else parts)
    compute, communication, memory, graphs = inside.sets
    # by inclusion and exclusion: compute has millions of intervals, the others few
    overlap_ns = intervals.overlap_total(communication, compute)
    both = communication & memory
    hidden_ns = both.total - intervals.overlap_total(both, compute)
    alone_ns = communication.total - overlap_ns - hidden_ns
    copy_only_ns = memory.total - intervals.overlap_total(memory, compute) - hidden_ns
    return TimeBudget(
        start_ns=start_ns,
        end_ns=end_ns,
        busy_ns=compute.total + alone_ns + copy_only_ns + hidden_ns,
        compute_ns=compute.total,
        communication_ns=communication.total,
        memory_ns=memory.total,
        overlap_ns=overlap_ns,
        exposed_communication_ns=alone_ns,
        copy_only_ns=copy_only_ns,
        opaque_graph_ns=graphs.total,
        parts=parts,
    )


def device_budgets(
    kernels: Frame,
    operations: Frame,
    graphs: Frame,
    start_ns: int | None = None,
    end_ns: int | None = None,
    *,
    communication: Iterable[str] = (),
    windows: Mapping[tuple[int, int], intervals.Spans] | None = None,
) -> dict[tuple[int, int], TimeBudget]:
    """The budget of each process and device, from frames with pid, device and times.

    `communication` adds regular expressions to the known names of communication kernels.
    `windows` by (pid, device) are used instead of start and end; who has none is left out.
    """
    is_comm = is_communication(kernels.labels("name"), communication)
    places = places_of(kernels, operations, graphs)
    budgets = {}
    for pid, device in places:
        parts = None if windows is None else windows.get((pid, device), intervals.NOTHING)
        if parts is not None and not len(parts):
            continue
        own, own_comm, copies, traces = kernels, is_comm, operations, graphs
        if len(places) > 1:
            rows = kernels.rows_at(pid=pid, device=device)
            own, own_comm = kernels.take(rows), is_comm[rows]
            copies, traces = (frame.at(pid=pid, device=device) for frame in (operations, graphs))
        active = activity(own, own_comm, copies, traces)
        budgets[pid, device] = time_budget(active, start_ns, end_ns, parts)
    return budgets


def places_of(*frames: Frame) -> list[tuple[int, int]]:
    """The (pid, device) pairs that occur in frames, ascending."""
    pairs = (distinct_pairs(frame.ints("pid"), frame.ints("device"))[0] for frame in frames)
    return sorted({place for places in pairs for place in places})
