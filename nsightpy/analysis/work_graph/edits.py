"""The edit of each finding: what is changed to learn what mending it is worth."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.work_graph.edges import typical
from nsightpy.analysis.work_graph.graph import WorkGraph
from nsightpy.analysis.work_graph.host_chain import COPY as COPYING, LAUNCH, MODULE, OTHER
from nsightpy.analysis.work_graph.launched_work import COMPUTE, COPY, Mask
from nsightpy.analysis.work_graph.replay import Edit
from nsightpy.analysis.work_graph.thresholds import HOST_GAP_NS, LONG_CALL_NS, MOST_LATENCY_NS
from nsightpy.frames import Ints


def like_peers(graph: WorkGraph, unit: int) -> list[Edit]:
    """A straggler's kernels take what the median of the other units' same kernels takes."""
    work = graph.work
    kernels = np.flatnonzero(work.kind == COMPUTE)
    name, length = work.names.codes[kernels].astype(np.int64), graph.lasting[kernels]
    own = work.unit[kernels] == unit
    usual, others = (typical(length, name, mine, length) for mine in (own, ~own))
    factor = np.minimum(others / np.maximum(usual, 1), 1.0)
    return [Edit("operation", kernels[own], np.where(np.isin(name, name[~own]), factor, 1.0)[own])]


def transfers(graph: WorkGraph, factor: float = 0.0, among: Mask | None = None) -> list[Edit]:
    """Moving the data of collectives takes that part of its time; waits for ranks stay.

    What the shortest one takes is latency, which no bandwidth mends. `among` marks operations,
    where only some of the collectives are meant.
    """
    rows = graph.nodes.members[graph.nodes.waits]
    length = graph.lasting[rows]
    latency = min(int(length.min(initial=MOST_LATENCY_NS)), MOST_LATENCY_NS)
    left = np.minimum(length, latency) + np.maximum(length - latency, 0) * factor
    if among is not None:
        rows, left, length = rows[among[rows]], left[among[rows]], length[among[rows]]
    return [Edit("operation", rows, left / np.maximum(length, 1))]


def meetings(graph: WorkGraph, factor: float = 0.0) -> list[Edit]:
    """What MPI calls of several ranks take once all are there; waits for ranks stay."""
    return [Edit("call", np.unique(graph.work.meetings.ints("call")), factor)]


def host_gaps(graph: WorkGraph, factor: float = 0.0) -> list[Edit]:
    """Long stretches outside of CUDA take that part of their time."""
    return [Edit("gap", np.flatnonzero(_gaps(graph) >= HOST_GAP_NS), factor)]


def launches(graph: WorkGraph, factor: float = 0.0) -> list[Edit]:
    """Calls that enqueue, and the short gaps before them, take that part of their time."""
    calls = np.isin(graph.work.chain.kind, (LAUNCH, COPYING, OTHER))
    calls[graph.work.awaited[0]] = False
    short = np.flatnonzero(_gaps(graph) < HOST_GAP_NS)
    return [Edit("call", np.flatnonzero(calls), factor), Edit("gap", short, factor)]


def calls_of(graph: WorkGraph, kinds: tuple[int, ...], factor: float = 0.0) -> list[Edit]:
    """Calls of some kinds take that part of their time: allocations."""
    return [Edit("call", np.flatnonzero(np.isin(graph.work.chain.kind, kinds)), factor)]


def first_launches(graph: WorkGraph) -> list[Edit]:
    """Long calls that load code, or launch a kernel first, take no time."""
    work, chain = graph.work, graph.work.chain
    first = chain.kind == MODULE
    first[work.launched_by[work.first]] = True
    return [Edit("call", np.flatnonzero(first & (chain.end - chain.start >= LONG_CALL_NS)))]


def waits(graph: WorkGraph) -> list[Edit]:
    """Calls that wait for the GPU return at once, blocking copies among them."""
    return [Edit("wait", np.unique(graph.work.awaited[0]))]


def copies(graph: WorkGraph, factor: float = 0.0, among: Mask | None = None) -> list[Edit]:
    """Copies take that part of their time, and calls that stage pageable memory for them.

    `among` marks operations where only some are meant.
    """
    work, copied = graph.work, graph.work.kind == COPY
    rows = np.flatnonzero(copied if among is None else copied & among)
    staged = work.launched_by[rows[work.pageable[rows]]]
    calls = np.unique(staged[staged >= 0]).astype(np.int64)
    return [Edit("operation", rows, factor), Edit("call", calls, factor)]


def operations(rows: Ints, factor: float) -> list[Edit]:
    """Some kernels take that part of their time."""
    return [Edit("operation", rows, factor)]


def _gaps(graph: WorkGraph) -> Ints:
    """The recorded gap before each call, in ns."""
    return graph.host.increments[::2]
