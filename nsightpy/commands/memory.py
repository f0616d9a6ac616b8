"""memory: copies and sets by time and size, as nsys stats cuda_gpu_mem_time_sum and _size_sum."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, TypeAlias

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.intervals import spans_of, union, union_of
from nsightpy.analysis.memory.copies import believable
from nsightpy.analysis.ranking import Column
from nsightpy.analysis.tally import Key, Tally, tally
from nsightpy.analysis.time_budget import places_of
from nsightpy.commands.stats.operations import OPERATIONS, events
from nsightpy.query import Option, Parts, Question, Scope, SystemReport
from nsightpy.query.command import command
from nsightpy.query.splits import in_processes, parse_splits, split_field
from nsightpy.results import Field, Table

_SPLITS = ("rank", "device", "process", "stream", "memory")
_EXPOSED = Field("exposed_ns", "time", heading="exposed", importance=7)
_SPLIT = replace(
    OPERATIONS,
    columns=(
        *OPERATIONS.columns,
        Column(_EXPOSED, lambda ranking: ranking.values("total of exposed")),
    ),
    measures=(*OPERATIONS.measures, "exposed"),
)
# Time and sizes, and with splits the time without a kernel beside it; the fastest memory.
_Part: TypeAlias = tuple[list[Tally], int]


@command(*OPERATIONS.fields, more=(*map(split_field, _SPLITS), _EXPOSED), keys=OPERATIONS.identity)
def memory(
    *,
    by: Annotated[
        str | Iterable[str],
        Option(
            "Split by rank, device, process, stream, memory (pageable, pinned, managed).", "LIST"
        ),
    ] = "",
) -> Question[Table]:
    """Figures are those of `nsys stats` cuda_gpu_mem_time_sum and cuda_gpu_mem_size_sum.

    Times in ns, MB is 10^6 bytes, GB/s bytes per ns. --by adds splits in front, and at the end how
    long the operations ran with no kernel beside them.
    """
    splits = parse_splits(by, _SPLITS)

    def ranked(parts: Parts[_Part]) -> Table:
        tallied = Parts(parts.request, [(report, part) for report, (part, _) in parts.results])
        table = (_SPLIT if splits else OPERATIONS).table("memory", splits, tallied)
        return believable(table, max((fastest for _, fastest in parts.values), default=0))

    work = partial(_part, splits=splits)
    return Question(work, ranked, identified="rank" in splits, of_each="rank")


def _part(report: SystemReport, scope: Scope, *, splits: tuple[str, ...]) -> _Part:
    tallies = OPERATIONS.work(splits)(report, scope, label="name")
    exposed = [_exposed(report, scope, in_processes(splits))] if splits else []
    return [*tallies, *exposed], fastest_memory(report)


def fastest_memory(report: SystemReport) -> int:
    """The bandwidth of the fastest device memory of a report, in bytes per second; 0 if unknown."""
    speeds = report.frame("devices").ints("memory_bytes_per_s")
    return int(speeds.max(initial=0))


def _exposed(report: SystemReport, scope: Scope, splits: Sequence[str]) -> Tally:
    """How long the operations of each group ran with no kernel on their device, in ns."""
    columns = ("start_ns", "end_ns", "pid", "device")
    everything = [
        scope.within(report, report.frame(name, columns)) for name in ("kernels", "graph_launches")
    ]
    keys = (*splits, "name")
    operations = events(
        report, scope, "name", name="memory_operations", splits=(*splits, "process", "device")
    )
    found: list[tuple[Key, int]] = []
    for pid, device in places_of(operations):
        kernels = union_of(spans_of(frame.at(pid=pid, device=device)) for frame in everything)
        on_device = operations.take(operations.rows_at(pid=pid, device=device))
        groups = group_by(on_device, keys)
        for code, key in enumerate(groups.keys):
            rows = groups.codes == code
            ran = union(on_device.ints("start_ns")[rows], on_device.ints("end_ns")[rows])
            found.append((key, (ran - kernels).total))
    totals = np.asarray([total for _, total in found], dtype=np.int64)
    return tally(np.arange(len(found), dtype=np.int32), totals, [key for key, _ in found])
