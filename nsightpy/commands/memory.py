"""memory: copies and sets by time and size, as nsys stats cuda_gpu_mem_time_sum and _size_sum."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

from nsightpy.analysis import ranking
from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.intervals import difference, spans_of, union, union_of
from nsightpy.analysis.memory.copies import believable, host_memory
from nsightpy.analysis.tally import Key, Tally, merge
from nsightpy.analysis.time_budget import places_of
from nsightpy.frames import ColumnData, Frame
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.query.splits import (
    distinct_parts,
    in_processes,
    parse_splits,
    shown,
    shown_key,
    split_field,
)
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Table, Value

SPLITS = ("rank", "device", "process", "stream", "memory")
EXPOSED = Field("exposed_ns", "ns")
FIELDS = ranking.memory_fields()
MORE_FIELDS = (*(split_field(split) for split in SPLITS), EXPOSED)
_COLUMNS = ("start_ns", "end_ns", "operation", "bytes")
_PLACED = ("start_ns", "end_ns", "pid", "device")


@dataclass(frozen=True, slots=True)
class _Part:
    """Time, size and time without a kernel beside it, by group, of one report."""

    time: Tally
    sizes: Tally
    exposed_ns: dict[Key, int]
    fastest: int


@command_function
def memory(
    reports: Paths,
    *,
    by: str | Iterable[str] = (),
    top: int | None = None,
    **common: Unpack[Common],
) -> Table:
    """Memory operations by total time: time in ns, size in MB (10^6 bytes), GB/s = bytes per ns.

    `by` splits by rank, device, process, stream, or memory (pageable, pinned, managed on the host);
    then exposed_ns says how long the operations of a group ran with no kernel beside them.
    Raises UsageError for an unknown split.
    """
    splits = parse_splits(by, SPLITS)
    request = Request.of(reports, **common)
    path_parts = distinct_parts(request.ranks.inputs)
    splits = in_processes(splits, request.ranks.reports)
    work = partial(_tallied, splits=splits, scope=request.scope, path_parts=path_parts)
    parts = request.map(work, ranked="rank" in splits).values
    time = merge([part.time for part in parts]).statistics()
    sizes = merge([part.sizes for part in parts]).statistics()
    fastest = max((part.fastest for part in parts), default=0)
    ranked = ranking.rank_memory(time, sizes, [split_field(split) for split in splits])
    table = believable(ranked.first(top, of_each="rank"), fastest)
    if not splits:
        return request.finish(table, *table.notes)
    exposed: dict[Key, int] = {}
    for part in parts:
        for key, lost in part.exposed_ns.items():
            exposed[key] = exposed.get(key, 0) + lost
    return request.finish(_with_exposed(table, splits, exposed), *table.notes)


def _with_exposed(table: Table, splits: Sequence[str], exposed: dict[Key, int]) -> Table:
    name = table.columns.index("Operation")
    keys = (tuple(map(_plain, (*row[: len(splits)], row[name]))) for row in table.rows)
    rows = tuple((*row, exposed.get(key, 0)) for row, key in zip(table.rows, keys, strict=True))
    return replace(table, fields=(*table.fields, EXPOSED), rows=rows)


def _plain(value: Value) -> int | str | None:
    return value if isinstance(value, int | str) else None


def _tallied(
    report: SystemReport, *, splits: Sequence[str], scope: Scope, path_parts: int
) -> _Part:
    columns = dict.fromkeys((*_COLUMNS, *scope.columns))
    if splits:
        columns |= dict.fromkeys((*_PLACED, "stream", "source_memory", "target_memory"))
    frame = scope.narrow(report, report.frame("memory_operations", tuple(columns)))
    keyed: dict[str, ColumnData] = {name: frame[name] for name in _COLUMNS}
    keyed |= {split: _split(frame, split) for split in splits}
    by = (*splits, "operation")
    whole = Frame(keyed)
    return _Part(
        shown(ranking.tally_durations(whole, by), report, splits, path_parts),
        shown(ranking.tally_bytes(whole, by), report, splits, path_parts),
        _exposed(report, scope, frame, whole, splits, path_parts) if splits else {},
        fastest_memory(report),
    )


def fastest_memory(report: SystemReport) -> int:
    """The bandwidth of the fastest device memory of a report, in bytes per second; 0 if unknown."""
    speeds = report.frame("devices").ints("memory_bytes_per_s")
    return int(speeds.max(initial=0))


def _split(frame: Frame, split: str) -> ColumnData:
    if split == "memory":
        return host_memory(frame)
    return frame["pid" if split in ("rank", "process") else split]


def _exposed(
    report: SystemReport,
    scope: Scope,
    placed: Frame,
    whole: Frame,
    splits: Sequence[str],
    path_parts: int,
) -> dict[Key, int]:
    """How long the operations of each group ran with no kernel on their device, in ns."""
    everything = [
        scope.within(report, report.frame(name, _PLACED)) for name in ("kernels", "graph_launches")
    ]
    lost: dict[Key, int] = {}
    for pid, device in places_of(placed):
        kernels = union_of(spans_of(frame.at(pid=pid, device=device)) for frame in everything)
        mine = placed.rows_at(pid=pid, device=device)
        on_device = whole.take(mine)
        groups = group_by(on_device, (*splits, "operation"))
        for code, key in enumerate(groups.keys):
            rows = groups.codes == code
            ran = union(on_device.ints("start_ns")[rows], on_device.ints("end_ns")[rows])
            shown_as = shown_key(key, report, splits, path_parts)
            lost[shown_as] = lost.get(shown_as, 0) + difference(ran, kernels).total
    return lost
