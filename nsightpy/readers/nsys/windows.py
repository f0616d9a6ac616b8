"""Rows of event tables in time order, a stretch of time after the other, in bounded memory.

nsys writes a table nearly in the order of time: each block of row numbers spans a short stretch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import sqlalchemy as sa

from nsightpy.frames import API_CALLS, KERNELS, MEMORY_OPERATIONS, Frame, Labels
from nsightpy.frames.columns import Column
from nsightpy.readers.nsys.columns import column, number
from nsightpy.readers.nsys.events import TABLES
from nsightpy.readers.nsys.tables import NsysExport, Source

# So many row numbers are one block, and so many rows about one window.
BLOCK_ROWS = 1 << 16
_END = 2**63 - 1
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
        for block in _blocks(export, frame, source)
    ]


def _blocks(export: NsysExport, frame: str, source: Source) -> Iterator[Block]:
    bounds = export.file.row_bounds(source.table)
    if bounds is None:  # a view has no row numbers: it is one block
        yield Block(frame, source, None, 0, -_END, _END)
        return
    table = export.file.tables[source.table]
    start = _start(table)
    for low in range(bounds[0], bounds[1] + 1, BLOCK_ROWS):
        among = _rows(low, low + BLOCK_ROWS)
        query = sa.select(sa.func.min(start), sa.func.max(start)).select_from(table)
        ((first, last),) = export.file.rows(query.where(*among))
        if first is not None:
            yield Block(frame, source, low, low + BLOCK_ROWS, int(first), int(last))


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
        found: dict[str, list[Frame]] = {}
        for block in every:
            if block.first_ns < end and block.last_ns >= begin:
                rows = read_block(export, block, begin, end, wanted[block.frame])
                found.setdefault(block.frame, []).append(rows)
        yield found


def read_block(
    export: NsysExport, block: Block, begin: int, end: int, columns: Sequence[str]
) -> Frame:
    """The wanted columns of a block's rows that start in [begin, end), in the file's order."""
    schema, source = SCHEMAS[block.frame], block.source
    table = export.file.tables[source.table]
    selected = []
    for name in columns:
        if name not in source.same:
            code = source.names.get(name) or source.codes.get(name, ("",))[0]
            code = _GREEN_ID if name == _GREEN.name else code
            expression = source.numbers.get(name) or column(code)
            selected.append(number(table, name, expression, schema[name].missing))
    start = _start(table)
    query = sa.select(*selected).select_from(table)
    query = query.where(table.c["end"].is_not(None), start >= begin)
    query = query.where(start < end) if end < _END else query
    query = query if block.low is None else query.where(*_rows(block.low, block.high))
    raw = export.file.arrays(query)
    found = Frame(raw)
    for name in columns:
        if name in source.same:
            raw[name] = Labels.constant(source.same[name], found.rows)
        elif name in source.names:
            raw[name] = export.strings.labels(found.ints(name))
        elif name in source.codes:
            raw[name] = source.codes[name][1](found.ints(name))
    return Frame({name: raw[name] for name in columns})


def _start(table: sa.TableClause) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.cast(table.c["start"], sa.Integer), sa.literal_column("0"))


def _rows(low: int, high: int) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    rowid: sa.ColumnElement[int] = sa.literal_column("rowid")
    return rowid >= low, rowid < high
