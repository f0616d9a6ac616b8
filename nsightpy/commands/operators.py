"""operators: host and device time of a framework's operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.operators.device_time import (
    CALL_COLUMNS,
    OPERATOR_COLUMNS,
    WORK_COLUMNS,
    operator_times,
    with_callees,
)
from nsightpy.analysis.operators.flop import operator_flop, peak_flop_per_s
from nsightpy.analysis.operators.inference import (
    GraphLaunches,
    Step,
    graph_launches,
    graph_lines,
    inference_steps,
    step_lines,
)
from nsightpy.analysis.operators.modules import module_paths
from nsightpy.analysis.operators.steps import StepFlop, step_flop, step_notes
from nsightpy.analysis.tally import Key, summed
from nsightpy.frames import Floats, Frame
from nsightpy.query.request import Common, Request, without_launch_call
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.query.splits import (
    distinct_parts,
    in_processes,
    parse_splits,
    shown_key,
    split_field,
)
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Abstention, Field, Table, Value, fields_in
from nsightpy.units import format_time

_SPLITS = {
    "shape": "shapes",
    "thread": "tid",
    "rank": "pid",
    "process": "pid",
    "module": "module",
}
FIELDS = (
    Field("operator", "text"),
    Field("calls"),
    *fields_in("ns", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns"),
    Field("model_flop_by_shapes", "flops"),
    Field("model_flop_per_s", "flops/s"),
    Field("mfu", "ratio", 4),
)
MORE_FIELDS = tuple(map(split_field, _SPLITS))
GPU_FRAMES = ("kernels", "memory_operations")
_SUMS = ("calls", "host_total", "host_self", "device_total", "device_self")
_FUNCTION = ("start_ns", "end_ns", "pid", "tid", "name")
_MORE = ("name", "shapes", "types", "inputs")
NO_SHAPES = Abstention(
    "The trace holds no shapes of inputs: rows are not split.",
    "torch.profiler.profile(record_shapes=True) records them.",
)


@dataclass(frozen=True)
class _Part:
    """The sums of one report by key, and what must be said about it.

    `launched`: whether what ran on a device shows what launched it.
    """

    rows: dict[Key, tuple[int, ...]]
    flop: dict[Key, tuple[float, float]]
    steps: StepFlop
    unlaunched_ns: int
    outside_ns: int
    recorded: bool
    launched: bool
    serving: list[Step]
    graphs: GraphLaunches | None


@command_function
def operators(
    reports: Paths,
    *,
    by: str | Iterable[str] = (),
    top: int | None = None,
    **common: Unpack[Common],
) -> Table:
    """Operators by their own device time, then host time.

    `by` splits them: shape, thread, rank, process, module. Own times are those of torch's
    `key_averages`; device totals add what ran on several streams. model_flop_by_shapes is what the
    shapes of matrix products, convolutions and attention in and under the operator ask for,
    whatever the kernels did. Notes name the steps of inference engines and of CUDA-graph launches.
    Raises UsageError for an unknown split.
    """
    splits = parse_splits(by, _SPLITS)
    request = Request.of(reports, **common)
    path_parts = distinct_parts(request.ranks.inputs)
    splits = in_processes(splits, request.ranks.reports)
    work = partial(_sums, splits=splits, scope=request.scope, path_parts=path_parts)
    parts = request.map(work, ranked="rank" in splits).values
    rows = _rows(parts)
    fields = (*map(split_field, splits), *FIELDS)
    notes = _notes(parts)
    if rows and "shape" in splits and not any(row[splits.index("shape")] for row in rows):
        notes.insert(0, NO_SHAPES)
    table = Table("operators", fields, tuple(rows)).first(top, of_each="rank")
    return request.finish(table, *notes)


def _sums(report: SystemReport, *, splits: Sequence[str], scope: Scope, path_parts: int) -> _Part:
    frame = report.frame("operators", (*OPERATOR_COLUMNS, *_MORE))
    if "module" in splits:
        functions = report.frame("python_functions", _FUNCTION)
        frame = Frame({**frame, "module": module_paths(frame, functions)})
    calls = report.frame("api_calls", (*CALL_COLUMNS, "name"))
    devices = Scope(devices=scope.devices)
    work = [
        devices.narrow(report, report.frame(name, (*WORK_COLUMNS, "device"))) for name in GPU_FRAMES
    ]
    times = operator_times(frame, calls, work)
    flop = operator_flop(frame)
    ideal_s = flop / _peaks(frame, _gpu(report, work))
    parent, depth = frame.ints("parent"), frame.ints("depth")
    counted = (~np.isnan(flop)).astype(np.int64)
    whole = Frame(
        {
            **frame,
            "calls": np.ones(frame.rows, dtype=np.int64),
            **{name: getattr(times, name) for name in _SUMS[1:]},
            "flop": with_callees(np.nan_to_num(flop), parent, depth),
            "counted": with_callees(counted, parent, depth),
            # not known where any counted operator under it has no known peak
            "ideal_s": with_callees(np.where(counted > 0, ideal_s, 0.0), parent, depth),
        }
    )
    shown = scope.narrow(report, whole)
    rows, flops = _by_key(shown, report, splits, path_parts)
    ranges = scope.within(report, report.frame("nvtx_ranges", RANGE_COLUMNS))
    ran = Frame.concatenate(work)
    return _Part(
        rows,
        flops,
        step_flop(frame, flop, ideal_s, ranges),
        times.unlaunched_ns,
        times.outside_ns,
        recorded=frame.rows > 0,
        launched=report.calls.recorded or not ran.rows,
        serving=inference_steps(ranges, ran, calls),
        graphs=graph_launches(ran, calls),
    )


def _by_key(
    frame: Frame, report: SystemReport, splits: Sequence[str], path_parts: int
) -> tuple[dict[Key, tuple[int, ...]], dict[Key, tuple[float, float]]]:
    columns = [_SPLITS[split] for split in splits]
    groups = group_by(frame, (*columns, "name"))
    sums = []
    for name in _SUMS:
        total = np.zeros(len(groups.keys), dtype=np.int64)
        np.add.at(total, groups.codes, frame.ints(name))
        sums.append(total.tolist())
    flop, ideal = (
        np.bincount(groups.codes, frame.floats(name), len(groups.keys)).tolist()
        for name in ("flop", "ideal_s")
    )
    counted = np.bincount(groups.codes, frame.ints("counted"), len(groups.keys))
    keys = [shown_key(key, report, splits, path_parts) for key in groups.keys]
    present = sums[0]
    rows = {key: figures for key, *figures in zip(keys, *sums, strict=True)}
    return (
        {key: tuple(figures) for key, figures in rows.items() if figures[0]},
        {keys[i]: (flop[i], ideal[i]) for i in np.flatnonzero(counted).tolist() if present[i]},
    )


def _gpu(report: SystemReport, work: Sequence[Frame]) -> str:
    """The one product that did the work; empty where there are several, or none is known."""
    used = {device for frame in work for device in np.unique(frame.ints("device")).tolist()}
    devices = report.frame("devices").tuples("device", "name")
    names = {name for device, name in devices if device in used}
    return names.pop() if len(names) == 1 else ""


def _peaks(frame: Frame, gpu: str) -> Floats:
    """The peak of each operator's input types in FLOP/s; NaN where not known."""
    # None is NaN
    return frame.labels("types").map(partial(peak_flop_per_s, gpu), np.float64)


