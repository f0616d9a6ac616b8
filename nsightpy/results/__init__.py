"""What analyses hand to renderers: tables, findings, rooflines, tracks."""

from __future__ import annotations

from nsightpy.results.abstention import Abstention
from nsightpy.results.findings import FINDING_FIELDS, Finding, finding_record, findings_table
from nsightpy.results.listing import LazyRows, Row, Value, rank_order
from nsightpy.results.summary import Summary
from nsightpy.results.tables import (
    UNKNOWN,
    AnyTable,
    Field,
    Table,
    fields_in,
    with_notes,
)

__all__ = [
    "FINDING_FIELDS",
    "UNKNOWN",
    "Abstention",
    "AnyTable",
    "Field",
    "Finding",
    "LazyRows",
    "Row",
    "Summary",
    "Table",
    "Value",
    "fields_in",
    "finding_record",
    "findings_table",
    "rank_order",
    "with_notes",
]
