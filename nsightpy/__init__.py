"""nsightpy: where the GPU time goes, from Nsight Systems and Nsight Compute reports.

    report = nsightpy.open_report("train.nsys-rep")
    report.kernels                                  # a pandas DataFrame
    nsightpy.kernels("train.nsys-rep", top=10)      # what `nsightpy kernels` prints

Every command of the command line is a function here of the same name and parameters. Everything
is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from nsightpy import errors
    from nsightpy.ncu_reports import NcuReport
    from nsightpy.rank_set import RankSet, open_ranks
    from nsightpy.reports import NsysReport, open_report

__all__ = ["NcuReport", "NsysReport", "RankSet", "errors", "open_ranks", "open_report"]

_HOMES = {
    "NcuReport": "nsightpy.ncu_reports",
    "NsysReport": "nsightpy.reports",
    "open_report": "nsightpy.reports",
    "RankSet": "nsightpy.rank_set",
    "open_ranks": "nsightpy.rank_set",
    "timeline_figure": "nsightpy.pictures",
    "breakdown_figure": "nsightpy.pictures",
    "memory_figure": "nsightpy.pictures",
    "iterations_figure": "nsightpy.pictures",
    "queue_figure": "nsightpy.pictures",
    "roofline_figure": "nsightpy.pictures",
    "headroom_figure": "nsightpy.pictures",
    "memory_usage": "nsightpy.verbs.memory_usage",
    "launch_queues": "nsightpy.verbs.launch_queues",
    "sync_waits": "nsightpy.verbs.sync_waits",
}
_VERBS = (
    "summarize",
    "info",
    "kernels",
    "api",
    "memory",
    "launches",
    "breakdown",
    "findings",
    "ranks",
    "collectives",
    "imbalance",
    "timeline",
    "nvtx",
    "iterations",
    "roofline",
    "select",
    "headroom",
)


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("nsightpy.errors")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _VERBS:
        return getattr(importlib.import_module(f"nsightpy.verbs.{name}"), name)
    raise AttributeError(f"module 'nsightpy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOMES, *_VERBS})
