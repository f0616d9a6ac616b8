"""What SQLite is read with: SQLAlchemy as `sa`, imported when the first statement is made (0.2 s; a
trace needs none); Arrow batches of rows as columns, and the threads that read them side by side;
what keeps SQLite from reading a file, as messages."""

from __future__ import annotations

import importlib
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from nsightpy.errors import ReportError, memory_left
from nsightpy.frames import ColumnData, Ints, Labels, constant

if TYPE_CHECKING:
    import sqlalchemy

    sa = sqlalchemy
else:

    class _OnFirstUse:
        def __getattr__(self, name: str) -> Any:
            value = getattr(importlib.import_module("sqlalchemy"), name)
            setattr(self, name, value)
            return value

    sa = _OnFirstUse()

ROW_NUMBERS = ("rowid", "_rowid_", "oid")
LOCK_WAIT_S = 1.0
WAL_FORMAT = 2


_CAUSES = (
    (
        ("locked", "busy"),
        "is locked by another program",
        "wait until nsys has finished writing it, or copy the file and read the copy.",
    ),
    (
        ("malformed", "not a database", "encrypted"),
        "is damaged (SQLite cannot read it)",
        "copy or export it again.",
    ),
    (("unable to open",), "cannot be opened", "check that it exists and may be read."),
    (  # SQLite would undo what the journal holds
        ("readonly",),
        "a change that was not finished waits in {name}-journal",
        "let its writer end, or export it again.",
    ),
)


def explained(path: Path, error: Exception | str) -> ReportError:
    """What SQLite says of a file, with what to do about it."""
    text = str(error)
    for words, problem, advice in _CAUSES:
        if any(word in text for word in words):
            return ReportError(path, problem.format(name=path.name), advice)
    first_line = text.splitlines()[0] if text else type(error).__name__
    return ReportError(path, f"SQLite says: {first_line}")


def damaged(path: Path) -> ReportError:
    """What is said of a file that SQLite cannot read."""
    return explained(path, "malformed")


def check_lock(path: Path, uri: str) -> None:
    """Raise ReportError or sqlite3.Error when a writer holds a file.

    A WAL file is never opened but as immutable.
    """
    with path.open("rb") as file:
        header = file.read(20)
    wal = path.with_name(path.name + "-wal")
    if WAL_FORMAT in header[18:20]:
        if wal.exists() and wal.stat().st_size:
            problem = f"changes that are not in the file yet wait in {wal.name}"
            advice = "close the program that writes it, or copy it with `VACUUM INTO`, then retry."
            raise ReportError(path, problem, advice)
    elif not wal.exists():  # SQLite would make an index of another file's beside the report
        with closing(sqlite3.connect(uri, uri=True, timeout=LOCK_WAIT_S)) as probe:
            probe.execute("SELECT count(*) FROM sqlite_master").fetchone()


def row_number(table: sa.TableClause) -> sa.ColumnElement[int]:
    """The number of a row, by a name that is none of the table's columns."""
    taken = {column.name.lower() for column in table.c}
    return sa.literal_column(next((n for n in ROW_NUMBERS if n not in taken), "no_row_number"))


T = TypeVar("T")

BATCH_ROWS = 65_536
# The driver ends the process where there is no memory: for its libraries, for the stack of each
# thread, for the rows of a batch (which grow by copies), and what SQLite takes for itself.
_LIBRARIES_BYTES, _THREAD_BYTES, _NUMBER_BYTES, _TEXT_BYTES = 64 * 2**20, 16 * 2**20, 24, 3 * 256
# A thread takes less to begin, its stack with it.
_MEMORY_TO_BEGIN = 32 * 2**20
_TICK_S = 0.1
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


def driver_memory(numbers: int, texts: int) -> tuple[int, int]:
    """Memory that the driver needs in bytes: once, and for each thread that reads batches of so
    many columns of numbers and of texts."""
    libraries = 0 if "pyarrow" in sys.modules else _LIBRARIES_BYTES
    return libraries, _THREAD_BYTES + BATCH_ROWS * (_NUMBER_BYTES * numbers + _TEXT_BYTES * texts)


