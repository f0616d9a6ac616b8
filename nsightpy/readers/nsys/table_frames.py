"""The frames of an export: how columns are made from a table, and read with what must be said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from nsightpy.errors import ReportError
from nsightpy.frames import ColumnData, Frame, Labels, Schema, constant, distinct
from nsightpy.readers.limits import CHECKED, check_places, countable_rows
from nsightpy.readers.nsys.tables import (
    GPU_TABLES,
    NAMELESS,
    NO_END,
    UNNAMED,
    NsysExport,
    literal,
    number,
    process_part,
    text,
    thread_part,
)
from nsightpy.readers.sql import sa
from nsightpy.store.store import COUNTED

# What GPU work names; -1 where a row does not.
PLACES = ("pid", "device", "context", "stream", "correlation_id")
UNKNOWN = -1
# The process in a global id below 0.
NO_PROCESS = 0xFFFFFF
_ZERO_IF_UNKNOWN = ("pid", "correlation_id")
_WORDS = {"pid": "process", "bytes": "size"}
_PARTS = {"pid": process_part, "tid": thread_part}

# A column of the table, or a number for all rows; of several the first that is not NULL.
Stored: TypeAlias = str | int | tuple[str | int, ...]


@dataclass(frozen=True)
class Derived:
    """Columns that are made of others of their table, by what makes them of an export and these."""

    columns: tuple[str, ...]
    of: tuple[str, ...]
    make: Callable[[NsysExport, Frame], Mapping[str, ColumnData]]


@dataclass(frozen=True)
class Source:
    """How the columns of a frame are made from one table.

    `ids`: pid and tid, and the serialized global id that holds them; `names`: ids of strings;
    `codes`: a column of numbers, and their names; `texts`: columns of texts; `same`: one label for
    all its rows; `essential`: columns that no question is answered without, if it asks for them;
    `needs`: columns of the table without which its rows say nothing.
    """

    table: str
    numbers: Mapping[str, Stored]
    ids: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Stored] = field(default_factory=dict)
    codes: Mapping[str, tuple[str, Mapping[int, str]]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    same: Mapping[str, str] = field(default_factory=dict)
    derived: Sequence[Derived] = ()
    essential: Sequence[str] = ()
    needs: Sequence[str] = ()
    where: Callable[[sa.TableClause], sa.ColumnElement[bool] | None] = lambda table: None

    def stored(self, table: sa.TableClause, name: str) -> list[sa.ColumnElement[Any]]:
        """What a column is made of, as far as the table has it."""
        of = self.numbers.get(name, self.names.get(name))
        several = of if isinstance(of, tuple) else (self.codes[name][0] if of is None else of,)
        return [
            literal(each) if isinstance(each, int) else table.c[each]
            for each in several
            if isinstance(each, int) or each in table.c
        ]


def reader(schema: Schema, *sources: Source) -> Callable[..., Frame]:
    """What reads the wanted columns of a frame (None for all), of one table after the other."""

    def read_frame(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
        wanted = tuple(columns or schema.names)
        return Frame.concatenate([_read(export, schema, source, wanted) for source in sources])

    return read_frame


def _read(export: NsysExport, schema: Schema, source: Source, wanted: Sequence[str]) -> Frame:
    """The wanted columns of one table's frame, in the table's order; COUNTED where it is asked."""
    names = [name for name in wanted if name != COUNTED]
    table = readable_table(export, source)
    if table is None:
        empty = {**Frame.empty(schema, names or None), COUNTED: constant(1, 0)}
        return Frame({name: empty[name] for name in wanted})
    derived = [each for each in source.derived if not set(names).isdisjoint(each.columns)]
    derived_names = {name for each in derived for name in each.columns}
    needed = [name for name in names if name not in derived_names]
    needed += [name for each in derived for name in each.of]
    raw = stored_frame(export, schema, source, table, tuple(dict.fromkeys(needed)))
    frame = _named_frame(export, source, raw)
    columns = dict(frame)
    for each in derived:
        columns |= each.make(export, frame)
    if COUNTED in wanted:
        held = [name for name in names if name in CHECKED and source.stored(table, name)]
        rows = countable_rows(frame.select(held))
        if lost := int(np.count_nonzero(~rows)):
            why = "have no start, end or size that can be"
            export.note(f"{lost:,} rows of {source.table} {why}, and are left out.")
        columns[COUNTED] = constant(1, frame.rows) if rows.all() else rows.astype(np.int64)
    return Frame({name: columns[name] for name in wanted})


def stored_frame(
    export: NsysExport, schema: Schema, source: Source, table: sa.TableClause, names: Sequence[str]
) -> Frame:
    """The columns of a table as it stores them, of global ids process and thread."""
    no_id = UNKNOWN if source.table in GPU_TABLES else 0
    expressions: dict[str, sa.ColumnElement[Any]] = {}
    for name in names:
        if name in source.ids:
            expressions[source.ids[name]] = number(table, source.ids[name], no_id)
        elif name in source.texts:
            expressions[name] = text(table, source.texts[name])
        elif name not in source.same:
            expressions[name] = _column(export, schema, source, table, name)
    labelled = [value.label(name) for name, value in expressions.items()]
    query = sa.select(*(labelled or [literal(0).label("no_column")])).select_from(table)
    chosen = source.where(table)
    query = query if chosen is None else query.where(chosen)
    raw = Frame(export.file.arrays(query, table))
    parts = {n: _PARTS[n](raw.ints(source.ids[n])) for n in names if n in source.ids}
    same = {n: Labels.constant(source.same[n], raw.rows) for n in names if n in source.same}
    return Frame({**raw, **parts, **same})


def _column(
    export: NsysExport, schema: Schema, source: Source, table: sa.TableClause, name: str
) -> sa.ColumnElement[Any]:
    """A column of a frame. Raises ReportError where one that must be there is not."""
    held = source.stored(table, name)
    if name in source.essential and not held:
        problem = f"its table {source.table} has no column for the {name.replace('_', ' ')}"
        raise ReportError(export.file.path, problem, "the export is damaged: export it again.")
    absent = schema[name].missing if name in schema else 0
    null = absent if isinstance(absent, int) else 0
    if name in CHECKED and name in source.numbers and held:
        null = NO_END
    elif name in source.codes or (name in PLACES and source.table in GPU_TABLES):
        null = UNKNOWN
    elif name in source.names:
        null = NAMELESS if name in ("name", "base_name") else UNNAMED
    return sa.func.coalesce(*held, literal(null)) if held else literal(null)


def _named_frame(export: NsysExport, source: Source, raw: Frame) -> Frame:
    """The columns of a table as its frame has them: ids named, and what must be said of them."""
    columns = dict(raw)
    if source.table in GPU_TABLES:
        for name in filter(raw.__contains__, (*PLACES, "bytes")):
            values = raw.ints(name)
            unknown = values == UNKNOWN
            if name in _ZERO_IF_UNKNOWN:
                unknown = (values < 0) | (values == NO_PROCESS if name == "pid" else False)
                columns[name] = np.where(unknown, 0, values)
            if lost := int(np.count_nonzero(unknown)):
                word = _WORDS.get(name, name.replace("_", " "))
                export.note(f"{lost:,} rows of {source.table} have no {word}.", name)
        check_places(export.file.path, Frame(columns))
    for name in raw:
        if name in source.names:
            columns[name] = export.strings.labels(raw.ints(name))
        elif name in source.codes:
            codes, rows = distinct(raw.ints(name))
            texts = (source.codes[name][1].get(c, f"Unknown ({c})") for c in codes.tolist())
            columns[name] = Labels(rows, tuple(texts))
    return Frame(columns)


def readable_table(export: NsysExport, source: Source) -> sa.TableClause | None:
    """A table whose rows can be told and placed in time: else a note, of kernels an error."""
    table = export.table(source.table)
    if table is None:
        return None
    times = [source.numbers[n] for n in ("start_ns", "end_ns") if n in source.numbers]
    lost = [n for n in (*source.needs, *times) if isinstance(n, str) and n not in table.c]
    if lost and export.holds_rows(source.table):
        problem = f"its table {source.table} has no column {lost[0]}"
        if source.table.endswith("_KIND_KERNEL"):
            raise ReportError(export.file.path, problem, "the export is damaged: export it again.")
        export.note(f"{problem} and is left out.")
    return None if lost else table
