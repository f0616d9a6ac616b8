"""cuda_kern_exec_sum: API, queue and kernel time of launches, by thread, device and names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.ranking import spread
from nsightpy.analysis.tally import Statistics, tally
from nsightpy.commands.kernels import named, wanted
from nsightpy.commands.stats.summary import Shown, Summary, Tallies, spread_fields
from nsightpy.frames import Frame, Labels
from nsightpy.query.capture_advice import CUDA
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Row

_KERNELS = ("start_ns", "end_ns", "pid", "device", "correlation_id")
_CALLS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class", "name")
# numbers of processes and devices are of one report
_BY = ("pid", "tid", "device", "api", "kernel", "report")


def _phases(report: SystemReport, scope: Scope, label: str) -> Tallies:
    """Durations of all of it, the call, the queue (where there was one), the kernel."""
    kernels = scope.narrow(report, report.frame("kernels", wanted(scope, _KERNELS, label)))
    names = named(kernels, label)
    calls = report.frame("api_calls", _CALLS)
    rows = launch_rows(kernels, calls)
    done = rows != NO_LAUNCH
    kernels, calls = kernels.take(done), calls.take(rows[done])
    keys = Frame(
        {
            "pid": kernels["pid"],
            "tid": calls["tid"],
            "device": kernels["device"],
            "api": calls["name"],
            "kernel": Labels(names.codes[done], names.values),
            "report": Labels.constant(str(report.path), kernels.rows),
        }
    )
    groups = group_by(keys, _BY)
    begin, back = calls.ints("start_ns"), calls.ints("end_ns")
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    queued = np.flatnonzero(start > back)
    waited = group_by(keys.take(queued), _BY)
    return (
        tally(groups.codes, np.maximum(back, end) - begin, groups.keys),
        tally(groups.codes, back - begin, groups.keys),
        tally(waited.codes, (start - back)[queued], waited.keys),
        tally(groups.codes, end - start, groups.keys),
    )


def _shown(parts: Sequence[Statistics]) -> Shown:
    whole, api, queue, kernel = parts
    place = {key: group for group, key in enumerate(queue.keys)}
    order = whole.by_total()
    rows: list[Row] = []
    for group in order:
        pid, tid, device, function, name, _ = whole.keys[group]
        waited = place.get(whole.keys[group])
        count = 0 if waited is None else int(queue.instances[waited])
        in_queue = (None,) * 5 if waited is None else spread(queue, waited)
        phases = (*spread(whole, group), *spread(api, group), *in_queue, *spread(kernel, group))
        instances = int(whole.instances[group])
        rows.append((pid, tid, device, instances, count, *phases, function, name))
    fields = (
        *(Field(name, "id") for name in ("PID", "TID", "DevId")),
        Field("Count"),
        Field("QCount"),
        *(field for phase in "TAQK" for field in spread_fields(phase)),
        Field("API Name", "text"),
        Field("Kernel Name", "text"),
    )
    return fields, rows


SUMMARIES = {
    "cuda_kern_exec_sum": Summary(
        "Launches: all of it (T), the call (A), the queue (Q) and the kernel (K).",
        _phases,
        _shown,
        CUDA,
        tallies=4,
    )
}
