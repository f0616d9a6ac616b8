"""The only module that reads SQLite: read-only, schema probing, SQLAlchemy Core in, columns out.

Big tables travel as Arrow batches through ADBC, several row ranges at a time; small ones as rows.
Nothing is ever written into or beside the file.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from nsightpy.errors import ReportError
from nsightpy.frames import ColumnData, joined
from nsightpy.readers.limits import (
    STEPS_BETWEEN,
    query_seconds,
    threads_in_memory,
)
from nsightpy.readers.sql import (
    NotIntegersError,
    batches,
    check_lock,
    columns_of_batches,
    columns_of_rows,
    damaged,
    driver_memory,
    explained,
    in_threads,
    row_number,
    sa,
)
from nsightpy.readers.tools.file_check import check_file, file_size, resolved
from nsightpy.readers.tools.signals import interruption

Query: TypeAlias = "sa.Select[*tuple[Any, ...]]"

PARALLEL_ROWS = 200_000
# The driver, with pyarrow, takes longer to import (0.1 s) than so few rows to read.
FEW_ROWS = 4_096
# Threads that read one table at most, where nobody wants fewer.
READING_THREADS = 4
# A text or blob of one row may be so long.
LONGEST_VALUE = 256 * 2**20
# The columns of every table. A view, or what is no table that SQLite itself knows, has none: it
# may have no end, or need any amount of memory.
_SCHEMA = (
    "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c "
    "WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY t.rowid, c.cid"
)
_OTHERS = "SELECT name FROM sqlite_master WHERE type = 'view' OR sql LIKE 'CREATE VIRTUAL%'"
# How the driver says that a value fits none of the types that the first ones had.
_MISMATCH = "Type mismatch in column"


class SqliteFile:
    """One SQLite file, opened read-only; big tables are read by several threads.

    Raises ReportError, naming the file, for anything that keeps it from being read.
    """

    def __init__(self, path: Path, threads: int | None = None) -> None:
        self.path = path
        self.threads = threads or READING_THREADS
        self._seconds = query_seconds(file_size(path))
        self._most_rows = file_size(path)
        # when a query is to end, in processor time of its thread
        self._end = [0.0]
        check_file(path)
        with self._errors():
            check_lock(path, self._uri("cache=private"))

    @cached_property
    def tables(self) -> dict[str, sa.TableClause | None]:
        """Every table by name, with the columns it really has; None for views."""
        columns: dict[str, list[str]] = {str(name): [] for (name,) in self._fetched(_OTHERS)}
        for table, column in self._fetched(_SCHEMA):
            columns.setdefault(str(table), []).append(str(column))
        return {
            name: sa.table(name, *map(sa.column, names)) if names else None
            for name, names in columns.items()
        }

    def table(self, name: str) -> sa.TableClause | None:
        """A table; None where there is none. Raises ReportError where a view is in its place."""
        table = self.tables.get(name)
        if table is None and name in self.tables:
            problem = f"has a view or a virtual table in place of the table {name}"
            advice = "make it a table (CREATE TABLE ... AS SELECT ...), or export the report again."
            raise ReportError(self.path, problem, advice)
        return table

    def values(
        self,
        name: str,
        numbers: Sequence[str],
        texts: Sequence[str] = (),
        where: sa.ColumnElement[bool] | None = None,
    ) -> list[tuple[Any, ...]]:
        """Whole numbers and texts of the rows of a small table; None for NULL, and in place of
        columns that it lacks.

        There are none without the table, or `where` a column is needed that it lacks. Raises
        ReportError where anything else stands in place of a number.
        """
        table = self.table(name)
        if table is None or (where is not None and not {*numbers, *texts} <= {*table.c.keys()}):
            return []
        columns = [table.c[c] if c in table.c else sa.null() for c in (*numbers, *texts)]
        query = sa.select(*columns).select_from(table)
        rows = self.rows(query if where is None else query.where(where))
        count = len(numbers)
        if any(type(value) in (str, float, bytes) for row in rows for value in row[:count]):
            raise self._not_integers(sa.select(*columns[:count]))
        return [(*row[:count], *(v if v is None else str(v) for v in row[count:])) for row in rows]

    def rows(self, query: Query) -> list[tuple[Any, ...]]:
        """All rows of a small query; text that is no UTF-8 has its bytes replaced."""
        return self._fetched(compile_sql(query))

    def _fetched(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a query; a damaged tree, whose pages lead back to each other, has no end."""
        with self._errors():
            self._end[0] = time.thread_time() + self._seconds
            rows = list(itertools.islice(self._connection.execute(sql), self._most_rows + 1))
        if len(rows) > self._most_rows:
            raise self._too_many_rows()
        return rows

    def row_bounds(self, table: sa.TableClause) -> tuple[int, int] | None:
        """First and last row number of a table; None when it has no rows, or no row numbers."""
        rowid = row_number(table)
        ends = (sa.select(f(rowid)).select_from(table) for f in (sa.func.min, sa.func.max))
        try:
            low, high = self.rows(sa.select(*(end.scalar_subquery() for end in ends)))[0]
        except ReportError:  # some tables have no row numbers
            return None
        if low is not None and low > high:  # a tree whose pages are not in order
            raise damaged(self.path)
        return None if low is None else (int(low), int(high))

    def arrays(self, query: Query, split: sa.TableClause | None = None) -> dict[str, ColumnData]:
        """The columns of a query: int64 arrays of integers, Labels of blobs (decoded as UTF-8).

        With `split`, the row ranges of that table are read side by side; the order stays that
        of the table. Raises ReportError where a column of integers holds anything else, or NULL:
        the query says what stands for NULL.
        """
        selected = list(query.selected_columns)
        names = [column.name for column in selected]
        texts = {column.name for column in selected if isinstance(column.type, sa.LargeBinary)}
        bounds = None if split is None else self.row_bounds(split)
        span = bounds[1] + 1 - bounds[0] if bounds else None
        if span is not None and span <= FEW_ROWS:
            try:
                return columns_of_rows(names, texts, self.rows(query))
            except NotIntegersError:
                raise self._not_integers(query) from None
        memory = driver_memory(len(names) - len(texts), len(texts))
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        useful = min(self.threads, cpus) if (span or 0) > PARALLEL_ROWS else 1
        threads = threads_in_memory(self.path, useful, *memory)
        queries = [query]
        if split is not None and bounds is not None and threads > 1:
            rowid, rows = row_number(split), bounds[1] + 1 - bounds[0]
            edges = [bounds[0] + rows * part // threads for part in range(threads + 1)]
            ranges = itertools.pairwise(edges)
            queries = [query.where(rowid >= low, rowid < high) for low, high in ranges]
        stop = threading.Event()

        def read(part: int) -> dict[str, list[ColumnData]]:
            with batches(self._uri("immutable=1"), compile_sql(queries[part])) as arrived:
                return columns_of_batches(names, texts, self._bounded(arrived, stop))

        with self._errors():
            try:
                parts = in_threads(read, len(queries), self._seconds)
            except TimeoutError:
                raise self._too_slow() from None
            except (NotIntegersError, OSError) as error:
                if isinstance(error, OSError) and _MISMATCH not in str(error):
                    raise
                raise self._not_integers(query) from None
            finally:
                stop.set()
        return {name: joined([each for part in parts for each in part.pop(name)]) for name in names}

    def _not_integers(self, query: Query) -> ReportError:
        """What a query reads that is no whole number, as an error."""
        parts = list(sa.sql.visitors.iterate(query))
        texts = [part.clause for part in parts if isinstance(part, sa.Cast)]
        for column in parts:
            if isinstance(column, sa.ColumnClause) and isinstance(column.table, sa.TableClause):
                if any(column is text for text in texts):
                    continue
                kind = sa.func.typeof(column)
                other = kind.not_in(("integer", "null"))
                odd = sa.select(kind).select_from(column.table).where(other).limit(1)
                for (found,) in self.rows(odd):
                    problem = f"is damaged: {column.table.name}.{column.name} holds a {found}"
                    problem += " where a whole number belongs"
                    return ReportError(self.path, problem, "export it again.")
        return damaged(self.path)

    def _too_slow(self) -> ReportError:
        took = f"took more than {self._seconds:,.0f} s of processor time"
        problem = f"is damaged or very slow to read: a query {took}"
        advice = "copy it to a fast local disk, or set NSIGHTPY_QUERY_SECONDS to allow more."
        return ReportError(self.path, problem, advice)

    def _too_many_rows(self) -> ReportError:
        problem = f"is damaged: a query gave more than {self._most_rows:,} rows"
        return ReportError(self.path, problem, "export it again.")

    def _bounded(self, arrived: Iterable[Any], stop: threading.Event) -> Iterator[Any]:
        """The batches of a query until somebody stops, or there are too many rows."""
        rows = 0
        for batch in arrived:
            rows += batch.num_rows
            if stop.is_set():
                return
            if rows > self._most_rows:
                raise self._too_many_rows()
            yield batch

    def close(self) -> None:
        """Let go of the file; the next query opens it again."""
        if connection := self.__dict__.pop("_connection", None):
            connection.close()

    @cached_property
    def _connection(self) -> sqlite3.Connection:
        uri = self._uri("immutable=1")
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        connection.execute("PRAGMA trusted_schema = OFF")
        end = self._end  # the connection holds what it calls, and so not this file
        connection.set_progress_handler(lambda: time.thread_time() > end[0], STEPS_BETWEEN)
        weakref.finalize(self, connection.close)
        return connection

    def _uri(self, options: str) -> str:
        return f"file:{quote(os.fsencode(resolved(self.path)))}?mode=ro&{options}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Re-raise every database error with the file's name and what to do."""
        try:
            yield
        except sqlite3.Error as error:
            if "interrupted" in str(error):
                if time.thread_time() > self._end[0]:
                    raise self._too_slow() from None
                raise interruption() from None  # by a signal, whose exception SQLite swallows
            raise explained(self.path, error) from error
        except UnicodeDecodeError as error:
            # what SQLite says of a damaged schema quotes it
            raise damaged(self.path) from error
        except OSError as error:
            if error.errno is None:  # of the driver, which says what SQLite says
                raise explained(self.path, error) from error
            raise ReportError(self.path, error.strerror or str(error)) from error


def compile_sql(query: Query) -> str:
    """The SQL text of a query, values written into it."""
    from sqlalchemy.dialects import sqlite

    return str(query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
