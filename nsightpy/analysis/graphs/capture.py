"""Where the nodes of a CUDA graph come from: the code ranges that were open at their creation."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.operators.device_time import NONE
from nsightpy.analysis.operators.modules import path_around
from nsightpy.frames import Frame, Ints, Labels, distinct

# A node is cloned when its graph is instantiated, or put into another graph: seldom more often.
_MOST_CLONES = 8


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
    at = path_around(ranges, nodes.take(origin))
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
