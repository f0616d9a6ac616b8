"""nsightpy: where the GPU time goes, from Nsight Systems and Nsight Compute reports.

    report = nsightpy.open_report("train.nsys-rep")
    report.kernels                                  # a pandas DataFrame
    nsightpy.kernels("train.nsys-rep", top=10)      # what `nsightpy kernels` prints
    nsightpy.open_ranks("job/").kernels             # those of all ranks, with rank and report
    nsightpy.aligned_frame("job/", "kernels")       # the same on one clock

Every command of the command line is a function here of the same name and parameters (`-` becomes
`_`). Everything is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from nsightpy.command_table import FIGURES, FUNCTIONS

__version__ = "0.2.0"

if TYPE_CHECKING:
    from nsightpy import errors as errors
    from nsightpy.commands.api import api as api
    from nsightpy.commands.breakdown import breakdown as breakdown
    from nsightpy.commands.cache import cache as cache
    from nsightpy.commands.collectives.command import collectives as collectives
    from nsightpy.commands.compare.command import compare as compare
    from nsightpy.commands.export.command import export as export
    from nsightpy.commands.findings.command import findings as findings
    from nsightpy.commands.gaps import gaps as gaps
    from nsightpy.commands.graphs import graphs as graphs
    from nsightpy.commands.headroom.command import headroom as headroom
    from nsightpy.commands.histogram import histogram as histogram
    from nsightpy.commands.imbalance import imbalance as imbalance
    from nsightpy.commands.inference_steps import inference_steps as inference_steps
    from nsightpy.commands.info.command import info as info
    from nsightpy.commands.iterations import iterations as iterations
    from nsightpy.commands.kernels import kernels as kernels
    from nsightpy.commands.launch_queues import launch_queues as launch_queues
    from nsightpy.commands.launches import launches as launches
    from nsightpy.commands.mcp.command import mcp as mcp
    from nsightpy.commands.memory import memory as memory
    from nsightpy.commands.memory_usage.command import memory_usage as memory_usage
    from nsightpy.commands.modules import modules as modules
    from nsightpy.commands.mpi_waits import mpi_waits as mpi_waits
    from nsightpy.commands.nvtx import nvtx as nvtx
    from nsightpy.commands.nvtx_metrics import nvtx_metrics as nvtx_metrics
    from nsightpy.commands.operators import operators as operators
    from nsightpy.commands.pace import pace as pace
    from nsightpy.commands.pipeline import pipeline as pipeline
    from nsightpy.commands.ranks import ranks as ranks
    from nsightpy.commands.report.command import report as report
    from nsightpy.commands.roofline.command import roofline as roofline
    from nsightpy.commands.schema import schema as schema
    from nsightpy.commands.select.command import select as select
    from nsightpy.commands.skill import skill as skill
    from nsightpy.commands.stats.command import stats as stats
    from nsightpy.commands.summarize.command import summarize as summarize
    from nsightpy.commands.sync_waits import sync_waits as sync_waits
    from nsightpy.commands.timeline import timeline as timeline
    from nsightpy.commands.trace.command import trace as trace
    from nsightpy.commands.utilization import utilization as utilization
    from nsightpy.figures import (
        breakdown_figure as breakdown_figure,
        collectives_figure as collectives_figure,
        comparison_figure as comparison_figure,
        headroom_figure as headroom_figure,
        histogram_figure as histogram_figure,
        iterations_figure as iterations_figure,
        memory_figure as memory_figure,
        pace_figure as pace_figure,
        queue_figure as queue_figure,
        roofline_figure as roofline_figure,
        timeline_figure as timeline_figure,
        utilization_figure as utilization_figure,
    )
    from nsightpy.query.aligned_frame import aligned_frame as aligned_frame
    from nsightpy.report_sets.one_file_sets import open_ncu_reports as open_ncu_reports
    from nsightpy.report_sets.rank_opening import open_ranks as open_ranks
    from nsightpy.report_sets.rank_set import RankSet as RankSet
    from nsightpy.report_sets.report_set import ReportSet as ReportSet
    from nsightpy.reports.memory_snapshot import MemorySnapshot as MemorySnapshot
    from nsightpy.reports.ncu import NcuReport as NcuReport
    from nsightpy.reports.nsys import NsysReport as NsysReport
    from nsightpy.reports.opening import open_report as open_report
    from nsightpy.reports.torch import TorchTrace as TorchTrace

_MODULES = {
    "MemorySnapshot": "nsightpy.reports.memory_snapshot",
    "NcuReport": "nsightpy.reports.ncu",
    "NsysReport": "nsightpy.reports.nsys",
    "TorchTrace": "nsightpy.reports.torch",
    "open_report": "nsightpy.reports.opening",
    "RankSet": "nsightpy.report_sets.rank_set",
    "open_ranks": "nsightpy.report_sets.rank_opening",
    "ReportSet": "nsightpy.report_sets.report_set",
    "open_ncu_reports": "nsightpy.report_sets.one_file_sets",
    "aligned_frame": "nsightpy.query.aligned_frame",
    **FIGURES,
    **FUNCTIONS,
}
__all__ = ["errors", *_MODULES]  # noqa: PLE0604 (strings, all of them)


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("nsightpy.errors")
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'nsightpy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "errors", *_MODULES})
