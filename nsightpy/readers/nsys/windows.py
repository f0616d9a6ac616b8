"""Rows of event tables in time order, a stretch of time after the other, in bounded memory.

nsys writes a table nearly in the order of time: each block of row numbers spans a short stretch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import add
from typing import Any

from nsightpy.frames import API_CALLS, KERNELS, MEMORY_OPERATIONS, Frame
from nsightpy.frames.columns import Column
from nsightpy.readers.arrow import NotIntegersError
from nsightpy.readers.limits import GREATEST_TIME
from nsightpy.readers.nsys.columns import column, stored, whole
from nsightpy.readers.nsys.events import TABLES, plain_calls
from nsightpy.readers.nsys.table_frames import (
    PLACES,
    UNKNOWN,
    Source,
    lacks_times,
    note_lacking,
    note_not_whole,
    only_integers,
    selected_column,
    unplaced_note,
    with_labels,
)
from nsightpy.readers.nsys.tables import GPU_TABLES, NsysExport
from nsightpy.readers.sql import sa
from nsightpy.readers.sqlite_tables import row_number

# So many row numbers are one block, and so many rows about one window.
BLOCK_ROWS = 1 << 16
# Row numbers for each row, on average, of a table that is read in blocks.
MOST_GAPS = 4
_END = 2**63 - 1
_BYTES = "bytes"
_NUMBERS = (
    *("start", "end", _BYTES),
    *("globalPid", "deviceId", "contextId", "streamId", "correlationId"),
)
_GREEN = Column("green_context", "int", "", "green context; 0 = none")
_GREEN_ID = "greenContextId"


# What is listed, and the tables of each frame; GPU work with a column that the frames have not.
SCHEMAS = {
    **{
        schema.name: replace(schema, columns=(*schema.columns, _GREEN))
        for schema in (KERNELS, MEMORY_OPERATIONS)
    },
    "api_calls": API_CALLS,
}


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one table by number, low <= row < high, that start in first_ns to last_ns."""

    frame: str
    source: Source
    low: int | None
    high: int
    first_ns: int
    last_ns: int


def blocks(export: NsysExport, frame: str) -> list[Block]:
    """The blocks of the tables of a frame, in the order of the file."""
    return [
        block
        for source in TABLES[frame]
        if export.holds_rows(source.table)
        and not lacks_times(export, source, export.file.tables[source.table])
        for block in _blocks(export, frame, source)
    ]


def _blocks(export: NsysExport, frame: str, source: Source) -> list[Block]:
    table = export.file.tables[source.table]
    bounds = export.file.row_bounds(source.table)
    if bounds is None or bounds[1] - bounds[0] > MOST_GAPS * (
        export.count(table.name) + BLOCK_ROWS
    ):
        # a view has no row numbers, and nobody goes through numbers that no rows have
        return [Block(frame, source, None, 0, -_END, _END)]
    pieces, lost = [], 0
    places = _places(export, frame, source)
    for name in (*source.names, _BYTES):
        note_lacking(export, source, name)
    unplaced = [0] * len(places)
    for low in range(bounds[0], bounds[1] + 1, BLOCK_ROWS):
        counts, first, last, *missing = _counted_rows(export, table, low, list(places.values()))
        rows, counted, strange = counts
        if strange and table.name not in export.careful:
            export.careful.add(table.name)
            return _blocks(export, frame, source)
        lost += rows - counted
        unplaced = list(map(add, unplaced, missing))
        if first is not None and last is not None:
            pieces.append(Block(frame, source, low, low + BLOCK_ROWS, first, last))
    if lost:
        note = f"{lost:,} rows of {table.name} have no possible time or size: left out."
        export.notes[note] = None
    for name, count in zip(places, unplaced, strict=True):
        if count:
            export.notes[unplaced_note(table.name, name, count)] = None
    return pieces


def _places(export: NsysExport, frame: str, source: Source) -> dict[str, sa.ColumnElement[Any]]:
    """The columns that say where GPU work was, as its frame has them."""
    careful = source.table in export.careful
    return {
        name: selected_column(export, SCHEMAS[frame], source, name, careful=careful)
        for name in (PLACES if source.table in GPU_TABLES else ())
        if name in source.numbers
    }


