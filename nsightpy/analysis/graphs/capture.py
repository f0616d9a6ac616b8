"""Where the nodes of a CUDA graph come from: the code ranges that were open at their creation."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.nvtx.nesting import SEPARATOR
from nsightpy.analysis.operators.device_time import NONE, innermost
from nsightpy.frames import Frame, Ints, Labels, distinct

# A node is cloned when its graph is instantiated, or put into another graph: seldom more often.
_MOST_CLONES = 8


def open_at(moments: Frame, ranges: Frame) -> Labels:
    """The path a/b/c of the ranges open on the thread at each start; empty outside of all.

    `moments` have start_ns, pid, tid; `ranges` are a tree with path, parent and depth
    (`modules.range_calls`).
    """
    path = ranges.labels("path")
    holder = innermost(ranges, moments)
    shown = tuple(value.replace(SEPARATOR, "/") for value in path.values)
    inside = path.codes[np.maximum(holder, 0)] + 1 if ranges.rows else np.zeros_like(holder)
    return Labels(np.where(holder == NONE, 0, inside).astype(np.int32), ("", *shown)).merged()


def created_in(work: Frame, nodes: Frame, ranges: Frame) -> Labels:
    """For each operation (pid, graph_node_id) the ranges in which its node was created.

    Of a cloned node those of the one that it was cloned from. `nodes` is the frame graph_nodes.
    """
    if not nodes.rows:
        return Labels.constant("", work.rows)
    _, code = distinct(np.concatenate([nodes.ints("pid"), work.ints("pid")]))
    process = code.astype(np.int64)
    of_nodes, wanted = process[: nodes.rows], process[nodes.rows :]
    known: dict[tuple[int, int], int] = {}
    ids = nodes.ints("graph_node_id").tolist()
    for row, key in enumerate(zip(of_nodes.tolist(), ids, strict=True)):
        known.setdefault(key, row)
    origin = _origins(nodes, of_nodes, known)
    rows = np.asarray(
        [
            known.get(key, NONE)
            for key in zip(wanted.tolist(), work.ints("graph_node_id").tolist(), strict=True)
        ],
        dtype=np.int64,
    )
    at = open_at(nodes.take(origin), ranges)
    codes = np.where(rows == NONE, 0, at.codes[np.maximum(rows, 0)] + 1)
    return Labels(codes.astype(np.int32), ("", *at.values)).merged()


def _origins(nodes: Frame, process: Ints, known: dict[tuple[int, int], int]) -> Ints:
    """For each created node the row of the one that it was cloned from, in the end."""
    origin = np.arange(nodes.rows)
    originals = nodes.ints("original_node_id")
    for _ in range(_MOST_CLONES):
        asked = zip(process[origin].tolist(), originals[origin].tolist(), strict=True)
        above = np.asarray([known.get(key, NONE) for key in asked], dtype=np.int64)
        if (above == NONE).all():
            break
        origin = np.where(above == NONE, origin, above)
    return origin
