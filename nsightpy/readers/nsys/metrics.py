"""Sampled counters as frames: metrics of GPUs (--gpu-metrics-devices), of networks (--nic-metrics).

Made from the Nsight Systems User Guide, "SQLite schema reference"; no public capture with rows was
at hand, so this is tested on simulated exports only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Ints, Labels, distinct, distinct_pairs
from nsightpy.readers.nsys.columns import numbered, stored
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.sql import sa

GPU_SAMPLES = "GPU_METRICS"
GPU_NAMES = "TARGET_INFO_GPU_METRICS"
NIC_SAMPLES = "NET_NIC_METRIC"
NIC_NAMES = "TARGET_INFO_NETWORK_METRICS"
INTERFACES = "TARGET_INFO_NIC_INFO"
_GPU_BITS = 0xFF
_OF_GPU = {"time_ns": ("timestamp",), "gpu_id": ("typeId",), "metric": ("typeId", "metricId")}
_OF_NIC = {
    "start_ns": "start",
    "end_ns": "end",
    "nic": "globalId",
    "port": "portId",
    "list": "metricsListId",
    "place": "metricsIdx",
    "value": "value",
}
# Name and unit of a metric by two numbers.
_Named: TypeAlias = dict[tuple[int, int], tuple[str, str]]


def gpu_metrics(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of metric samples, in the order of the file."""
    wanted = tuple(columns or frames.GPU_METRICS.names)
    if not export.has(GPU_SAMPLES):
        return Frame.empty(frames.GPU_METRICS, wanted)
    table = export.file.tables[GPU_SAMPLES]
    names = dict.fromkeys(raw for name in wanted for raw in _OF_GPU.get(name, (name,)))
    query = sa.select(*(stored(table, name, 0).label(name) for name in names))
    raw = Frame(export.file.arrays(query, split=table))
    made: dict[str, ColumnData] = {}
    for name in wanted:
        if name == "metric":
            known = _names(export, GPU_NAMES, ("typeId", "metricId", "metricName"))
            made[name], _ = _labels(known, raw.ints("typeId"), raw.ints("metricId"))
        else:
            ids = raw.ints(*_OF_GPU.get(name, (name,)))
            made[name] = ids & _GPU_BITS if name == "gpu_id" else ids
    return Frame(made)


def nic_metrics(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of counters of network interfaces, in the order of the file."""
    wanted = tuple(columns or frames.NIC_METRICS.names)
    if not export.has(NIC_SAMPLES):
        return Frame.empty(frames.NIC_METRICS, wanted)
    table = export.file.tables[NIC_SAMPLES]
    query = sa.select(*(stored(table, raw, 0).label(name) for name, raw in _OF_NIC.items()))
    ended = query.where(table.c["end"].is_not(None)) if "end" in table.c else query
    raw = Frame(export.file.arrays(ended, split=table))
    names = _names(export, NIC_NAMES, ("metricsListId", "metricsIdx", "name"))
    metric, unit = _labels(names, raw.ints("list"), raw.ints("place"))
    called, guid = _interfaces(export, raw.ints("nic"))
    every = {**raw, "metric": metric, "metric_unit": unit, "nic_name": called, "guid": guid}
    return Frame({name: every[name] for name in wanted})


def _interfaces(export: NsysExport, numbers: Ints) -> tuple[Labels, Labels]:
    """The name and the id of the interface of each row."""
    # older exports have the number that samples have in place of the id
    about = {
        interface: (name, None) for interface, name in export.rows(INTERFACES, "globalId", "name")
    }
    names, ids = (dict(export.rows(INTERFACES, "nicId", of)) for of in ("name", "GUID"))
    about |= {
        interface: (names.get(nic), ids.get(nic))
        for interface, nic in export.rows("NIC_ID_MAP", "globalId", "nicId")
    }
    values, codes = distinct(numbers)
    interfaces = [about.get(number, (None, None)) for number in values.tolist()]
    guids = tuple(
        f"0x{guid & 2**64 - 1:016X}" if isinstance(guid, int) else "" for _, guid in interfaces
    )
    shown = tuple(str(name or "") for name, _ in interfaces)
    return Labels(codes, shown).merged(), Labels(codes, guids)


def _labels(known: _Named, first: Ints, second: Ints) -> tuple[Labels, Labels]:
    """The name and the unit of each row, by its two numbers; unnamed metrics go by the second."""
    keys, codes = distinct_pairs(first, second)
    texts = [known.get(key, (f"metric {key[1]}", "")) for key in keys]
    names, units = (tuple(text[part] for text in texts) for part in (0, 1))
    return Labels(codes, names).merged(), Labels(codes, units).merged()


def _names(export: NsysExport, name: str, columns: tuple[str, str, str]) -> _Named:
    """Name and unit by two numbers, of a table with these columns for the numbers and the name."""
    rows = numbered(export.rows(name, *columns, optional=("unit",)), 2)
    return {(first, second): (str(text or ""), str(u or "")) for first, second, text, u in rows}
