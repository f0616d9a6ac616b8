"""Summaries of calls and GPU operations: cuda_gpu_sum, cuda_api_gpu_sum, those of libraries."""

from __future__ import annotations

from functools import partial

from nsightpy.analysis import ranking
from nsightpy.analysis.tally import Key, Tally, merge
from nsightpy.commands.kernels import named, wanted
from nsightpy.commands.stats.summary import Summary, Tallies, times
from nsightpy.frames import Frame
from nsightpy.query.capture_advice import CUDA
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport

_SPAN = ("start_ns", "end_ns")
_NAME = ("name",)
# What nsys calls the operations of a frame, and the column of their names.
_CATEGORIES = {
    "kernels": ("CUDA_KERNEL", "name"),
    "memory_operations": ("MEMORY_OPER", "operation"),
    "api_calls": ("CUDA_API", "name"),
}


def _together(
    report: SystemReport, scope: Scope, label: str, *, frames: tuple[str, ...]
) -> Tallies:
    """Durations by category and name."""
    parts = []
    for name in frames:
        category, column = _CATEGORIES[name]
        if name == "kernels":
            frame = scope.narrow(report, report.frame(name, wanted(scope, _SPAN, label)))
            frame = Frame({**frame, column: named(frame, label)})
        else:
            columns = (*_SPAN, column, *_needed(scope, name))
            frame = scope.narrow(report, report.frame(name, tuple(dict.fromkeys(columns))))
        frame = ranking.calls(frame) if name == "api_calls" else frame
        parts.append(_under(category, ranking.tally_durations(frame, (column,))))
    return (merge(parts),)


def _needed(scope: Scope, name: str) -> tuple[str, ...]:
    if name != "api_calls":
        return scope.columns
    return ("event_class", *(column for column in scope.columns if column != "device"))


def _under(category: str, tally: Tally) -> Tally:
    keys: tuple[Key, ...] = tuple((category, *key) for key in tally.keys)
    return Tally(keys, tally.bounds, tally.values, tally.counts)


def _os_calls(report: SystemReport, scope: Scope, _: str) -> Tallies:
    """Durations of calls into the operating system's libraries by name."""
    columns = (*_SPAN, "pid", "tid", "name")
    return (
        ranking.tally_durations(scope.narrow(report, report.frame("os_calls", columns)), _NAME),
    )


def _calls(
    report: SystemReport, scope: Scope, _: str, *, library: str, by: tuple[str, ...]
) -> Tallies:
    """Durations of a library's calls."""
    columns = (*_SPAN, "pid", "tid", "name", "library")
    calls = scope.narrow(report, report.frame("library_calls", columns))
    mine = calls.labels("library").where(lambda name: name.startswith(library))
    return (ranking.tally_durations(calls.take(mine), by),)


def _library(library: str, records: str, count: str, /, **labels: str) -> Summary:
    """A summary of a library's calls; `labels`: the columns of the key and what they are called."""
    work = partial(_calls, library=library, by=tuple(labels))
    shown = times(*labels.values(), count=count)
    return Summary(f"Calls or events of {library}.", work, shown, f"-t {records}")


SUMMARIES = {
    "cuda_gpu_sum": Summary(
        "Kernels and memory operations together.",
        partial(_together, frames=("kernels", "memory_operations")),
        times("Category", "Operation"),
        CUDA,
    ),
    "cuda_api_gpu_sum": Summary(
        "CUDA API calls, kernels and memory operations together.",
        partial(_together, frames=("api_calls", "kernels", "memory_operations")),
        times("Category", "Operation"),
        CUDA,
    ),
    "osrt_sum": Summary(
        "Calls into the operating system's libraries.",
        _os_calls,
        times("Name", count="Num Calls"),
        "-t osrt",
    ),
    "openacc_sum": _library("OpenACC", "openacc", "Count", name="Name"),
    "openmp_sum": _library("OpenMP", "openmp", "Count", name="Name"),
    "syscall_sum": _library("syscall", "syscall", "Num Calls", name="Name"),
    "nvvideo_api_sum": _library(
        "NvVideo", "nvvideo", "Num Calls", library="Event Type", name="Name"
    ),
}
