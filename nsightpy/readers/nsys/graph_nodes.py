"""The creation of CUDA graph nodes in an export.

Up to schema 3.7.2 the table CUDA_GRAPH_EVENTS held these events; it is known by its columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy import frames
from nsightpy.frames import Frame
from nsightpy.readers.nsys.columns import SPAN, column, process_of, thread_of
from nsightpy.readers.nsys.table_frames import Source, read
from nsightpy.readers.nsys.tables import NsysExport

_COLUMNS = {
    **SPAN,
    "pid": process_of("globalTid"),
    "tid": thread_of("globalTid"),
    "graph_node_id": column("graphNodeId"),
    "original_node_id": column("originalGraphNodeId"),
}
_TABLES = ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS")


def graph_nodes(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of created graph nodes; empty where none were recorded."""
    for name in _TABLES:
        if export.has(name) and "graphNodeId" in export.file.tables[name].c:
            return read(export, frames.GRAPH_NODES, Source(name, _COLUMNS), columns)
    return Frame.empty(frames.GRAPH_NODES, columns)
