"""The columns of an export's tables as SQL expressions."""

from __future__ import annotations

from typing import Any

from nsightpy.readers.limits import NO_TIME
from nsightpy.readers.sql import sa

NO_END = NO_TIME


def no_bytes() -> sa.ColumnElement[bytes]:
    """The empty text as SQL; its type says so where a query finds no row."""
    return sa.literal_column("x''", sa.LargeBinary)


def number(table: sa.TableClause, name: str, null: int = 0) -> sa.ColumnElement[Any]:
    """A column as the table has it; `null` in place of NULL, and where there is no such column."""
    return sa.func.coalesce(table.c[name], literal(null)) if name in table.c else literal(null)


def process_of(table: sa.TableClause, global_id: str = "globalTid") -> sa.ColumnElement[Any]:
    """The process inside a serialized global id: bits 24 to 47."""
    return number(table, global_id).op(">>")(24).op("&")(0xFFFFFF)


def thread_of(table: sa.TableClause, global_id: str = "globalTid") -> sa.ColumnElement[Any]:
    """The thread inside a serialized global id: bits 0 to 23."""
    return number(table, global_id).op("&")(0xFFFFFF)


def literal(value: int) -> sa.ColumnElement[Any]:
    """A whole number as SQL, in which -2**63 is none."""
    return sa.literal_column(f"({NO_END + 1} - 1)" if value == NO_END else str(value))


def text(table: sa.TableClause, name: str) -> sa.ColumnElement[Any]:
    """A text column as bytes, so that no encoding can fail; NULL or absent is the empty text."""
    if name not in table.c:
        return no_bytes().label(name)
    blob = sa.cast(table.c[name], sa.LargeBinary)
    return sa.func.coalesce(blob, no_bytes()).label(name)
