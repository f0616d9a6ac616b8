"""Frames as files for other programs: parquet or csv, written some ten thousand rows at a time."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from nsightpy.frames import ColumnData, Frame, Labels
from nsightpy.output.escape import csv_text
from nsightpy.output.formats import encodable, flush

BATCH_ROWS = 1 << 17


def write_frames(frames: Iterable[Frame], path: Path, format_: str) -> int:
    """Frames of the same columns, one after the other, in a new file, in one of FORMATS.

    Returns the number of rows; without any there is no file. Raises OSError.
    """
    rows, parts = 0, (part for frame in frames for part in frame.in_parts(BATCH_ROWS) if part.rows)
    first = next(parts, None)
    if first is None:
        return 0
    path.parent.mkdir(exist_ok=True)
    with path.open("xb") as file, FORMATS[format_](first, file) as write:
        for part in chain([first], parts):
            write(part)
            rows += part.rows
    return rows


@contextmanager
def _parquet(like: Frame, file: BinaryIO) -> Iterator[Callable[[Frame], None]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def array(data: ColumnData) -> Any:
        if not isinstance(data, Labels):
            type_ = pa.float64() if data.dtype.kind == "f" else pa.int64()
            return pa.array(np.ascontiguousarray(data), type_)
        names = pa.array(list(map(encodable, data.values)), pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(data.codes, pa.int32()), names)

    def table(part: Frame) -> Any:
        return pa.table(list(map(array, part.values())), names=list(part))

    with pq.ParquetWriter(file, table(like).schema) as writer:
        yield lambda part: writer.write_table(table(part))


@contextmanager
def _csv(like: Frame, file: BinaryIO) -> Iterator[Callable[[Frame], None]]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(list(like))

    def write(part: Frame) -> None:
        writer.writerows(zip(*map(_cells, part.values()), strict=True))
        flush(text, file)

    yield write


def _cells(data: ColumnData) -> list[Any]:
    if isinstance(data, Labels):
        names = list(map(csv_text, data.values))
        return [names[code] for code in data.codes.tolist()]
    cells: list[Any] = data.tolist()
    return cells if data.dtype.kind != "f" else ["" if math.isnan(cell) else cell for cell in cells]


FORMATS = {"parquet": _parquet, "csv": _csv}
