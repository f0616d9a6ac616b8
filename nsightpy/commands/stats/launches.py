"""cuda_kern_exec_sum and cuda_kern_exec_trace: API, queue and kernel time of launches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.ranking import figure, part, spread
from nsightpy.commands.stats.operations import kernel_names, named
from nsightpy.commands.stats.reports import Listing, Reports, Sum, known, named_by
from nsightpy.frames import Frame, Labels
from nsightpy.query import Parts, Scope, SystemReport
from nsightpy.query.request import without_launch_call
from nsightpy.results.keys import KERNEL, row_keys

_SHAPES = ("grid", "block")
_KERNELS = ("pid", "device", "correlation_id", *(f"{s}_{axis}" for s in _SHAPES for axis in "xyz"))
_CALLS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class", "name")


def _launches(report: SystemReport, scope: Scope, label: str) -> Frame:
    """Kernels with the calls that launched them, by their start; others are left out.

    `total`, `api`, `queue`: how long all of it, the call and the wait for the GPU took; the queue
    is below 0 where the kernel began before the call returned.
    """
    kernels = named(scope.read(report, "kernels", (*_KERNELS, *kernel_names(label))), label)
    calls = report.frame("api_calls", _CALLS)
    rows = launch_rows(kernels, calls)
    launched = np.flatnonzero(rows != NO_LAUNCH)
    launched = launched[np.argsort(calls.ints("start_ns")[rows[launched]], kind="stable")]
    kernels, calls = kernels.take(launched), calls.take(rows[launched])
    begin, back = calls.ints("start_ns"), calls.ints("end_ns")
    queue = kernels.ints("start_ns") - back
    return Frame(
        {
            **kernels,
            "tid": calls["tid"],
            "function": calls["name"],
            "call_start_ns": begin,
            "total": np.maximum(back, kernels.ints("end_ns")) - begin,
            "api": back - begin,
            "queue": queue,
            "queued": np.where(queue > 0, queue, -1),
            # numbers of processes and devices are of one report
            "report": Labels.constant(str(report.path), kernels.rows),
        }
    )


def _listed(report: SystemReport, scope: Scope, label: str) -> Iterator[Frame]:
    frame = _launches(report, scope, label)
    returned = frame.ints("call_start_ns") + frame.ints("api")
    queue_start = known(returned, frame.ints("queue") >= 0)

    def text(*sizes: int) -> str:
        """Three sizes, four places each, as nsys writes them; "" where one is missing."""
        return " ".join(f"{size:4d}" for size in sizes) if all(sizes) else ""

    shapes = {s: named_by(frame, [f"{s}_{axis}" for axis in "xyz"], text) for s in _SHAPES}
    yield Frame({**frame, **shapes, "queue_start_ns": queue_start})


def _unlaunched(parts: Parts[Any]) -> list[str]:
    """The note on kernels of which none has a recorded launch."""
    lost = sum(parts.scope.read(report, "kernels").rows for report, _ in parts.results)
    return [without_launch_call(f"{lost:,} kernels", "left out")] if lost else []


REPORTS: Reports = {
    "cuda_kern_exec_sum": Sum(
        _launches,
        ("pid", "tid", "device", "function", "name", "report"),
        (
            part("pid", "PID"),
            part("tid", "TID"),
            part("device", "DevId"),
            figure("Count", "instances"),
            figure("QCount", "instances", "queued"),
            *spread("T", of="total"),
            *spread("A", of="api"),
            *spread("Q", of="queued"),
            *spread("K"),
            part("function", "API Name"),
            part("name", "Kernel Name"),
        ),
        measures=("total", "api", "queued", "duration"),
        identity=row_keys(KERNEL, "Kernel Name"),
        reasons=_unlaunched,
    ),
    "cuda_kern_exec_trace": Listing(
        _listed,
        "API Start (ns)=call_start_ns, API Dur (ns)=api, Queue Start (ns)=queue_start_ns, "
        "Queue Dur (ns)=queue>-1, Kernel Start (ns)=start_ns, Kernel Dur (ns)=duration, "
        "Total Dur (ns)=total, PID=pid, TID=tid, DevId=device, API Function=function, "
        "GridXYZ=grid, BlockXYZ=block, Kernel Name=name",
        identity=row_keys(KERNEL, "Kernel Name"),
        reasons=_unlaunched,
    ),
}