class NotIntegersError(Exception):
    """A column of whole numbers holds something else: texts, fractions, blobs or NULL."""


def columns_of_batches(
    names: Sequence[str], texts: Set[str], arrived: Iterable[Any]
) -> dict[str, list[ColumnData]]:
    """The parts of each column; `texts` are the columns of blobs, decoded as UTF-8.

    Raises NotIntegersError where another column is not of int64, or has NULL.
    """
    columns: dict[str, list[ColumnData]] = {
        name: [Labels.of(()) if name in texts else constant(0, 0)] for name in names
    }
    for batch in arrived:
        for name, array in zip(names, batch.columns, strict=True):
            columns[name].append(_labels(array) if name in texts else _numbers(array))
    return columns


def columns_of_rows(
    names: Sequence[str], texts: Set[str], rows: Sequence[tuple[Any, ...]]
) -> dict[str, ColumnData]:
    """The same columns from rows in memory. Raises NotIntegersError, as of batches."""
    columns: dict[str, ColumnData] = {}
    by_column = zip(*rows, strict=True) if rows else [()] * len(names)
    for name, values in zip(names, by_column, strict=True):
        if any(type(value) is not (bytes if name in texts else int) for value in values):
            raise NotIntegersError
        if name in texts:
            columns[name] = Labels.of(value.decode("utf-8", "replace") for value in values)
        else:
            columns[name] = np.array(values, dtype=np.int64)
    return columns


def _labels(array: Any) -> Labels:
    """An Arrow array of blobs, decoded as UTF-8."""
    encoded = array.dictionary_encode()
    values = tuple(value.decode("utf-8", "replace") for value in encoded.dictionary.to_pylist())
    return Labels(_int64(encoded.indices.cast("int64")).astype(np.int32), values)


def _numbers(array: Any) -> Ints:
    """A copy of the values of an Arrow array, so that the batch can go."""
    values = _int64(array)
    same = len(values) > 0 and bool((values == values[0]).all())
    return constant(int(values[0]), len(values)) if same else values.copy()


def _int64(array: Any) -> Ints:
    """The values of an Arrow array, not copied (to_numpy imports pandas); NotIntegersError for
    others."""
    if array.null_count or str(array.type) != "int64":
        if len(array) == 0:
            return np.empty(0, dtype=np.int64)
        raise NotIntegersError
    return np.frombuffer(array.buffers()[1], np.int64, len(array), 8 * array.offset)


def in_threads(work: Callable[[int], T], count: int, seconds: float) -> list[T]:
    """What all parts of some work return, done side by side; the first exception is raised.

    Raises TimeoutError where they take more of the processor: nobody waits for the threads then,
    which end with the process at the latest. Signals are handled meanwhile.
    """
    results: dict[int, T] = {}
    failures: list[BaseException] = []

    def do_part(part: int) -> None:
        try:
            results[part] = work(part)
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            failures.append(error)

    end = time.process_time() + seconds * count
    threads = []
    for part in range(count):
        thread = threading.Thread(target=do_part, args=(part,), daemon=True)
        left = memory_left()
        try:
            if left is not None and left < _MEMORY_TO_BEGIN:
                raise RuntimeError("Thread.start waits without end for one that has no memory")
            thread.start()
            threads.append(thread)
        except RuntimeError:  # no more threads, or no memory for one: this one does it
            do_part(part)
    for thread in threads:
        while thread.is_alive() and not failures:
            if time.process_time() > end:
                raise TimeoutError(f"took more than {seconds} s of processor time")
            thread.join(_TICK_S)
    if failures:
        raise failures[0]
    if len(results) < count:
        raise MemoryError("a thread ended without a word")
    return [results[part] for part in range(count)]
