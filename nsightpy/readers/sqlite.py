"""The only module that reads SQLite: read-only, schema probing, SQLAlchemy Core in, columns out.

Big tables travel as Arrow batches through ADBC, several row ranges at a time; small ones through
the SQLAlchemy engine. Nothing is ever written into or beside the file.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from nsightpy.errors import ReportError
from nsightpy.frames import ColumnData
from nsightpy.readers.arrow import (
    BATCH_ROWS,
    Columns,
    NotIntegersError,
    batches,
    columns_of_rows,
    driver_memory,
)
from nsightpy.readers.limits import (
    ROWS,
    STEPS_BETWEEN,
    QueryWatch,
    most,
    query_seconds,
    threads_in_memory,
    too_long,
)
from nsightpy.readers.sql import sa
from nsightpy.readers.sqlite_errors import damaged, explained, too_much
from nsightpy.readers.sqlite_tables import Tables, extremes, row_number
from nsightpy.readers.tools.file_check import check_file, file_size, resolved
from nsightpy.readers.tools.time_limit import in_threads

Query: TypeAlias = "sa.Select[*tuple[Any, ...]]"
SmallQuery: TypeAlias = "Query | sa.CompoundSelect[*tuple[Any, ...]]"

PARALLEL_ROWS = 200_000
# The driver, with pyarrow, takes longer to import (0.1 s) than so few rows to read.
FEW_ROWS = 4_096
# Threads that read one table at most, where nobody wants fewer.
READING_THREADS = 4
PROBES = 16
LOCK_WAIT_S = 1.0
WAL_FORMAT = 2
# A text or blob of one row may be so long.
LONGEST_VALUE = 256 * 2**20
# How the driver says that a value fits none of the types that the first ones had.
_MISMATCH = "Type mismatch in column"


class SqliteFile:
    """One SQLite file, opened read-only; big tables are read by several threads.

    Raises ReportError, naming the file, for anything that keeps it from being read.
    """

    def __init__(self, path: Path, threads: int | None = None) -> None:
        self.path = path
        self.threads = threads or READING_THREADS
        self._bounds: dict[str, tuple[int, int] | None] = {}
        # one connection cannot answer two threads at a time
        self._alone = threading.Lock()
        self._bytes = file_size(path)
        self._seconds = query_seconds(self._bytes)
        self._most_rows = most(ROWS, self._bytes)
        self._watch = QueryWatch(self._bytes)
        check_file(path)
        with self._errors():
            self._probe_lock()

    @cached_property
    def tables(self) -> Tables:
        """Every table by name, with the columns it really has."""
        return Tables(self.path, self._plain)

    def rows(self, query: SmallQuery) -> list[tuple[Any, ...]]:
        """All rows of a small query; text that is no UTF-8 has its bytes replaced."""
        return self._fetched(lambda connection: connection.execute(query), self._most_rows)

    def _plain(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a question about the schema."""
        return self._fetched(lambda connection: connection.exec_driver_sql(sql), self._most_rows)

    def _fetched(
        self, ask: Callable[[sa.Connection], sa.CursorResult[Any]], most_rows: int
    ) -> list[tuple[Any, ...]]:
        """All rows of a result; a damaged tree, whose pages lead back to each other, has no end."""
        with self._alone, self._errors(), self._engine.connect() as connection:
            self._watch.begin()
            rows = ask(connection).fetchmany(most_rows + 1)
        if len(rows) > most_rows:
            raise self._too_many_rows(most_rows)
        return [tuple(row) for row in rows]

    def _too_many_rows(self, most_rows: int) -> ReportError:
        problem = f"is damaged: a query gave more than {most_rows:,} rows"
        return ReportError(self.path, problem, f"{ROWS} allows more.")

    def row_bounds(self, *names: str) -> tuple[int, int] | None:
        """First and last row number of the first of these tables; None when it has no rows.

        What is asked together is asked once; answers are kept.
        """
        unknown = [name for name in names if name not in self._bounds]
        if unknown:
            ends = [end for name in unknown for end in extremes(self.tables[name])]
            try:
                stored = self.rows(sa.select(*ends))[0]
            except ReportError:
                # a view has no row numbers: each table answers for itself
                stored = (None, None)
                for name in unknown if len(unknown) > 1 else ():
                    self.row_bounds(name)
            for name, low, high in zip(unknown, stored[::2], stored[1::2], strict=False):
                self._bounds.setdefault(name, None if low is None else (int(low), int(high)))
        bounds = self._bounds[names[0]]
        if bounds is not None and bounds[0] > bounds[1]:  # a tree whose pages are not in order
            raise damaged(self.path)
        return bounds

    def arrays(self, query: Query, split: sa.TableClause | None = None) -> dict[str, ColumnData]:
        """The columns of a query: int64 arrays of integers, Labels of blobs (decoded as UTF-8).

        With `split`, the row ranges of that table are read side by side; the order stays that
        of the table. Raises ReportError where a column of integers holds anything else, or NULL:
        the query says what stands for NULL.
        """
        try:
            return self._arrays(query, split)
        except NotIntegersError:
            raise self._not_integers(query) from None

    def _arrays(self, query: Query, split: sa.TableClause | None) -> dict[str, ColumnData]:
        selected = list(query.selected_columns)
        names = [column.name for column in selected]
        texts = {column.name for column in selected if isinstance(column.type, sa.LargeBinary)}
        queries, sizes = self._split(query, split)
        if split is not None and sum(sizes) <= FEW_ROWS:
            sql = compile_sql(query)
            rows = self._fetched(lambda connection: connection.exec_driver_sql(sql), sum(sizes))
            return columns_of_rows(names, texts, rows)
        columns = Columns(names, texts, sizes)

        stop = threading.Event()

        def read(part: int) -> None:
            with batches(self._uri("immutable=1"), compile_sql(queries[part])) as arrived:
                # what is beyond its part would overwrite the next one
                most_rows = self._most_rows if len(queries) == 1 else sizes[part]
                columns.fill(part, self._bounded(arrived, stop, most_rows))

        text_bytes = self._bytes * BATCH_ROWS // max(sum(sizes), BATCH_ROWS) if texts else 0
        memory = driver_memory(len(names), text_bytes)
        threads = threads_in_memory(self.path, len(queries), *memory)
        with self._errors():
            try:
                parts = range(len(queries))
                for first in parts[::threads]:
                    in_threads(read, parts[first : first + threads], self._seconds)
            except TimeoutError:
                raise too_much(self.path, too_long(self._seconds)) from None
            except OSError as error:
                if _MISMATCH in str(error):
                    raise NotIntegersError from None
                raise
            finally:
                stop.set()
        return columns.result()

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
                    problem = f"is damaged: {column.table.name}.{column.name} holds a {found} "
                    problem += "where a whole number belongs"
                    return ReportError(self.path, problem, "export it again.")
        return damaged(self.path)

    def _bounded(
        self, arrived: Iterable[Any], stop: threading.Event, most_rows: int
    ) -> Iterator[Any]:
        """The batches of a query until somebody stops, or there are too many rows."""
        end, rows = time.thread_time() + self._seconds, 0
        for batch in arrived:
            rows += batch.num_rows
            if stop.is_set():
                return
            if rows > most_rows:
                raise self._too_many_rows(most_rows)
            if time.thread_time() > end:
                raise too_much(self.path, too_long(self._seconds))
            yield batch

    def _split(self, query: Query, table: sa.TableClause | None) -> tuple[list[Query], list[int]]:
        """A query for each row range of a table, and how many rows each can give at most."""
        bounds = None if table is None else self.row_bounds(table.name)
        span = 0 if bounds is None else bounds[1] + 1 - bounds[0]
        if bounds is not None and span <= BATCH_ROWS:
            return [query], [span]
        if table is None or bounds is None or not self._dense(table, bounds):
            return [query], [BATCH_ROWS]
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        workers = min(self.threads, cpus)
        if workers < 2 or span <= PARALLEL_ROWS:
            return [query], [span]
        edges = [bounds[0] + span * part // workers for part in range(workers + 1)]
        ranges = list(itertools.pairwise(edges))
        rowid = row_number(table)
        queries = [query.where(rowid >= low, rowid < high) for low, high in ranges]
        return queries, [high - low for low, high in ranges]

    def _dense(self, table: sa.TableClause, bounds: tuple[int, int]) -> bool:
        """Whether at least half of a table's row numbers are taken, judged by a few of them."""
        low, high = bounds
        if high - low > self._bytes:
            return False
        probes = sorted({low + (high - low) * part // PROBES for part in range(PROBES + 1)})
        rowid = row_number(table)
        query = sa.select(sa.func.count()).select_from(table).where(rowid.in_(probes))
        return 2 * int(self.rows(query)[0][0]) >= len(probes)

    def close(self) -> None:
        """Let go of the file; the next query opens it again."""
        if "_engine" in self.__dict__:
            self._engine.dispose()

    @cached_property
    def _engine(self) -> sa.Engine:
        # the engine outlives nothing of this file: what opens connections must not hold `self`
        uri, watch = self._uri("immutable=1"), self._watch

        def connect() -> sqlite3.Connection:
            connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            connection.text_factory = _text
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.set_progress_handler(watch, STEPS_BETWEEN)
            return connection

        engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.StaticPool)
        weakref.finalize(self, engine.dispose)
        return engine

    def _uri(self, options: str) -> str:
        return f"file:{quote(os.fsencode(resolved(self.path)))}?mode=ro&{options}"

    def _probe_lock(self) -> None:
        """Fail when a writer holds the file; a WAL file is never opened but as immutable."""
        with self.path.open("rb") as file:
            header = file.read(20)
        wal = self.path.with_name(self.path.name + "-wal")
        if header[18] != WAL_FORMAT and header[19] != WAL_FORMAT and wal.exists():
            # left over from another file; SQLite would make an index of it beside the report
            return
        if header[18] == WAL_FORMAT or header[19] == WAL_FORMAT:
            if wal.exists() and wal.stat().st_size:
                raise ReportError(
                    self.path,
                    f"changes that are not in the file yet wait in {wal.name}",
                    "close the program that writes it, or copy it with `VACUUM INTO`, then retry.",
                )
            return
        probe = sqlite3.connect(self._uri("cache=private"), uri=True, timeout=LOCK_WAIT_S)
        try:
            probe.execute("SELECT count(*) FROM sqlite_master").fetchone()
        finally:
            probe.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Re-raise every database error with the file's name and what to do."""
        try:
            yield
        except (sqlite3.Error, sa.exc.DBAPIError) as error:
            if "interrupted" in str(error):
                if not self._watch.exceeded:
                    raise self._watch.was_interrupted from None
                raise too_much(self.path, self._watch.exceeded) from None
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

    compiled = query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
    return str(compiled)


def _text(raw: bytes | str) -> str:
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
