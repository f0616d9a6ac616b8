"""What analyses hand to renderers: tables, findings, rooflines, tracks."""

from __future__ import annotations

from nsightpy.results.listing import LazyRows, Row
from nsightpy.results.tables import (
    AnyTable,
    DurationModes,
    Field,
    Finding,
    Histogram,
    MemoryGrowth,
    MemorySeries,
    MemoryUsage,
    QueueLengths,
    QueueSeries,
    Summary,
    Table,
    Value,
    finding_record,
    with_notes,
)

__all__ = [
    "AnyTable",
    "DurationModes",
    "Field",
    "Finding",
    "Histogram",
    "LazyRows",
    "MemoryGrowth",
    "MemorySeries",
    "MemoryUsage",
    "QueueLengths",
    "QueueSeries",
    "Row",
    "Summary",
    "Table",
    "Value",
    "finding_record",
    "with_notes",
]
