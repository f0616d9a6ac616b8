"""Sampled counters as frames: metrics of GPUs (--gpu-metrics-devices), of networks (--nic-metrics).

Made from the Nsight Systems User Guide, "SQLite schema reference"; no public capture with rows was
at hand, so this is tested on simulated exports only.
"""

from __future__ import annotations

from functools import partial

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Labels, distinct, distinct_pairs
from nsightpy.readers.nsys.table_frames import Derived, Source, reader
from nsightpy.readers.nsys.tables import NsysExport

INTERFACES = "TARGET_INFO_NIC_INFO"
_GPU_BITS = 0xFF


def _interfaces(export: NsysExport, samples: Frame) -> dict[str, ColumnData]:
    """The name and the id of the interface of each row."""
    listed = export.file.values(INTERFACES, ("globalId", "nicId", "GUID"), ("name",))
    # older exports have the number that samples have in place of the id
    about = {number: (name, None) for number, _, _, name in listed}
    by_id = {nic: (name, guid) for _, nic, guid, name in listed}
    for number, nic in export.file.values("NIC_ID_MAP", ("globalId", "nicId")):
        about[number] = by_id.get(nic, (None, None))
    values, codes = distinct(samples.ints("nic"))
    interfaces = [about.get(number, (None, None)) for number in values.tolist()]
    guids = tuple(
        f"0x{guid & 2**64 - 1:016X}" if isinstance(guid, int) else "" for _, guid in interfaces
    )
    shown = tuple(str(name or "") for name, _ in interfaces)
    return {"nic_name": Labels(codes, shown).merged(), "guid": Labels(codes, guids)}


def _metric(
    export: NsysExport, samples: Frame, table: str, columns: tuple[str, ...]
) -> dict[str, ColumnData]:
    """The name and the unit of each row, by the two numbers that a table of names has in columns.

    Unnamed metrics go by the second number.
    """
    *keys, name = columns
    rows = export.file.values(table, keys, (name, "unit"))
    named = {(first, second): (text or "", unit or "") for first, second, text, unit in rows}
    pairs, codes = distinct_pairs(samples.ints("list"), samples.ints("place"))
    texts = [named.get(key, (f"metric {key[1]}", "")) for key in pairs]
    names, units = (tuple(text[part] for text in texts) for part in (0, 1))
    return {
        "metric": Labels(codes, names).merged(),
        "metric_unit": Labels(codes, units).merged(),
    }


def _gpu(_export: NsysExport, samples: Frame) -> dict[str, ColumnData]:
    return {"gpu_id": samples.ints("list") & _GPU_BITS}


gpu_metrics = reader(
    frames.GPU_METRICS,
    Source(
        "GPU_METRICS",
        {"time_ns": "timestamp", "value": "value", "list": "typeId", "place": "metricId"},
        derived=(
            Derived(("gpu_id",), ("list",), _gpu),
            Derived(
                ("metric",),
                ("list", "place"),
                partial(
                    _metric,
                    table="TARGET_INFO_GPU_METRICS",
                    columns=("typeId", "metricId", "metricName"),
                ),
            ),
        ),
    ),
)
nic_metrics = reader(
    frames.NIC_METRICS,
    Source(
        "NET_NIC_METRIC",
        {
            "start_ns": ("start", 0),
            "end_ns": "end",
            "nic": "globalId",
            "port": "portId",
            "value": "value",
            "list": "metricsListId",
            "place": "metricsIdx",
        },
        derived=(
            Derived(
                ("metric", "metric_unit"),
                ("list", "place"),
                partial(
                    _metric,
                    table="TARGET_INFO_NETWORK_METRICS",
                    columns=("metricsListId", "metricsIdx", "name"),
                ),
            ),
            Derived(("nic_name", "guid"), ("nic",), _interfaces),
        ),
        where=lambda table: table.c["end"].is_not(None) if "end" in table.c else None,
    ),
)
