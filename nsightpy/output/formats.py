"""Tables for machines: csv, json, markdown and parquet. Figures in ns, bytes and plain numbers.

Each format has one writer, which streams: of millions of rows some ten thousand are held.
"""

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, BinaryIO

from nsightpy import __version__
from nsightpy.output.cells import cells, heading
from nsightpy.output.escape import csv_text, markdown_text
from nsightpy.results import UNKNOWN, Field, LazyRows, Row, Summary, Table, Value, findings_table

SCHEMA_VERSION = 1
BATCH_ROWS = 1 << 16
# Sections of a summary that are no tables, and hold texts out of reports.
SUMMARY_UNTRUSTED = ("header", "next_steps")
_SMALL, _MOST_DECIMALS = ("ratio", "share", "GB/s"), 15
_INDENT = 2


def write_csv(table: Table, file: BinaryIO) -> None:
    """RFC 4180 with LF line ends; an absent value is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    for batch in _batches(table):
        writer.writerows(
            [
                csv_text(value) if isinstance(value, str) else plain(value, field)
                for value, field in zip(row, table.fields, strict=True)
            ]
            for row in batch
        )
        flush(text, file)
    flush(text, file)


def write_json(answer: Table | Summary, file: BinaryIO) -> None:
    """The versioned document of one command; see `document_of`."""
    document = document_of(answer, rows=False)
    for name, value in document.items():
        start = "{" if name == "schema" else ","
        file.write(f"{start}\n{' ' * _INDENT}{json.dumps(name)}: ".encode())
        if name == "rows" and isinstance(answer, Table):
            _write_rows(answer, file)
        else:
            file.write(_indented(value, _INDENT))
    file.write(b"\n}\n")


def write_markdown(table: Table, file: BinaryIO) -> None:
    """A pipe table in people's words and units, numbers right-aligned, followed by the notes."""
    columns = [(heading(field), *cells(field, table.column(field.name))) for field in table.fields]
    heads = [f"{head} ({unit})" if unit else head for head, _, unit in columns]
    lines = [
        f"| {' | '.join(map(markdown_text, heads))} |",
        f"| {' | '.join('---' if f.is_text else '---:' for f in table.fields)} |",
    ]
    for row in zip(*(texts for _, texts, _ in columns), strict=True):
        lines.append(f"| {' | '.join(map(markdown_text, row))} |")
    lines += [""] if table.notes else []
    lines += [f"- {markdown_text(note)}" for note in map(str, table.notes)]
    file.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))


