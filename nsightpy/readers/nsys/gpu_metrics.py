"""GPU metrics sampled by Nsight Systems (--gpu-metrics-devices), as a frame.

Made from the documentation; no public capture with rows was at hand, so this is tested on
simulated exports only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sqlalchemy as sa

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Labels, distinct
from nsightpy.readers.nsys.tables import NsysExport, column, number

SAMPLES = "GPU_METRICS"
NAMES = "TARGET_INFO_GPU_METRICS"
_GPU_BITS = 0xFF


def gpu_metrics(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of metric samples, by time; samples of one time by metric as in the file."""
    wanted = tuple(columns or frames.GPU_METRICS.names)
    if not export.has(SAMPLES):
        return Frame.empty(frames.GPU_METRICS, wanted)
    table = export.file.tables[SAMPLES]
    names = ("timestamp", "typeId", "metricId", "value")
    query = sa.select(*(number(table, name, column(name), 0) for name in names))
    raw = Frame(export.file.arrays(query, split=table))
    order = np.argsort(raw.ints("timestamp"), kind="stable")
    types, kinds = raw.ints("typeId")[order], raw.ints("metricId")[order]
    made: dict[str, ColumnData] = {
        "time_ns": raw.ints("timestamp")[order],
        "gpu_id": types & _GPU_BITS,
        "value": raw.ints("value")[order],
    }
    if "metric" in wanted:
        known = _names(export)
        owners, owner = distinct(types)
        metrics, metric = distinct(kinds)
        pairs, codes = distinct(owner.astype(np.int64) * len(metrics) + metric)
        texts = []
        for pair in pairs.tolist():
            kind, number_ = int(owners[pair // len(metrics)]), int(metrics[pair % len(metrics)])
            texts.append(known.get((kind, number_), f"metric {number_}"))
        made["metric"] = Labels(codes, tuple(texts)).merged()
    return Frame({name: made[name] for name in wanted})


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
    return {(int(t), int(m)): str(name or "") for t, m, name in export.file.rows(query)}
