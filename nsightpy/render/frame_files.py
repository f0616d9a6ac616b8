"""Frames as files for other programs: parquet or csv, written some ten thousand rows at a time."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from nsightpy.frames import ColumnData, Frame, Labels
from nsightpy.render.escape import csv_text
from nsightpy.render.formats import encodable

BATCH_ROWS = 1 << 17


def write_frame(frame: Frame, path: Path, format_: str) -> None:
    """A frame in a new file, in one of FORMATS. Raises OSError."""
    with path.open("xb") as file:
        FORMATS[format_](frame, file)


def _parquet(frame: Frame, file: BinaryIO) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = [(name, _type(data)) for name, data in frame.items()]
    schema = pa.schema(fields)
    with pq.ParquetWriter(file, schema) as writer:
        for part in _parts(frame):
            arrays = [_array(data, schema.field(name).type) for name, data in part.items()]
            writer.write_table(pa.table(arrays, schema=schema))


def _csv(frame: Frame, file: BinaryIO) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(list(frame))
    for part in _parts(frame):
        writer.writerows(zip(*map(_cells, part.values()), strict=True))
        file.write(text.getvalue().encode("utf-8", "backslashreplace"))
        text.seek(0)
        text.truncate()


def _parts(frame: Frame) -> Iterator[Frame]:
    """The rows some ten thousand at a time; an empty frame once, so that its columns are there."""
    for low in range(0, max(frame.rows, 1), BATCH_ROWS):
        yield frame.take(np.arange(low, min(low + BATCH_ROWS, frame.rows)))


def _type(data: ColumnData) -> Any:
    import pyarrow as pa

    if isinstance(data, Labels):
        return pa.dictionary(pa.int32(), pa.string())
    return pa.float64() if data.dtype.kind == "f" else pa.int64()


def _array(data: ColumnData, type_: Any) -> Any:
    import pyarrow as pa

    if not isinstance(data, Labels):
        return pa.array(np.ascontiguousarray(data), type_)
    names = pa.array(list(map(encodable, data.values)), pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(data.codes, pa.int32()), names)


def _cells(data: ColumnData) -> list[Any]:
    if isinstance(data, Labels):
        names = list(map(csv_text, data.values))
        return [names[code] for code in data.codes.tolist()]
    cells: list[Any] = data.tolist()
    return cells if data.dtype.kind != "f" else ["" if math.isnan(cell) else cell for cell in cells]


FORMATS: dict[str, Callable[[Frame, BinaryIO], None]] = {"parquet": _parquet, "csv": _csv}
