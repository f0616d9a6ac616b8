"""The formats for machines, written some ten thousand rows at a time: csv, json and parquet.

What is written is what `output.formats` makes of the same rows.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import BinaryIO

from nsightpy.output.escape import csv_text
from nsightpy.output.formats import SCHEMA_VERSION, document_of, encodable, finite, plain
from nsightpy.results import Field, Row, Table

BATCH_ROWS = 1 << 16


def write_csv(table: Table, file: BinaryIO) -> None:
    """As `to_csv`."""
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
        _flush(text, file)
    _flush(text, file)


def write_json(table: Table, file: BinaryIO) -> None:
    """As `to_json`, each row on a line."""
    document = document_of(table, rows=False)
    for name, value in document.items():
        start = "{\n" if name == "schema" else ",\n"
        file.write(f"{start}{json.dumps(name)}: ".encode())
        if name == "rows":
            _write_rows(table, file)
        else:
            file.write(json.dumps(value).encode())
    file.write(b"\n}\n")


def _write_rows(table: Table, file: BinaryIO) -> None:
    records, mark = table.keyed(), "[\n"
    while batch := list(islice(records, BATCH_ROWS)):
        file.write((mark + ",\n".join(json.dumps(finite(row)) for row in batch)).encode())
        mark = ",\n"
    file.write(b"[]" if mark.startswith("[") else b"\n]")


def write_parquet(table: Table, file: BinaryIO) -> None:
    """As `to_parquet`; a row group for each batch."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = json.dumps({"inputs": table.inputs, "notes": table.notes}).encode()
    schema = pa.schema(
        [(field.name, getattr(pa, _kind(field))()) for field in table.fields],
        {"nsightpy": f"{table.command}/{SCHEMA_VERSION}", "nsightpy.about": about},
    )
    with pq.ParquetWriter(file, schema) as writer:
        for batch in _batches(table):
            columns = zip(table.fields, zip(*batch, strict=True), strict=True)
            arrays = [_array(values, field) for field, values in columns]
            writer.write_table(pa.table(arrays, schema=schema))


def _array(values: Sequence[object], field: Field) -> object:
    import pyarrow as pa

    if field.unit == "text":
        values = [None if value is None else encodable(str(value)) for value in values]
    return pa.array(values, getattr(pa, _kind(field))())


def _kind(field: Field) -> str:
    if field.unit == "text":
        return "string"
    return "int64" if field.decimals is None else "float64"


def _batches(table: Table) -> Iterator[list[Row]]:
    rows = iter(table.rows)
    while batch := list(islice(rows, BATCH_ROWS)):
        yield batch


def _flush(text: io.StringIO, file: BinaryIO) -> None:
    """What was written so far, into the file."""
    file.write(text.getvalue().encode("utf-8", "backslashreplace"))
    text.seek(0)
    text.truncate()


WRITERS = {"csv": write_csv, "json": write_json, "parquet": write_parquet}
