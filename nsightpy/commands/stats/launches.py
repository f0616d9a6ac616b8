"""cuda_kern_exec_sum and cuda_kern_exec_trace: API, queue and kernel time of launches."""

from collections.abc import Iterator
from typing import Any

from nsightpy.analysis.grouping import named_by
from nsightpy.analysis.launches import launch_phases
from nsightpy.analysis.ranking import spread
from nsightpy.commands.stats.operations import kernel_names, named
from nsightpy.commands.stats.reports import Listing, Reports, known, sum_of
from nsightpy.frames import Frame, Labels
from nsightpy.query import Parts, Scope, SystemReport
from nsightpy.query.request import without_launch_call
from nsightpy.results.keys import KERNEL, row_keys

_SHAPES = ("grid", "block")
_KERNELS = ("pid", "device", "correlation_id", *(f"{s}_{axis}" for s in _SHAPES for axis in "xyz"))
_CALLS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class", "name")


def launched_kernels(report: SystemReport, scope: Scope, label: str) -> Frame:
    """The kernels in scope of which the launch is known, and its phases."""
    kernels = named(scope.read(report, "kernels", (*_KERNELS, *kernel_names(label))), label)
    phases = launch_phases(kernels, report.frame("api_calls", _CALLS))
    # numbers of processes and devices are of one report
    return Frame({**phases, "report": Labels.constant(str(report.path), phases.rows)})


def _listed(report: SystemReport, scope: Scope, label: str) -> Iterator[Frame]:
    frame = launched_kernels(report, scope, label)
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
    "cuda_kern_exec_sum": sum_of(
        launched_kernels,
        ("pid", "tid", "device", "function", "name", "report"),
        "PID=pid, TID=tid, DevId=device, Count=instances, QCount=instances of queued, "
        f"{spread('T', of='total')}, {spread('A', of='api')}, {spread('Q', of='queued')}, "
        f"{spread('K')}, API Name=function, Kernel Name=name",
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
