"""kernels: which kernels the GPU time went to, as nsys stats cuda_gpu_kern_sum counts it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Unpack

from nsightpy.analysis import ranking
from nsightpy.analysis.tally import Tally, merge
from nsightpy.errors import require_choice
from nsightpy.frames import ColumnData, Frame, Labels
from nsightpy.query.parameters import NAME_COLUMNS
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.query.splits import (
    distinct_parts,
    in_processes,
    parse_splits,
    shown,
    split_field,
)
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Table

_SPLIT_COLUMNS = {
    "rank": ("pid",),
    "process": ("pid",),
    "device": ("device",),
    "stream": ("stream",),
    "grid": ("grid_x", "grid_y", "grid_z"),
    "block": ("block_x", "block_y", "block_z"),
}
FIELDS = ranking.time_fields()
MORE_FIELDS = tuple(split_field(split) for split in _SPLIT_COLUMNS)


@command_function
def kernels(
    reports: Paths,
    *,
    by: str | Iterable[str] = (),
    name: str = "demangled",
    top: int | None = None,
    **common: Unpack[Common],
) -> Table:
    """Kernels by total time over all reports; `by` splits them.

    Columns and figures are those of `nsys stats --report cuda_gpu_kern_sum`; times in ns.
    `by`: any of rank, device, process, stream, grid, block; a text with commas, or a list.
    Raises UsageError for an unknown split or name, ReportError for unreadable reports.
    """
    splits = parse_splits(by, _SPLIT_COLUMNS)
    require_choice("name", name, NAME_COLUMNS)
    request = Request.of(reports, **common)
    path_parts = distinct_parts(request.ranks.inputs)
    splits = in_processes(splits, request.ranks.reports)
    work = partial(
        kernel_tally, splits=splits, name=name, scope=request.scope, path_parts=path_parts
    )
    tallies = request.map(work, ranked="rank" in splits).values
    statistics = merge(tallies).statistics()
    table = ranking.rank_by_time("kernels", statistics, [split_field(s) for s in splits])
    return request.finish(table.first(top, of_each="rank"))


def kernel_tally(
    report: SystemReport, *, splits: Sequence[str], name: str, scope: Scope, path_parts: int = 0
) -> Tally:
    """Durations per (splits..., name) of one report; what other processes merge."""
    label = NAME_COLUMNS[name]
    needed = ("start_ns", "end_ns", *(c for split in splits for c in _SPLIT_COLUMNS[split]))
    frame = scope.narrow(report, report.frame("kernels", wanted(scope, needed, label)))
    return tally_of(report, frame, splits, label, path_parts)


def tally_of(
    report: SystemReport, frame: Frame, splits: Sequence[str], label: str, path_parts: int = 0
) -> Tally:
    """Durations per (splits..., name) of a kernels frame."""
    keyed: dict[str, ColumnData] = {
        "start_ns": frame["start_ns"],
        "end_ns": frame["end_ns"],
        **{split: _split(frame, split) for split in splits},
        "label": named(frame, label),
    }
    tally = ranking.tally_durations(Frame(keyed), (*splits, "label"))
    return shown(tally, report, splits, path_parts)


def _split(frame: Frame, split: str) -> ColumnData:
    if split in ("grid", "block"):
        return ranking.shaped(frame, split)
    return frame[_SPLIT_COLUMNS[split][0]]


def wanted(scope: Scope, columns: tuple[str, ...], label: str) -> tuple[str, ...]:
    """These columns of kernels, those that name them, and those that the scope needs."""
    names = (label, "name") if label == "mangled_name" else (label,)
    return tuple(dict.fromkeys((*columns, *names, *scope.columns)))


def named(frame: Frame, label: str) -> Labels:
    """The wanted names; a kernel without a mangled one goes by its demangled name, as in nsys."""
    names = frame.labels(label)
    if label != "mangled_name" or "" not in names.values:
        return names
    demangled = frame.labels("name")
    shift = len(names.values)
    empty = names.equals([""])
    codes = names.codes.copy()
    codes[empty] = demangled.codes[empty] + shift
    return Labels(codes, names.values + demangled.values).merged()
