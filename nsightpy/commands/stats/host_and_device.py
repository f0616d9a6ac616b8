"""Summaries of calls and GPU operations: cuda_gpu_sum, cuda_api_gpu_sum, those of libraries."""

from __future__ import annotations

from functools import partial

from nsightpy.analysis import ranking
from nsightpy.analysis.tally import Key, Tally, merge
from nsightpy.commands.stats.summary import Summary, Tallies, times
from nsightpy.frames import Frame
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport

_SPAN = ("start_ns", "end_ns")
# What nsys calls the operations of a frame, and the column of their names.
_CATEGORIES = {
    "kernels": ("CUDA_KERNEL", "name"),
    "memory_operations": ("MEMORY_OPER", "operation"),
    "api_calls": ("CUDA_API", "name"),
}


def _together(report: SystemReport, scope: Scope, *, frames: tuple[str, ...]) -> Tallies:
    """Durations by category and name."""
    parts = []
    for name in frames:
        category, label = _CATEGORIES[name]
        columns = (*_SPAN, label, *_needed(scope, name))
        frame = scope.narrow(report, report.frame(name, tuple(dict.fromkeys(columns))))
        frame = ranking.calls(frame) if name == "api_calls" else frame
        parts.append(_under(category, ranking.tally_durations(frame, (label,))))
    return (merge(parts),)


def _needed(scope: Scope, name: str) -> tuple[str, ...]:
    if name != "api_calls":
        return scope.columns
    return ("event_class", *(column for column in scope.columns if column != "device"))


def _under(category: str, tally: Tally) -> Tally:
    keys: tuple[Key, ...] = tuple((category, *key) for key in tally.keys)
    return Tally(keys, tally.bounds, tally.values, tally.counts)


def _calls(report: SystemReport, scope: Scope, *, frame: str, library: str = "") -> Tallies:
    """Durations of the host's calls by name."""
    columns = (*_SPAN, "pid", "tid", "name", *(("library",) if library else ()))
    found: Frame = scope.narrow(report, report.frame(frame, columns))
    if library:
        found = found.take(found.labels("library").equals([library]))
    return (ranking.tally_durations(found, ("name",)),)


def _library(name: str, help_: str, library: str, records: str, count: str) -> tuple[str, Summary]:
    work = partial(_calls, frame="library_calls", library=library)
    return name, Summary(help_, work, times("Name", count=count), records)


SUMMARIES = {
    "cuda_gpu_sum": Summary(
        "Kernels and memory operations together.",
        partial(_together, frames=("kernels", "memory_operations")),
        times("Category", "Operation"),
        "-t cuda",
    ),
    "cuda_api_gpu_sum": Summary(
        "CUDA API calls, kernels and memory operations together.",
        partial(_together, frames=("api_calls", "kernels", "memory_operations")),
        times("Category", "Operation"),
        "-t cuda",
    ),
    "osrt_sum": Summary(
        "Calls into the operating system's libraries.",
        partial(_calls, frame="os_calls"),
        times("Name", count="Num Calls"),
        "-t osrt",
    ),
    **dict(
        [
            _library("openacc_sum", "OpenACC events.", "OpenACC", "-t openacc", "Num Calls"),
            _library("openmp_sum", "OpenMP events.", "OpenMP", "-t openmp", "Count"),
            _library("syscall_sum", "System calls.", "syscall", "-t syscall", "Num Calls"),
        ]
    ),
}
