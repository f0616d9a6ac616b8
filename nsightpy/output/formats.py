"""Tables for machines: csv, json, markdown and parquet. Figures in ns, bytes and plain numbers."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from nsightpy import __version__
from nsightpy.output.cells import cells, is_text
from nsightpy.output.escape import csv_text, markdown_text
from nsightpy.output.headings import heading
from nsightpy.results import UNKNOWN, Abstention, Field, Summary, Table, Value, findings_table

SCHEMA_VERSION = 1
# Sections of a summary that are no tables, and hold texts out of reports.
SUMMARY_UNTRUSTED = ("header", "next_steps")
_SMALL, _MOST_DECIMALS = ("ratio", "GB/s"), 15


def to_csv(table: Table) -> bytes:
    """RFC 4180 with LF line ends; an absent value is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow(
            csv_text(value) if isinstance(value, str) else plain(value, field)
            for value, field in zip(row, table.fields, strict=True)
        )
    return text.getvalue().encode("utf-8", "backslashreplace")


def to_json(table: Table) -> bytes:
    """The versioned document of one command; see `document_of`."""
    return written(document_of(table))


def summary_json(summary: Summary) -> bytes:
    """The versioned document of summarize: its sections by name instead of rows."""
    return written(summary_document(summary))


def to_markdown(table: Table) -> bytes:
    """A pipe table in people's words and units, numbers right-aligned, followed by the notes."""
    columns = [
        (
            field.heading or heading(table.command, field.name),
            *cells(field, table.column(field.name)),
        )
        for field in table.fields
    ]
    heads = [f"{head} ({unit})" if unit else head for head, _, unit in columns]
    lines = [
        f"| {' | '.join(map(markdown_text, heads))} |",
        f"| {' | '.join('---' if is_text(f) else '---:' for f in table.fields)} |",
    ]
    for row in zip(*(texts for _, texts, _ in columns), strict=True):
        lines.append(f"| {' | '.join(map(markdown_text, row))} |")
    lines += [""] if table.notes else []
    lines += [f"- {markdown_text(note)}" for note in table.notes]
    return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")


def to_parquet(table: Table) -> bytes:
    """A Parquet file with the table's columns; absent values are null; notes are metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = [_arrow(table.column(field.name), field) for field in table.fields]
    about = json.dumps({"inputs": table.inputs, "notes": table.notes}).encode()
    arrow = pa.table(arrays, names=list(table.columns)).replace_schema_metadata(
        {"nsightpy": f"{table.command}/{SCHEMA_VERSION}", "nsightpy.about": about}
    )
    sink = pa.BufferOutputStream()
    pq.write_table(arrow, sink)
    return bytes(sink.getvalue().to_pybytes())


def plain(value: Value, field: Field) -> str:
    """A number as its field prints it, without separators; empty when absent.

    Small ratios and rates have as many more decimals as three digits take: they are no zeros.
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if field.decimals is None:
            return repr(value)
        more = 2 - math.floor(math.log10(abs(value))) if value and field.unit in _SMALL else 0
        return f"{value:.{max(field.decimals, min(more, _MOST_DECIMALS))}f}"
    return str(value)


def document_of(table: Table, rows: bool = True) -> dict[str, Any]:
    """The document of one command as plain values, every absent or infinite number None.

    schema, tool_version, inputs, rows (each with its keys), notes, total_rows (None: not counted),
    truncated, abstentions, untrusted (columns with free text out of reports), then what the command
    adds. Without `rows` those are left to the caller.
    """
    counted = len(table.rows) if table.total_rows is None else table.total_rows
    document: dict[str, Any] = {
        **_opened(table.command, table.inputs),
        "rows": list(table.keyed()) if rows else [],
        "notes": list(table.notes),
        "total_rows": None if counted == UNKNOWN else counted,
        "truncated": table.truncated,
        **_closed(table.abstentions, table.untrusted),
        **table.members(),
    }
    return {name: finite(value) for name, value in document.items()}


def summary_document(summary: Summary) -> dict[str, Any]:
    """The same of summarize: its sections by name instead of rows."""
    sections = {**summary.sections, "findings": findings_table(summary.findings)}
    free = [f"{name}.{column}" for name, table in sections.items() for column in table.untrusted]
    document: dict[str, Any] = {
        **_opened("summarize", summary.inputs),
        **summary.to_dict(),
        "notes": list(summary.notes),
        **_closed(summary.abstentions, (*SUMMARY_UNTRUSTED, *free)),
    }
    return {name: finite(value) for name, value in document.items()}


def error_document(file: str, what: str, what_to_do: str) -> dict[str, Any]:
    """What went wrong as data: which file, what is wrong, what to do; null where nothing says."""
    error = {"file": file or None, "what": what, "what_to_do": what_to_do or None}
    schema = f"nsightpy.error/{SCHEMA_VERSION}"
    return {"schema": schema, "tool_version": __version__, "error": error}


def error_line(file: str, what: str, what_to_do: str) -> str:
    """The same as one line of ASCII."""
    return json.dumps(error_document(file, what, what_to_do), ensure_ascii=True)


def _opened(command: str, inputs: Sequence[str]) -> dict[str, Any]:
    schema = f"nsightpy.{command}/{SCHEMA_VERSION}"
    return {"schema": schema, "tool_version": __version__, "inputs": list(inputs)}


def _closed(abstentions: Sequence[Abstention], untrusted: Sequence[str]) -> dict[str, Any]:
    return {
        "abstentions": [abstention.record() for abstention in abstentions],
        "untrusted": list(untrusted),
    }


def written(document: Mapping[str, Any]) -> bytes:
    """A document as ASCII, with a line end."""
    text = json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False)
    return f"{text}\n".encode()


def finite(value: Any) -> Any:
    """The same values with every NaN and infinity as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return value


def _arrow(values: Sequence[Value], field: Field) -> Any:
    import pyarrow as pa

    if is_text(field) or any(isinstance(value, str) for value in values):
        return pa.array([None if v is None else encodable(str(v)) for v in values], pa.string())
    if any(isinstance(value, bool) for value in values):
        return pa.array(values, pa.bool_())
    whole = field.decimals is None and not any(isinstance(value, float) for value in values)
    return pa.array(finite(values), pa.int64() if whole else pa.float64())


def encodable(text: str) -> str:
    """The text as UTF-8 can hold it: names of files may carry bytes that are no text."""
    return text.encode("utf-8", "backslashreplace").decode()
