"""The frames that the graph of a report's work is made of, and its parts."""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.idle.gpu_work import WORK_COLUMNS
from nsightpy.analysis.work_graph.device_queue import EVENT_COLUMNS, SYNCHRONIZATION_COLUMNS
from nsightpy.analysis.work_graph.host_chain import CALL_COLUMNS
from nsightpy.analysis.work_graph.part import GraphPart, WorkFrames, graph_part
from nsightpy.frames import Frame
from nsightpy.query.device_gaps import MEMORY_COLUMNS
from nsightpy.query.device_time import KERNEL_COLUMNS, OPERATION_COLUMNS
from nsightpy.reports.system import SystemReport

# What runs in a stretch was launched so long before it at most, or as long as it lasts; and so soon
# after it every device begins something.
BESIDE_NS = 1_000_000_000
# From one moment to another in a report's own time (ns); None: all of it.
Stretch = tuple[int, int] | None


def work_frames(
    report: SystemReport, communication: tuple[str, ...] = (), stretch: Stretch = None
) -> WorkFrames:
    """All work of a report with its calls, waits and events; or what is needed of a stretch."""

    def read(name: str, columns: Sequence[str]) -> Frame:
        if stretch is None:
            return report.frame(name, columns)
        low, high = stretch
        beside = max(high - low, BESIDE_NS)
        return report.started_between(name, columns, low - beside, high + beside)

    kernels = read("kernels", KERNEL_COLUMNS)
    return WorkFrames(
        kernels,
        read("memory_operations", (*OPERATION_COLUMNS, *MEMORY_COLUMNS)),
        read("graph_launches", WORK_COLUMNS),
        is_communication(kernels.labels("name"), communication),
        read("api_calls", CALL_COLUMNS),
        read("synchronizations", SYNCHRONIZATION_COLUMNS),
        report.frame("cuda_events", EVENT_COLUMNS),
    )


def graph_parts(
    report: SystemReport, stretches: Sequence[Stretch], communication: tuple[str, ...] = ()
) -> list[GraphPart]:
    """The parts of a report's graph: each stretch is one block."""
    return [
        graph_part(
            work_frames(report, communication, stretch),
            stretch,
            report=str(report.path),
            block=block,
        )
        for block, stretch in enumerate(stretches)
    ]
