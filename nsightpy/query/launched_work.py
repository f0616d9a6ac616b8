"""The GPU work of a report with its launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.gpu_work import GpuWork, gpu_work
from nsightpy.analysis.launches import NO_TIME
from nsightpy.frames import Frame
from nsightpy.readers.host_calls import ORDERING
from nsightpy.reports.system import SystemReport


@dataclass(frozen=True)
class FollowedWork:
    """All GPU work with its launches, and the calls that they are."""

    work: GpuWork
    calls: Frame
    graphs: Frame


class Work(NamedTuple):
    """All GPU work of some places, with WORK_COLUMNS, names and operations."""

    kernels: Frame
    operations: Frame
    graphs: Frame


def followed_work(
    report: SystemReport,
    work: Work,
    communication: NDArray[np.bool_],
    *,
    ends: bool = False,
) -> FollowedWork:
    """All work of a report with its launches; `communication` marks kernels.

    `ends`: with the ends and threads of the calls. Calls that seldom launch are looked at where the
    others do not explain all work.
    """
    calls = report.calls.launching(ORDERING, whole=ends)
    made = gpu_work(work.kernels, communication, work.operations, work.graphs, calls)
    if (made.launch == NO_TIME).any():
        others = report.calls.launching(ORDERING, others=True, whole=ends)
        calls = Frame.concatenate([calls, others]).ordered()
        made = gpu_work(work.kernels, communication, work.operations, work.graphs, calls)
    return FollowedWork(made, calls, work.graphs)
