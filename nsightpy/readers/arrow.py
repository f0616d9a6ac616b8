"""Arrow batches of SQLite rows as columns: integers go straight to their place in one array."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any

import numpy as np

from nsightpy.frames import ColumnData, Ints, Labels, constant, joined

BATCH_ROWS = 65_536
NO_LABELS = Labels(np.empty(0, dtype=np.int32), ())
# Python is quick enough for so many texts; what encodes more takes 0.07 s to import.
FEW_TEXTS = 4_096
# The driver ends the process where there is no memory: for its libraries, for the stack of each
# thread, for the rows of a batch (which grow by copies), and what SQLite takes for itself.
_LIBRARIES_BYTES, _THREAD_BYTES, _NUMBER_BYTES = 64 * 2**20, 16 * 2**20, 24
_TEXT_BYTES = BATCH_ROWS * 256
# The options are the driver's own; its default of 1,024 rows a batch costs 40 % more time.
_OPTIONS = {"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)}


@contextmanager
def batches(uri: str, sql: str) -> Iterator[Iterable[Any]]:
    """The Arrow record batches that a query gives. Raises OSError for what the driver says."""
    import adbc_driver_manager as adbc
    import adbc_driver_sqlite
    import pyarrow as pa

    try:
        with (
            adbc_driver_sqlite.connect(uri=uri) as database,
            adbc.AdbcConnection(database) as connection,
            adbc.AdbcStatement(connection) as statement,
        ):
            statement.set_options(**_OPTIONS)
            statement.set_sql_query(sql)
            stream, _ = statement.execute_query()
            yield pa.RecordBatchReader._import_from_c(stream.address)
    except adbc.Error as error:
        raise OSError(str(error)) from error


def driver_memory(columns: int, text_bytes: int) -> tuple[int, int]:
    """Memory that the driver needs in bytes: once, and for each thread that reads batches of so
    many columns and at most so many bytes of texts."""
    libraries = 0 if "pyarrow" in sys.modules else _LIBRARIES_BYTES
    texts = 3 * min(text_bytes, _TEXT_BYTES)
    return libraries, _THREAD_BYTES + BATCH_ROWS * _NUMBER_BYTES * columns + texts


class NotIntegersError(Exception):
    """A column of whole numbers holds something else: texts, fractions, blobs or NULL."""


class Columns:
    """The columns of one query, read as parts with space for so many rows each, in their order.

    `texts` are the columns of blobs; they become Labels. Space that is not filled costs no memory:
    the system hands out pages when they are written to.
    """

    def __init__(self, names: Sequence[str], texts: Set[str], sizes: Sequence[int]) -> None:
        self._names = names
        self._offsets = list(itertools.accumulate(sizes, initial=0))
        self._filled = [0] * len(sizes)
        self._same: list[dict[str, int | None]] = [{} for _ in sizes]
        numbers = [name for name in names if name not in texts]
        self._numbers = {name: np.empty(self._offsets[-1], dtype=np.int64) for name in numbers}
        self._texts: dict[str, list[list[Labels]]] = {name: [[] for _ in sizes] for name in texts}

    def fill(self, part: int, arrived: Iterable[Any]) -> None:
        """Take the batches of one part; parts that fit their sizes may be filled side by side."""
        at = self._offsets[part]
        for batch in arrived:
            end = at + batch.num_rows
            for name, array in zip(self._names, batch.columns, strict=True):
                if name in self._texts:
                    self._texts[name][part].append(_labels(array))
                else:
                    self._put(part, name, at, _int64(array))
            at = end
        self._filled[part] = at - self._offsets[part]

    def _put(self, part: int, name: str, at: int, values: Ints) -> None:
        """Keep the next values of a part; while all are the same, only that one."""
        same = self._same[part]
        if len(values) == 0:
            return
        first = int(values[0])
        if (value := same.setdefault(name, first)) is not None:
            if value == first and bool(np.all(values == first)):
                return
            self._reaching(name, at)[self._offsets[part] : at] = value
            same[name] = None
        self._reaching(name, at + len(values))[at : at + len(values)] = values

    def _reaching(self, name: str, end: int) -> Ints:
        """The array of a column, grown where the space of its last part is used up."""
        numbers = self._numbers[name]
        if end > len(numbers):
            more = np.empty(max(end, 2 * len(numbers)) - len(numbers), dtype=np.int64)
            numbers = self._numbers[name] = np.concatenate([numbers, more])
        return numbers

    def result(self) -> dict[str, ColumnData]:
        """All parts one after the other."""
        rows = sum(self._filled)
        columns: dict[str, ColumnData] = {}
        for name in self._names:
            if name in self._texts:
                labels = [column for part in self._texts[name] for column in part]
                columns[name] = joined(labels or [NO_LABELS])
            else:
                columns[name] = self._number(name, rows)
        return columns

    def _number(self, name: str, rows: int) -> Ints:
        """The numbers of a column, constant where they are all the same."""
        seen = [same[name] for same in self._same if name in same]
        if seen and seen[0] is not None and all(value == seen[0] for value in seen):
            return constant(seen[0], rows)
        for part, same in enumerate(self._same):
            if (value := same.get(name)) is not None:
                low, high = self._offsets[part], self._offsets[part] + self._filled[part]
                self._reaching(name, high)[low:high] = value
        return self._closed_up(name)

    def _closed_up(self, name: str) -> Ints:
        """The numbers of a column without the space between its parts."""
        numbers, end = self._numbers.pop(name), 0
        for offset, filled in zip(self._offsets, self._filled, strict=False):
            # a little at a time, so that nothing large is copied aside
            for low in range(0, filled if offset > end else 0, BATCH_ROWS):
                high = min(low + BATCH_ROWS, filled)
                numbers[end + low : end + high] = numbers[offset + low : offset + high]
            end += filled
        numbers.resize(end, refcheck=False)  # the rest was written to, and goes back
        return numbers


def columns_of_rows(
    names: Sequence[str], texts: Set[str], rows: Sequence[tuple[Any, ...]]
) -> dict[str, ColumnData]:
    """The same columns from rows in memory. Raises NotIntegersError, as Columns does."""
    columns: dict[str, ColumnData] = {}
    by_column = zip(*rows, strict=True) if rows else itertools.repeat((), len(names))
    for name, values in zip(names, by_column, strict=True):
        if any(type(value) is not (bytes if name in texts else int) for value in values):
            raise NotIntegersError
        if name in texts:
            places = {value: place for place, value in enumerate(dict.fromkeys(values))}
            codes = np.array([places[value] for value in values], dtype=np.int32)
            decoded = tuple(value.decode("utf-8", "replace") for value in places)
            columns[name] = joined([Labels(codes, decoded)])
        elif values and values.count(values[0]) == len(values):
            columns[name] = constant(values[0], len(values))
        else:
            columns[name] = np.array(values, dtype=np.int64)
    return columns


def _labels(array: Any) -> Labels:
    """An Arrow array of blobs, decoded as UTF-8."""
    if len(array) <= FEW_TEXTS:
        return Labels.of(text.decode("utf-8", "replace") for text in array.to_pylist())
    import pyarrow as pa

    encoded = array.dictionary_encode()
    values = tuple(value.decode("utf-8", "replace") for value in encoded.dictionary.to_pylist())
    return Labels(_int64(encoded.indices.cast(pa.int64())).astype(np.int32), values)


def _int64(array: Any) -> Ints:
    """The values of an Arrow int64 array, not copied (to_numpy imports pandas).

    Raises NotIntegersError for any other array, and where values are NULL.
    """
    if array.null_count or str(array.type) != "int64":
        if len(array) == 0:
            return np.empty(0, dtype=np.int64)
        raise NotIntegersError
    return np.frombuffer(array.buffers()[1], np.int64, len(array), 8 * array.offset)
