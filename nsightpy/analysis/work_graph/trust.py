"""How far a graph explains what was recorded, and which stretches of a job it is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.idle.gpu_work import COMMUNICATION
from nsightpy.analysis.work_graph.critical_path import CriticalPath
from nsightpy.analysis.work_graph.graph import WorkGraph
from nsightpy.analysis.work_graph.replay import replay
from nsightpy.analysis.work_graph.thresholds import (
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
    communication of which no other rank is known, of the time of all devices.
    """

    identity: float
    unexplained: float
    unlaunched: float
    alone: float

    @property
    def reason(self) -> str:
        """Why no gain is given, by the name of the share that is too large; empty where one is."""
        if self.identity > MOST_IDENTITY_ERROR:
            return "identity"
        if self.unexplained > MOST_UNEXPLAINED:
            return "unexplained"
        if self.unlaunched > MOST_UNEXPLAINED:
            return "unlaunched"
        return "alone" if self.alone > MOST_UNEXPLAINED else ""


def trust_of(graph: WorkGraph, path: CriticalPath) -> Trust:
    """How far a graph explains what was recorded."""
    work = graph.work
    same = replay(graph)
    wrong = int(np.abs(same.gains).sum())
    of_one = work.kind == COMMUNICATION
    of_one[graph.nodes.members] = False
    alone, time = int((work.end - work.start)[of_one].sum()), same.length_ns * len(work.units)
    return Trust(
        wrong / same.length_ns if same.length_ns else 0.0,
        path.totals["unexplained"] / path.length_ns if path.length_ns else 0.0,
        float(np.mean(work.launched_by < 0)) if len(work) else 0.0,
        alone / time if time else 0.0,
    )


def chosen(iterations: int, operations: int) -> list[tuple[int, int]]:
    """Which of some steady iterations to look at, as (first, last + 1): all, or even stretches.

    `operations` are those of all ranks in one iteration; together at most MOST_OPERATIONS, but for
    one iteration.
    """
    affordable = max(MOST_OPERATIONS // max(operations, 1), 1)
    if iterations <= affordable:
        return [(0, iterations)] if iterations else []
    blocks = min(MOST_BLOCKS, affordable)
    each = affordable // blocks
    return [(first, first + each) for first in (n * iterations // blocks for n in range(blocks))]
