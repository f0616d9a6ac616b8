"""GPU metrics sampled by Nsight Systems (--gpu-metrics-devices), as a frame.

Made from the documentation; no public capture with rows was at hand, so this is tested on
simulated exports only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Ints, Labels, distinct
from nsightpy.readers.nsys.columns import column, number, numbered
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.sql import sa

SAMPLES = "GPU_METRICS"
NAMES = "TARGET_INFO_GPU_METRICS"
_GPU_BITS = 0xFF


_RAW = {"time_ns": ("timestamp",), "gpu_id": ("typeId",), "metric": ("typeId", "metricId")}


def gpu_metrics(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of metric samples, in the order of the file."""
    wanted = tuple(columns or frames.GPU_METRICS.names)
    if not export.has(SAMPLES):
        return Frame.empty(frames.GPU_METRICS, wanted)
    table = export.file.tables[SAMPLES]
    names = dict.fromkeys(raw for name in wanted for raw in _RAW.get(name, (name,)))
    query = sa.select(*(number(table, name, column(name), 0) for name in names))
    raw = Frame(export.file.arrays(query, split=table))
    made: dict[str, ColumnData] = {}
    for name in wanted:
        if name == "metric":
            made[name] = _metrics(export, raw.ints("typeId"), raw.ints("metricId"))
        else:
            ids = raw.ints(*_RAW.get(name, (name,)))
            made[name] = ids & _GPU_BITS if name == "gpu_id" else ids
    return Frame(made)


def _metrics(export: NsysExport, types: Ints, kinds: Ints) -> Labels:
    """The names of samples, by type and metric."""
    known = _names(export)
    owners, owner = distinct(types)
    metrics, metric = distinct(kinds)
    pairs, codes = distinct(owner.astype(np.int64) * len(metrics) + metric)
    texts = []
    for pair in pairs.tolist():
        kind, number_ = int(owners[pair // len(metrics)]), int(metrics[pair % len(metrics)])
        texts.append(known.get((kind, number_), f"metric {number_}"))
    return Labels(codes, tuple(texts)).merged()


def _names(export: NsysExport) -> dict[tuple[int, int], str]:
    """Names by (type, metric)."""
    table = export.file.tables.get(NAMES)
    if table is None or not {"typeId", "metricId", "metricName"} <= set(table.c.keys()):
        return {}
    query = sa.select(
        number(table, "type", column("typeId"), 0),
        number(table, "metric", column("metricId"), 0),
        table.c.metricName,
    )
    return {(t, m): str(name or "") for t, m, name in numbered(export.file.rows(query), 2)}
