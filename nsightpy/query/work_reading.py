"""The frames that the graph of a report's work is made of, and its parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.intervals import union_of
from nsightpy.analysis.iterations.steady import STEADY
from nsightpy.analysis.selection.launch_places import VARIANT, variant_labels
from nsightpy.analysis.work_graph.host_chain import CALL_COLUMNS
from nsightpy.analysis.work_graph.launched_work import (
    EVENT_COLUMNS,
    SYNCHRONIZATION_COLUMNS,
    WORK_COLUMNS,
    Work,
    WorkFrames,
    calls_with_mpi,
)
from nsightpy.frames import Frame, Ints
from nsightpy.query.device_time import KERNEL_COLUMNS, MEMORY_COLUMNS, OPERATION_COLUMNS, read_work
from nsightpy.query.rank_alignment import RankPart, rank_part
from nsightpy.query.scope import Scope
from nsightpy.query.steps import places_in
from nsightpy.reports.system import SystemReport

# What runs in a stretch was launched so long before it at most, or as long as it lasts; and so soon
# after it every device begins something.
BESIDE_NS = 1_000_000_000
# From one moment to another in a report's own time (ns); None: all of it.
Stretch = tuple[int, int] | None
_MPI_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name")


@dataclass(frozen=True)
class Recorded:
    """What a report says of its work before a graph is made of it.

    `steps`: when those iterations of each process begin and end that are wanted, by pid; without
    any the `stretch` is. `operations` are in one of those iterations, or else in the stretch.
    """

    rank_part: RankPart
    steps: Mapping[int, tuple[Ints, Ints]]
    stretch: Stretch
    operations: int


def recorded(
    report: SystemReport,
    scope: Scope,
    *,
    work: Work | None = None,
    is_steady: bool | None = None,
    part: RankPart | None = None,
) -> Recorded:
    """What a report says of the work in its chosen iterations, steady state or stretch of time.

    `work`, whether it `is_steady` and the rank's `part` are found out where they are not given.
    """
    work = read_work(report, scope) if work is None else work
    if is_steady is None:
        is_steady = bool(scope.steady_places(report, work))
    steps = _wanted_steps(report, scope, is_steady=is_steady)
    extent, stretch = report.extent, None
    if scope.is_timed:
        low, high = scope.bounds(report)
        first, last = extent.start_ns or 0, extent.end_ns or 0
        stretch = first if low is None else low, last if high is None else high
    inside, count = stretch, 1
    if steps:
        low = min(int(start[0]) for start, _ in steps.values())
        inside = low, max(int(end[-1]) for _, end in steps.values())
        count = max(len(start) for start, _ in steps.values())
    starts = np.concatenate([frame.ints("start_ns") for frame in work])
    if inside is not None:
        starts = starts[(starts >= inside[0]) & (starts < inside[1])]
    part = rank_part(report, scope) if part is None else part
    return Recorded(part, steps, stretch, len(starts) // count)


def _wanted_steps(
    report: SystemReport, scope: Scope, *, is_steady: bool
) -> dict[int, tuple[Ints, Ints]]:
    """When the chosen iterations of each process begin and end; the steady ones if `is_steady`.

    Of an NVTX range, and of iterations cut by a stretch of time, the time on the devices instead.
    """
    if scope.nvtx is not None or (scope.iteration is not None and scope.is_timed):
        places = scope.windows(report) or {}
        spans = {
            pid: union_of(time for (owner, _), time in places.items() if owner == pid)
            for pid in sorted({pid for pid, _ in places})
        }
        return {pid: (time.starts, time.ends) for pid, time in spans.items() if len(time)}
    if scope.iteration is None and not is_steady:
        return {}
    every = scope.iterations(report)
    rows = {pid: places_in(known, scope.iteration or STEADY) for pid, known in every.items()}
    return {pid: (every[pid].start[at], every[pid].end[at]) for pid, at in rows.items() if len(at)}


def work_frames(
    report: SystemReport,
    communication: tuple[str, ...] = (),
    stretch: Stretch = None,
    *,
    by_variant: bool = False,
) -> WorkFrames:
    """All work of a report with its calls, waits and events; or what is needed of a stretch.

    `by_variant`: kernels have the labels of their variants as names.
    """

    def read(name: str, columns: Sequence[str]) -> Frame:
        if stretch is None:
            return report.frame(name, columns)
        low, high = stretch
        beside = max(high - low, BESIDE_NS)
        return report.started_between(name, columns, low - beside, high + beside)

    kernels = read("kernels", (*KERNEL_COLUMNS, *(VARIANT if by_variant else ())))
    communicates = is_communication(kernels.labels("name"), communication)
    if by_variant:
        names = variant_labels(kernels)
        kernels = Frame({**kernels.select(WORK_COLUMNS), "name": names})
    return WorkFrames(
        Work(
            kernels,
            read("memory_operations", (*OPERATION_COLUMNS, *MEMORY_COLUMNS)),
            read("graph_launches", WORK_COLUMNS),
        ),
        communicates,
        calls_with_mpi(read("api_calls", CALL_COLUMNS), read("mpi_calls", _MPI_COLUMNS)),
        read("synchronizations", SYNCHRONIZATION_COLUMNS),
        report.frame("cuda_events", EVENT_COLUMNS),
        str(report.path),
    )


def graph_parts(
    report: SystemReport,
    _: Scope,
    *,
    stretches: Mapping[str, Sequence[Stretch]],
    communication: tuple[str, ...],
    by_variant: bool,
) -> list[WorkFrames]:
    """The parts of a report's graph that have work: each of its stretches is one block."""
    parts = []
    for block, stretch in enumerate(stretches.get(str(report.path), ())):
        part = work_frames(report, communication, stretch, by_variant=by_variant)
        part = part if stretch is None else part.between(*stretch)
        parts.append(replace(part, block=block))
    return [part for part in parts if any(map(len, part.work))]
