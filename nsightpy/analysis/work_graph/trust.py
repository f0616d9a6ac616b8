"""How far a graph explains what was recorded, and which stretches of a job it is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.work_graph.critical_path import CriticalPath
from nsightpy.analysis.work_graph.graph import WorkGraph
from nsightpy.analysis.work_graph.launched_work import COMMUNICATION, GRAPH
from nsightpy.analysis.work_graph.replay import replay
from nsightpy.analysis.work_graph.thresholds import (
    MOST_APART,
    MOST_BLOCKS,
    MOST_IDENTITY_ERROR,
    MOST_OPERATIONS,
    MOST_UNEXPLAINED,
)


@dataclass(frozen=True)
class Trust:
    """What a replay rests on, as shares.

    `identity`: how wrong the replay without an edit is, of the time; `unexplained`: what no edge
    accounts for, of the critical path; `unlaunched`: operations whose call is not known; `alone`:
    communication of which no other rank is known, and `opaque`: CUDA graphs of which no node is,
    of the time of all devices.
    """

    identity: float
    unexplained: float
    unlaunched: float
    alone: float
    opaque: float

    @property
    def reason(self) -> str:
        """Why no gain is given, by the name of the share that is too large; empty where one is."""
        if self.identity > MOST_IDENTITY_ERROR:
            return "identity"
        missing = ("unlaunched", "alone", "unexplained")
        return next((name for name in missing if getattr(self, name) > MOST_UNEXPLAINED), "")


def trust_of(graph: WorkGraph, path: CriticalPath) -> Trust:
    """How far a graph explains what was recorded."""
    work = graph.work
    same = replay(graph)
    wrong = int(np.abs(same.gains).sum())
    of_one = work.kind == COMMUNICATION
    of_one[graph.nodes.members] = False
    time = max(same.length_ns * len(work.units), 1)
    alone, opaque = (
        int((work.end - work.start)[rows].sum()) for rows in (of_one, work.kind == GRAPH)
    )
    return Trust(
        wrong / same.length_ns if same.length_ns else 0.0,
        path.totals["unexplained"] / path.length_ns if path.length_ns else 0.0,
        float(np.mean(work.launched_by < 0)) if len(work) else 0.0,
        alone / time,
        opaque / time,
    )


def chosen(iterations: int, operations: int, *, apart: bool = False) -> list[tuple[int, int]]:
    """Which of some iterations to look at, as (first, last + 1): all, or even stretches.

    `operations` are those of all ranks in one iteration; together at most MOST_OPERATIONS, but for
    one iteration. Those that are `apart` are looked at one by one.
    """
    affordable = max(MOST_OPERATIONS // max(operations, 1), 1)
    if iterations <= affordable and not apart:
        return [(0, iterations)] if iterations else []
    blocks = min(MOST_APART if apart else MOST_BLOCKS, affordable, iterations)
    each = 1 if apart else affordable // blocks
    return [(first, first + each) for first in (n * iterations // blocks for n in range(blocks))]
