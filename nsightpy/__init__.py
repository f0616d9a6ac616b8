"""nsightpy: where the GPU time goes, from Nsight Systems and Nsight Compute reports.

    report = nsightpy.open_report("train.nsys-rep")
    report.kernels                                  # a pandas DataFrame
    nsightpy.kernels("train.nsys-rep", top=10)      # what `nsightpy kernels` prints
    nsightpy.open_ranks("job/").kernels             # those of all ranks, with rank and report
    nsightpy.aligned_frame("job/", "kernels")       # the same on one clock

Every command of the command line is a function here of the same name and parameters. Everything
is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from nsightpy import errors
    from nsightpy.ncu_set import open_ncu_reports
    from nsightpy.rank_set import RankSet, open_ranks
    from nsightpy.report_set import ReportSet
    from nsightpy.reports.memory_snapshot import MemorySnapshot
    from nsightpy.reports.ncu import NcuReport
    from nsightpy.reports.nsys import NsysReport
    from nsightpy.reports.opening import open_report
    from nsightpy.reports.torch import TorchTrace

__all__ = [
    "MemorySnapshot",
    "NcuReport",
    "NsysReport",
    "RankSet",
    "ReportSet",
    "TorchTrace",
    "errors",
    "open_ncu_reports",
    "open_ranks",
    "open_report",
]

_HOMES = {
    "MemorySnapshot": "nsightpy.reports.memory_snapshot",
    "NcuReport": "nsightpy.reports.ncu",
    "NsysReport": "nsightpy.reports.nsys",
    "TorchTrace": "nsightpy.reports.torch",
    "open_report": "nsightpy.reports.opening",
    "RankSet": "nsightpy.rank_set",
    "open_ranks": "nsightpy.rank_set",
    "ReportSet": "nsightpy.report_set",
    "open_ncu_reports": "nsightpy.ncu_set",
    "aligned_frame": "nsightpy.query.aligned_frame",
    "timeline_figure": "nsightpy.figures",
    "breakdown_figure": "nsightpy.figures",
    "memory_figure": "nsightpy.figures",
    "iterations_figure": "nsightpy.figures",
    "queue_figure": "nsightpy.figures",
    "roofline_figure": "nsightpy.figures",
    "headroom_figure": "nsightpy.figures",
    "memory_usage": "nsightpy.commands.memory_usage.command",
    "launch_queues": "nsightpy.commands.launch_queues",
    "sync_waits": "nsightpy.commands.sync_waits",
}
_COMMANDS = (
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
_FOLDERS = {"summarize", "info", "findings", "roofline", "select", "headroom"}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("nsightpy.errors")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _COMMANDS:
        folder = ".command" if name in _FOLDERS else ""
        return getattr(importlib.import_module(f"nsightpy.commands.{name}{folder}"), name)
    raise AttributeError(f"module 'nsightpy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOMES, *_COMMANDS})