def write_parquet(table: Table, file: BinaryIO) -> None:
    """The table's columns, a row group for each batch: absent values are null, notes metadata.

    Types are those of all rows, or of the first batch of rows that are made while they are read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = json.dumps({"inputs": table.inputs, "notes": table.notes}).encode()
    batches = _batches(table)
    first = next(batches, [])
    seen = first if isinstance(table.rows, LazyRows) else table.rows
    columns = zip(*seen, strict=True) if seen else [()] * len(table.fields)
    kinds = [_kind(f, values) for f, values in zip(table.fields, columns, strict=True)]
    types = [(name, getattr(pa, kind)()) for name, kind in zip(table.columns, kinds, strict=True)]
    version = f"{table.command}/{SCHEMA_VERSION}"
    schema = pa.schema(types, {"nsightpy": version, "nsightpy.about": about})
    with pq.ParquetWriter(file, schema) as writer:
        for batch in (first, *batches) if first else ():
            arrays = []
            for values, kind in zip(zip(*batch, strict=True), schema.types, strict=True):
                texts = (value if value is None else encodable(str(value)) for value in values)
                known = list(texts) if kind == pa.string() else finite(values)
                arrays.append(pa.array(known, kind))
            writer.write_table(pa.table(arrays, schema=schema))


WRITERS = {
    "csv": write_csv,
    "json": write_json,
    "markdown": write_markdown,
    "parquet": write_parquet,
}


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
        more = 2 - math.floor(math.log10(abs(value))) if value and field.kind in _SMALL else 0
        return f"{value:.{max(field.decimals, min(more, _MOST_DECIMALS))}f}"
    return str(value)


def document_of(answer: Table | Summary, rows: bool = True) -> dict[str, Any]:
    """The document of one command as plain values, every absent or infinite number None.

    schema, tool_version, inputs, rows (each with its keys; of summarize its sections by name),
    notes, total_rows (None: not counted), truncated, abstentions, untrusted (columns with free text
    out of reports), then what the command adds. Without `rows` those are left to the caller.
    """
    counts: dict[str, Any] = {}
    members: dict[str, Any] = {}
    if isinstance(answer, Summary):
        body = answer.to_dict()
        sections = {**answer.sections, "findings": findings_table(answer.findings)}
        free = (f"{name}.{each}" for name, table in sections.items() for each in table.untrusted)
        untrusted: tuple[str, ...] = (*SUMMARY_UNTRUSTED, *free)
    else:
        body = {"rows": list(answer.keyed()) if rows else []}
        total = None if answer.total == UNKNOWN else answer.total
        counts = {"total_rows": total, "truncated": answer.truncated}
        untrusted, members = answer.untrusted, answer.members()
    document = {
        "schema": f"nsightpy.{answer.command}/{SCHEMA_VERSION}",
        "tool_version": __version__,
        "inputs": list(answer.inputs),
        **body,
        "notes": list(map(str, answer.notes)),
        **counts,
        "abstentions": list(map(dict, answer.abstentions)),
        "untrusted": list(untrusted),
        **members,
    }
    return {name: finite(value) for name, value in document.items()}


def error_document(file: str, what: str, what_to_do: str) -> dict[str, Any]:
    """What went wrong as data: which file, what is wrong, what to do; null where nothing says."""
    error = {"file": file or None, "what": what, "what_to_do": what_to_do or None}
    schema = f"nsightpy.error/{SCHEMA_VERSION}"
    return {"schema": schema, "tool_version": __version__, "error": error}


def finite(value: Any) -> Any:
    """The same values with every NaN and infinity as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return value


def encodable(text: str) -> str:
    """The text as UTF-8 can hold it: names of files may carry bytes that are no text."""
    return text.encode("utf-8", "backslashreplace").decode()


def _write_rows(table: Table, file: BinaryIO) -> None:
    records, mark, space = table.keyed(), b"[\n", b" " * 2 * _INDENT
    while batch := list(islice(records, BATCH_ROWS)):
        rows = (space + _indented(finite(row), 2 * _INDENT) for row in batch)
        file.write(mark + b",\n".join(rows))
        mark = b",\n"
    file.write(b"[]" if mark.startswith(b"[") else b"\n" + b" " * _INDENT + b"]")


def _indented(value: Any, by: int) -> bytes:
    """A value as ASCII, its lines after the first moved to the right."""
    text = json.dumps(value, indent=_INDENT, ensure_ascii=True, allow_nan=False)
    return text.replace("\n", "\n" + " " * by).encode()


def _kind(field: Field, values: Sequence[Value]) -> str:
    """The type of a column in parquet."""
    if field.is_text or any(isinstance(value, str) for value in values):
        return "string"
    if field.kind == "bool" or any(isinstance(value, bool) for value in values):
        return "bool_"
    whole = field.decimals is None and not any(isinstance(value, float) for value in values)
    return "int64" if whole else "float64"


def _batches(table: Table) -> Iterator[list[Row]]:
    rows = iter(table.rows)
    while batch := list(islice(rows, BATCH_ROWS)):
        yield batch


def flush(text: io.StringIO, file: BinaryIO) -> None:
    """What was written so far, into the file."""
    file.write(text.getvalue().encode("utf-8", "backslashreplace"))
    text.seek(0)
    text.truncate()
