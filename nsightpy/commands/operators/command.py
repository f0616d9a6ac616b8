"""operators: host and device time of a framework's operators, and of modules."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated

import numpy as np

from nsightpy.analysis.grouping import group_sums
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.operators.device_time import (
    CALL_COLUMNS,
    FUNCTION_COLUMNS,
    OPERATOR_COLUMNS,
    WORK_COLUMNS,
    module_calls,
    operator_times,
    path_around,
    with_callees,
)
from nsightpy.analysis.operators.flop import operator_flop, peak_flop_per_s, step_flop, step_notes
from nsightpy.analysis.ranking import durations
from nsightpy.analysis.tally import summed
from nsightpy.commands.operators.modules import (
    FIELDS as MODULE_FIELDS,
    DeviceSums,
    notes_on,
    time_of_modules,
)
from nsightpy.frames import Frame
from nsightpy.query import Option, Parts, Question, Scope, SystemReport
from nsightpy.query.command import command
from nsightpy.query.splits import Shown, in_processes, parse_splits, split_field
from nsightpy.results import Field, Note, Row, Table
from nsightpy.results.keys import MODULE, OPERATOR, row_keys

_SPLITS = {"shape": "shapes", "thread": "tid", "rank": "pid", "process": "pid", "module": "module"}
FIELDS = (
    Field("operator", "name", importance=1),
    Field("calls", importance=2),
    Field("host_total_ns", "time", heading="host total", importance=7),
    Field("host_self_ns", "time", heading="host self", importance=6),
    Field("device_total_ns", "time", heading="GPU total", importance=3),
    Field("device_self_ns", "time", heading="GPU self", importance=4),
    Field("model_flop_by_shapes", "flops", heading="FLOP by shapes"),
    Field("model_flop_per_s", "flops/s", heading="FLOP/s"),
    Field("mfu", "share", 4, heading="MFU %", importance=8),
    Field("device_self_share", "share", 4, heading="GPU self %", importance=5),
    Field("host_self_share", "share", 4, heading="host self %", importance=9),
)
_NUMBERS = tuple(field.name for field in FIELDS[1:])
GPU_FRAMES = ("kernels", "memory_operations")
# Of each operator and all that it called: FLOP, how many operators they were counted of, and the
# seconds that they take at the peak.
_SUMS = ("calls", "host_total", "host_self", "device_total", "device_self")
_FLOP = ("counted", "flop", "ideal_s")
_MORE = ("name", "shapes", "types", "inputs")
NO_SHAPES = Note(
    "The trace holds no shapes of inputs: rows are not split.",
    "torch.profiler.profile(record_shapes=True) records them.",
)


@command(
    layouts=(FIELDS, MODULE_FIELDS),
    more=tuple(map(split_field, _SPLITS)),
    keys=(*row_keys(OPERATOR, "operator"), *row_keys(MODULE, "module", "domain")),
)
def operators(
    *,
    by: Annotated[
        str | Iterable[str],
        Option("Split by shape, thread, rank, process, module; module alone: modules.", "LIST"),
    ] = "",
    sort: Annotated[str, Option("Largest first.", "COLUMN", choices=_NUMBERS)] = "device_self_ns",
) -> Question[Table]:
    """Own times are those of torch's key_averages: own device time is that of kernels, copies and
    sets launched under the operator itself, the total adds all that it called, on several streams.
    An operator and the one of its own name that is all it calls are two calls here and one there.
    model_flop_by_shapes is what the shapes of matrix products, convolutions and attention in and
    under the operator ask for, whatever the kernels did.

    --by module: nn.Module calls of a trace (with_stack, with_modules), else NVTX ranges, as a tree
    of paths a/b/c, those inside one parent by device time. attributed: what autograd's thread
    launched for a module; by sequence number in traces, by time in reports of nsys.
    """
    splits = parse_splits(by, _SPLITS)
    if splits == ("module",):
        return time_of_modules()

    def ranked(parts: Parts[DeviceSums]) -> Table:
        shown = Shown.of(splits, parts.ranks.inputs)
        fields = (*shown.fields, *FIELDS)
        rows = _rows(parts, shown)
        first, device, host = (
            [field.name for field in fields].index(name)
            for name in (sort, "device_self_ns", "host_self_ns")
        )

        def order(row: Row) -> tuple[object, ...]:
            figures = (-float(row[place] or 0) for place in (first, device, host))
            return (*figures, tuple(map(str, row[: len(fields) - len(_NUMBERS)])))

        rows.sort(key=order)
        notes = notes_on(parts.values, "operators", "under no operator")
        if any(part.recorded for part in parts.values):
            steps = [part.steps for part in parts.values if part.steps is not None]
            notes = [*step_notes(steps), *notes]
        if rows and "shape" in splits:
            shape = shown.wanted.index("shape")
            notes = notes if any(row[shape] for row in rows) else [NO_SHAPES, *notes]
        return Table("operators", fields, tuple(rows), notes=tuple(notes))

    work = partial(_sums, splits=in_processes(splits))
    return Question(work, ranked, identified="rank" in splits, of_each="rank")


def _sums(report: SystemReport, scope: Scope, *, splits: Sequence[str]) -> DeviceSums:
    frame = report.frame("operators", (*OPERATOR_COLUMNS, *_MORE))
    if "module" in splits:
        functions = report.frame("python_functions", FUNCTION_COLUMNS)
        frame = Frame({**frame, "module": path_around(module_calls(functions), frame)})
    calls = report.frame("api_calls", CALL_COLUMNS)
    devices = Scope(devices=scope.devices)
    work = [devices.read(report, name, (*WORK_COLUMNS, "device")) for name in GPU_FRAMES]
    times = operator_times(frame, calls, work)
    flop = operator_flop(frame)
    peak = partial(peak_flop_per_s, _gpu(report, work))
    ideal_s = flop / frame.labels("types").map(peak, np.float64)  # NaN where none is known
    parent, depth = frame.ints("parent"), frame.ints("depth")
    counted = (~np.isnan(flop)).astype(np.int64)
    whole = Frame(
        {
            **frame,
            "calls": np.ones(frame.rows, dtype=np.int64),
            **{name: getattr(times, name) for name in _SUMS[1:]},
            "counted": with_callees(counted, parent, depth),
            "flop": with_callees(np.nan_to_num(flop), parent, depth),
            # not known where any counted operator under it has no known peak
            "ideal_s": with_callees(np.where(counted > 0, ideal_s, 0.0), parent, depth),
        }
    )
    columns = (*(_SPLITS[split] for split in splits), "name")
    rows = group_sums(scope.narrow(report, whole), columns, (*_SUMS, *_FLOP))
    ranges = scope.within(report, report.frame("nvtx_ranges", RANGE_COLUMNS))
    device_ns = sum(int(durations(frame).sum()) for frame in work)
    return DeviceSums(
        rows,
        recorded=frame.rows > 0,
        launched=report.calls.recorded or not any(frame.rows for frame in work),
        device_ns=device_ns,
        outside_ns=times.outside_ns,
        unlaunched_ns=times.unlaunched_ns,
        steps=step_flop(frame, flop, ideal_s, ranges),
    )


def _gpu(report: SystemReport, work: Sequence[Frame]) -> str:
    """The one product that did the work; empty where there are several, or none is known."""
    used = {device for frame in work for device in np.unique(frame.ints("device")).tolist()}
    devices = report.frame("devices").tuples("device", "name")
    names = {name for device, name in devices if device in used}
    return names.pop() if len(names) == 1 else ""


def _rows(parts: Parts[DeviceSums], shown: Shown) -> list[Row]:
    sums = summed(
        {shown.key(key, report): figures for key, figures in part.rows.items()}
        for report, part in parts.results
    )
    launched = any(part.launched for part in parts.values)
    host, device = (sum(figures[self] for figures in sums.values()) for self in (2, 4))
    rows: list[Row] = []
    for key, (*calls_and_host, total, own, counted, flop, ideal_s) in sums.items():
        # FLOP, FLOP/s and MFU; None where nothing counts, nothing ran, or no peak is known
        seconds = total * 1e-9 if counted else 0
        mfu = ideal_s / seconds if seconds and not np.isnan(ideal_s) else None
        rates = (round(flop) if counted else None, flop / seconds if seconds else None, mfu)
        share = own / device if launched and device else None
        host_share = calls_and_host[2] / host if host else None
        on_device = (total, own) if launched else (None, None)
        rows.append((*key, *calls_and_host, *on_device, *rates, share, host_share))
    return rows
