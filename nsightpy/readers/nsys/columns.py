"""The columns of an export's tables as SQL expressions, and which of their rows can be counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Frame, Ints
from nsightpy.readers.limits import GREATEST_TIME, summable
from nsightpy.readers.sql import sa

NO_END = -(2**63)


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


CHECKED = ("start_ns", "end_ns", "bytes")


def countable_rows(frame: Frame) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """The rows with a time and a size that can be, and how many lack what."""
    kept = np.ones(frame.rows, dtype=np.bool_)
    lacks: dict[str, int] = {}

    def leave_out(rows: NDArray[np.bool_], lack: str) -> None:
        if lost := int(np.count_nonzero(kept & rows)):
            lacks[lack] = lost
            kept[rows] = False

    def leave_out_beyond(lengths: Ints, lack: str) -> None:
        fine = summable(np.where(kept, lengths, 0))
        if fine is not None:
            leave_out(~fine, lack)

    given = {name: frame.ints(name) for name in CHECKED if name in frame}
    for name, values in given.items():
        what = name.removesuffix("_ns")
        leave_out(values == NO_END, f"no {what}")
        leave_out((values < -GREATEST_TIME) | (values > GREATEST_TIME), f"no possible {what}")
    if {"start_ns", "end_ns"} <= given.keys():
        leave_out(given["end_ns"] < given["start_ns"], "an end before their start")
        leave_out_beyond(given["end_ns"] - given["start_ns"], "no possible length")
    if "bytes" in given:
        leave_out(given["bytes"] < 0, "a size below 0")
        leave_out_beyond(given["bytes"], "no possible size")
    return kept, lacks