def _counted_rows(
    export: NsysExport, table: sa.TableClause, low: int, places: Sequence[sa.ColumnElement[Any]]
) -> tuple[Any, ...]:
    """Of a block (rows, how many of them can be counted, how many of those have a number that is
    stored as something else); the first and last start; how many name none of each place."""
    start, _ = _times(export, table)
    numbers = [name for name in _NUMBERS if name in table.c]
    kinds = [sa.func.typeof(table.c[name]).not_in(("integer", "null")) for name in numbers]
    fine = sa.and_(*_countable(export, table))

    def of_fine(value: object) -> sa.ColumnElement[Any]:
        return sa.case((fine, value), else_=None)

    def number_of(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
        return sa.func.count(sa.case((sa.and_(fine, condition), 1), else_=None))

    query = sa.select(
        sa.func.count(),
        sa.func.count(of_fine(1)),
        sa.func.coalesce(sa.func.sum(sa.or_(*kinds)), 0),
        sa.func.min(of_fine(start)),
        sa.func.max(of_fine(start)),
        *(number_of(place.element == UNKNOWN) for place in places),
    ).select_from(table)
    (row,) = export.file.rows(query.where(*_rows(table, low, low + BLOCK_ROWS)))
    return row[:3], *row[3:]


def stretches(
    export: NsysExport, wanted: Mapping[str, Sequence[str]], high_ns: int | None
) -> Iterator[dict[str, list[Frame]]]:
    """The wanted columns of the rows of some frames that start in each stretch of time.

    Stretches follow one another up to high_ns; the rows of one are in the order of the file.
    """
    every = [block for name in wanted for block in blocks(export, name)]
    edges = sorted({block.first_ns for block in every})
    for begin, end in pairwise([*edges, _END]):
        if high_ns is not None and begin >= high_ns:
            return
        stretch: dict[str, list[Frame]] = {}
        for block in every:
            if block.first_ns < end and block.last_ns >= begin:
                rows = read_block(export, block, begin, end, wanted[block.frame])
                stretch.setdefault(block.frame, []).append(rows)
        yield stretch


def read_block(
    export: NsysExport, block: Block, begin: int, end: int, columns: Sequence[str]
) -> Frame:
    """The wanted columns of a block's rows that start in [begin, end), in the file's order.

    They are those of the frame.
    """
    schema, source = SCHEMAS[block.frame], block.source
    table = export.file.tables[source.table]
    careful = table.name in export.careful
    asked = [name for name in columns if name not in (*source.same, _GREEN.name)]
    selected = [selected_column(export, schema, source, name, careful=careful) for name in asked]
    if _GREEN.name in columns:
        selected.append(stored(table, _GREEN.name, column(_GREEN_ID), 0, careful=careful))
    start, _ = _times(export, table)
    query = sa.select(*selected).select_from(table)
    query = query.where(*_countable(export, table), start >= begin)
    query = query.where(start < end) if end < _END else query
    query = query if block.low is None else query.where(*_rows(table, block.low, block.high))
    try:
        raw = export.file.arrays(query)
        raw = raw if careful else only_integers(raw)
    except NotIntegersError:
        export.careful.add(table.name)
        made = [selected_column(export, schema, source, name, careful=True) for name in asked]
        note_not_whole(export, table, sa.select(*made).select_from(table))
        return read_block(export, block, begin, end, columns)
    named = with_labels(export, source, raw)
    read = Frame({name: named[name] for name in columns})
    return plain_calls(read) if block.frame == "api_calls" else read


def _times(
    export: NsysExport, table: sa.TableClause
) -> tuple[sa.ColumnElement[int], sa.ColumnElement[int]]:
    """Start and end of the rows of a table."""
    careful = table.name in export.careful
    return whole(table, "start", careful=careful), whole(table, "end", careful=careful)


def _countable(export: NsysExport, table: sa.TableClause) -> list[sa.ColumnElement[bool]]:
    """Rows with times and sizes that can be: as countable_rows has it."""
    start, end = _times(export, table)
    fine = [start >= -GREATEST_TIME, end <= GREATEST_TIME, end >= start]
    if _BYTES in table.c:
        size = whole(table, _BYTES, careful=table.name in export.careful)
        fine += [size >= 0, size <= GREATEST_TIME]
    return fine


def _rows(
    table: sa.TableClause, low: int, high: int
) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    number = row_number(table)
    return number >= low, number < high
