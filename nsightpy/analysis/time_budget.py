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

    def inside(self, window: intervals.Spans) -> Activity:
        """What it did in a window of one or several parts."""
        return Activity(*(spans & window for spans in self.sets))


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """The division of one window of one device, which may have holes, in ns.

    Invariants: compute_ns <= busy_ns <= window_ns; busy_ns + idle_ns = window_ns.
    """

    window: intervals.Spans
    busy_ns: int
    compute_ns: int
    communication_ns: int
    memory_ns: int
    overlap_ns: int
    exposed_communication_ns: int
    copy_only_ns: int
    opaque_graph_ns: int

    @property
    def start_ns(self) -> int:
        return int(self.window.starts[0]) if len(self.window) else 0

    @property
    def end_ns(self) -> int:
        return int(self.window.ends[-1]) if len(self.window) else 0

    @property
    def window_ns(self) -> int:
        return self.window.total

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


def activity_at(
    place: tuple[int, int],
    kernels: Frame,
    communication: NDArray[np.bool_],
    operations: Frame,
    graphs: Frame,
) -> Activity:
    """The activity of one of several devices, by process and number."""
    at = dict(zip(("pid", "device"), place, strict=True))
    own = communication[kernels.rows_at(**at)]
    return activity(kernels.at(**at), own, operations.at(**at), graphs.at(**at))


def time_budget(
    active: Activity,
    start_ns: int | None = None,
    end_ns: int | None = None,
    window: intervals.Spans | None = None,
) -> TimeBudget:
    """The budget of a window; by default from the first start to the last end of anything done."""
    if window is None:
        sets = [spans for spans in active.sets if len(spans)]
        if start_ns is None:
            start_ns = min((int(spans.starts[0]) for spans in sets), default=end_ns or 0)
        if end_ns is None:
            end_ns = max((int(spans.ends[-1]) for spans in sets), default=start_ns)
        window = intervals.Spans.of(start_ns, end_ns)
    inside = active.inside(window)
    compute, communication, memory, graphs = inside.sets
    # by inclusion and exclusion: compute has millions of intervals, the others few
    overlap_ns = intervals.overlap_total(communication, compute)
    both = communication & memory
    hidden_ns = both.total - intervals.overlap_total(both, compute)
    alone_ns = communication.total - overlap_ns - hidden_ns
    copy_only_ns = memory.total - intervals.overlap_total(memory, compute) - hidden_ns
    return TimeBudget(
        window=window,
        busy_ns=compute.total + alone_ns + copy_only_ns + hidden_ns,
        compute_ns=compute.total,
        communication_ns=communication.total,
        memory_ns=memory.total,
        overlap_ns=overlap_ns,
        exposed_communication_ns=alone_ns,
        copy_only_ns=copy_only_ns,
        opaque_graph_ns=graphs.total,
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
    budgets = {}
    for place in places_of(kernels, operations, graphs):
        window = None if windows is None else windows.get(place, intervals.NOTHING)
        if window is None or len(window):
            active = activity_at(place, kernels, is_comm, operations, graphs)
            budgets[place] = time_budget(active, start_ns, end_ns, window)
    return budgets


def places_of(*frames: Frame) -> list[tuple[int, int]]:
    """The (pid, device) pairs that occur in frames, ascending."""
    pairs = (distinct_pairs(frame.ints("pid"), frame.ints("device"))[0] for frame in frames)
    return sorted({place for places in pairs for place in places})
