"""Counters of network interfaces (--nic-metrics), as a frame.

Made from the Nsight Systems User Guide, "SQLite schema reference"; no public capture with rows was
at hand, so this is tested on simulated exports only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from nsightpy import frames
from nsightpy.frames import Frame, Ints, Labels, distinct
from nsightpy.readers.nsys.columns import column, number, numbered
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.sql import sa

SAMPLES = "NET_NIC_METRIC"
NAMES = "TARGET_INFO_NETWORK_METRICS"
INTERFACES = "TARGET_INFO_NIC_INFO"
_RAW = {
    "start_ns": "start",
    "end_ns": "end",
    "nic": "globalId",
    "port": "portId",
    "list": "metricsListId",
    "place": "metricsIdx",
    "value": "value",
}
_Named: TypeAlias = dict[tuple[int, int], tuple[str, str]]


def nic_metrics(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of counters, in the order of the file."""
    wanted = tuple(columns or frames.NIC_METRICS.names)
    if not export.has(SAMPLES):
        return Frame.empty(frames.NIC_METRICS, wanted)
    table = export.file.tables[SAMPLES]
    query = sa.select(*(number(table, name, column(raw), 0) for name, raw in _RAW.items()))
    ended = query.where(table.c["end"].is_not(None)) if "end" in table.c else query
    raw = Frame(export.file.arrays(ended, split=table))
    metric, unit = _labels(_names(export), raw.ints("list"), raw.ints("place"))
    called, guid = _interfaces(export, raw.ints("nic"))
    every = {**raw, "metric": metric, "metric_unit": unit, "nic_name": called, "guid": guid}
    return Frame({name: every[name] for name in wanted})


def _interfaces(export: NsysExport, numbers: Ints) -> tuple[Labels, Labels]:
    """The name and the id of the interface of each row."""
    # older exports have the number that samples have in place of the id
    about = {
        interface: (name, None)
        for interface, name in _pairs(export, INTERFACES, "globalId", "name")
    }
    names, ids = (dict(_pairs(export, INTERFACES, "nicId", of)) for of in ("name", "GUID"))
    about |= {
        interface: (names.get(nic), ids.get(nic))
        for interface, nic in _pairs(export, "NIC_ID_MAP", "globalId", "nicId")
    }
    values, codes = distinct(numbers)
    interfaces = [about.get(number, (None, None)) for number in values.tolist()]
    guids = tuple(
        f"0x{guid & 2**64 - 1:016X}" if isinstance(guid, int) else "" for _, guid in interfaces
    )
    shown = tuple(str(name or "") for name, _ in interfaces)
    return Labels(codes, shown).merged(), Labels(codes, guids)


def _pairs(export: NsysExport, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Two columns of a small table; nothing where it lacks them."""
    table = export.file.tables.get(name)
    if table is None or not set(columns) <= set(table.c.keys()):
        return []
    kinds = {"name": sa.Text}
    picked = (sa.cast(table.c[field], kinds.get(field, sa.Integer)) for field in columns)
    return export.file.rows(sa.select(*picked))


def _labels(known: _Named, lists: Ints, places: Ints) -> tuple[Labels, Labels]:
    """The name and the unit of each row."""
    owners, owner = distinct(lists)
    numbers, place = distinct(places)
    pairs, codes = distinct(owner.astype(np.int64) * len(numbers) + place)
    texts = []
    for pair in pairs.tolist():
        key = (int(owners[pair // len(numbers)]), int(numbers[pair % len(numbers)]))
        texts.append(known.get(key, (f"metric {key[1]}", "")))
    names, units = (tuple(text[part] for text in texts) for part in (0, 1))
    return Labels(codes, names).merged(), Labels(codes, units).merged()


def _names(export: NsysExport) -> _Named:
    """Name and unit by (list, place)."""
    table = export.file.tables.get(NAMES)
    if table is None or not {"metricsListId", "metricsIdx", "name"} <= set(table.c.keys()):
        return {}
    unit = table.c.unit if "unit" in table.c else sa.literal_column("''")
    query = sa.select(
        number(table, "list", column("metricsListId"), 0),
        number(table, "place", column("metricsIdx"), 0),
        table.c.name,
        unit,
    )
    rows = numbered(export.file.rows(query), 2)
    return {(metrics, place): (str(name or ""), str(u or "")) for metrics, place, name, u in rows}
