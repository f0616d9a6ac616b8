"""What analyses hand to renderers: tables, findings, rooflines, tracks."""

from nsightpy.results.findings import (
    FINDING_FIELDS as FINDING_FIELDS,
    Finding as Finding,
    finding_record as finding_record,
    findings_table as findings_table,
)
from nsightpy.results.keys import (
    LazyRows as LazyRows,
    Record as Record,
    Row as Row,
    Value as Value,
    ns_of as ns_of,
    number as number,
    rank_order as rank_order,
)
from nsightpy.results.notes import Note as Note, Said as Said
from nsightpy.results.summary import Summary as Summary
from nsightpy.results.tables import (
    UNKNOWN as UNKNOWN,
    AnyTable as AnyTable,
    Field as Field,
    Table as Table,
    View as View,
    fields_in as fields_in,
    rows_of as rows_of,
    with_notes as with_notes,
)