def _rows(parts: Sequence[_Part]) -> list[tuple[Value, ...]]:
    sums = summed(part.rows for part in parts)
    flops: dict[Key, list[float]] = {}
    for part in parts:
        for key, figure in part.flop.items():
            before = flops.setdefault(key, [0.0, 0.0])
            flops[key] = [a + b for a, b in zip(before, figure, strict=True)]
    known = any(part.launched for part in parts)
    rows = [
        (
            *key,
            *figures[:3],
            *(figures[3:] if known else (None, None)),
            *_rates(flops.get(key), figures[3]),
        )
        for key, figures in sums.items()
    ]
    return sorted(rows, key=_order)


def _rates(flop: list[float] | None, device_ns: int) -> tuple[Value, Value, Value]:
    """FLOP, FLOP/s and MFU; None where nothing counts, nothing ran, or no peak is known."""
    if flop is None:
        return None, None, None
    if not device_ns:
        return round(flop[0]), None, None
    seconds = device_ns * 1e-9
    return round(flop[0]), flop[0] / seconds, None if np.isnan(flop[1]) else flop[1] / seconds


def _order(row: tuple[Value, ...]) -> tuple[object, ...]:
    *key, _, _, host, _, device = row[:-3]
    return (-int(device or 0), -int(host or 0), tuple(map(str, key)))


def _notes(parts: Sequence[_Part]) -> list[str]:
    notes = step_notes([part.steps for part in parts])
    notes += step_lines([step for part in parts for step in part.serving])
    notes += graph_lines([part.graphs for part in parts if part.graphs is not None])
    silent = sum(not part.recorded for part in parts)
    if silent == len(parts):
        return []
    if silent:
        notes.append(f"{silent} of {len(parts)} reports hold no operators.")
    outside = sum(part.outside_ns for part in parts)
    if outside:
        notes.append(
            f"{format_time(outside)} of device work were launched under no operator: they are in "
            "no row."
        )
    unlaunched = sum(part.unlaunched_ns for part in parts)
    if unlaunched:
        notes.append(without_launch_call(f"{format_time(unlaunched)} of device work", "in no row"))
    return notes
