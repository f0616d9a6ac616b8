"""Events under a name: kernels, NVTX ranges, what ranges launched, collectives; one frame for all.

The frame has start_ns, end_ns, pid, device (-1 for ranges on the host) and name.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.nvtx.membership import alike, named
from nsightpy.analysis.nvtx.projection import (
    CALL_COLUMNS,
    OPERATION_COLUMNS,
    RANGE_COLUMNS,
    launched,
    project,
)
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.analysis.time_budget import places_of
from nsightpy.frames import Frame, Labels
from nsightpy.names import function_name
from nsightpy.query.options import NAME_COLUMNS
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.units import format_bytes

KINDS = ("kernel", "collective", "range", "projection")
COLUMNS = ("start_ns", "end_ns", "pid", "device", "name")
_GPU = ("kernels", "memory_operations", "graph_launches")
CLOSE = 5
_ON_HOST = -1


def named_events(
    report: SystemReport, scope: Scope, kind: str, of: str | None = None, name: str = "demangled"
) -> Frame:
    """The events of a kind in scope, by start; with `of` those of that name, * for anything.

    A kernel may be called by its demangled, base or mangled name, a collective by its operation or
    with its size, a range as RANGE[@DOMAIN]. `name` says which name of a kernel the rows carry.
    """
    events = _READERS[kind](report, scope, of, name)
    return events.ordered()


def close_names(of: str, names: Iterable[str]) -> list[str]:
    """The names most like the one that was asked for, best first."""
    lower = {name.lower(): name for name in sorted(set(names), reverse=True) if name}
    wanted = of.replace("*", "").lower()
    inside = sorted((low for low in lower if wanted and wanted in low), key=len)
    near = difflib.get_close_matches(wanted, lower, n=CLOSE, cutoff=0.4)
    return [lower[low] for low in dict.fromkeys([*inside[:CLOSE], *near])][:CLOSE]


def _kernels(report: SystemReport, scope: Scope, of: str | None, name: str) -> Frame:
    label = NAME_COLUMNS[name]
    names = tuple(NAME_COLUMNS.values()) if of is not None else (label,)
    frame = _narrowed(report, scope, "kernels", names)
    if of is not None:
        hits = np.zeros(frame.rows, dtype=np.bool_)
        for column in names:
            hits |= alike(frame.labels(column), of)
        functions = frame.labels("name").renamed(function_name)
        frame = frame.take(hits | alike(functions, of))
    return _framed(frame, frame.labels(label))


def _collectives(report: SystemReport, scope: Scope, of: str | None, _: str) -> Frame:
    frame = _narrowed(report, scope, "collectives", ("operation", "bytes"))
    groups = group_by(frame, ("operation", "bytes"))
    sizes = ((str(operation), int(size or 0)) for operation, size in groups.keys if frame.rows)
    texts = Labels(
        groups.codes,
        tuple(
            operation if size < 0 else f"{operation} of {format_bytes(size)}"
            for operation, size in sizes
        ),
    ).merged()
    if of is not None:
        hits = alike(frame.labels("operation"), of) | alike(texts, of)
        return _framed(frame.take(hits), texts.take(hits))
    return _framed(frame, texts)


def _ranges(report: SystemReport, scope: Scope, of: str | None, _: str) -> Frame:
    ranges = _chosen_ranges(report, scope, of)
    host = np.full(ranges.rows, _ON_HOST, dtype=np.int64)
    return _framed(Frame({**ranges, "device": host}), folded(ranges.labels("name")))


def _projections(report: SystemReport, scope: Scope, of: str | None, _: str) -> Frame:
    """The intervals in which what a range launched ran, a row for each range and device."""
    ranges = _chosen_ranges(report, scope, of)
    parts = [scope.narrow(report, report.frame(kind, OPERATION_COLUMNS)) for kind in _GPU]
    operations, calls = Frame.concatenate(parts), report.frame("api_calls", CALL_COLUMNS)
    projected = []
    for pid, device in places_of(operations):
        done = project(ranges, launched(operations.at(pid=pid, device=device), calls))
        some = done.found & (ranges.ints("pid") == pid)
        columns = {
            "start_ns": done.start[some],
            "end_ns": done.end[some],
            "pid": np.full(int(some.sum()), pid, dtype=np.int64),
            "device": np.full(int(some.sum()), device, dtype=np.int64),
        }
        projected.append(Frame({**columns, "name": folded(ranges.labels("name")).take(some)}))
    return (
        Frame.concatenate(projected)
        if projected
        else _framed(ranges.take(_none(ranges)), Labels.of(()))
    )


def _chosen_ranges(report: SystemReport, scope: Scope, of: str | None) -> Frame:
    ranges = scope.narrow(report, report.frame("nvtx_ranges", RANGE_COLUMNS))
    if of is None:
        return ranges
    meant = named(of, ranges)
    return ranges.take(_none(ranges) if meant is None else meant.matches(ranges))


def _none(frame: Frame) -> np.typing.NDArray[np.bool_]:
    return np.zeros(frame.rows, dtype=np.bool_)


def _narrowed(report: SystemReport, scope: Scope, frame: str, more: Sequence[str]) -> Frame:
    columns = ("start_ns", "end_ns", "pid", "device", "correlation_id", *more)
    return scope.narrow(report, report.frame(frame, tuple(dict.fromkeys(columns))))


def _framed(frame: Frame, names: Labels) -> Frame:
    columns = {name: frame[name] for name in COLUMNS[:4] if name in frame}
    columns.setdefault("device", np.full(frame.rows, _ON_HOST, dtype=np.int64))
    return Frame({**columns, "name": names})


_READERS: dict[str, Callable[[SystemReport, Scope, str | None, str], Frame]] = {
    "kernel": _kernels,
    "collective": _collectives,
    "range": _ranges,
    "projection": _projections,
}
