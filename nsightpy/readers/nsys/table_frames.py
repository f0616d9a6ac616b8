"""The frames of an export: how columns are made from a table, and read with what must be said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nsightpy.errors import ReportError
from nsightpy.frames import ColumnData, Frame, Labels, Schema, constant
from nsightpy.readers.arrow import NotIntegersError
from nsightpy.readers.limits import check_places
from nsightpy.readers.nsys.columns import (
    NO_END,
    SPAN,
    Expression,
    coded,
    first_of,
    stored,
    whole,
)
from nsightpy.readers.nsys.constant_columns import differs
from nsightpy.readers.nsys.countable import CHECKED, countable_rows
from nsightpy.readers.nsys.strings import NAMELESS, UNNAMED
from nsightpy.readers.nsys.tables import GPU_TABLES, NsysExport
from nsightpy.readers.sql import sa
from nsightpy.readers.sqlite import Query

# What GPU work names, as notes call it, and the value of what a row does not name.
PLACES = {
    "pid": "process: they count as process 0",
    "device": "device",
    "context": "context",
    "stream": "stream",
    "correlation_id": "call that launched them",
}
UNKNOWN = -1
# The process in a global id below 0.
NO_PROCESS = 0xFFFFFF
# Columns of which something else is said where they hold no numbers.
_SAID = {"start", "end", "bytes", "globalPid", "globalTid"}
_PLACED = {"deviceId", "contextId", "streamId", "correlationId"}
_ZERO_IF_UNKNOWN = ("pid", "correlation_id")
_NAMES = ("name", "base_name")
_SHAPE = ("blocks", "threads", *(f"{s}_{axis}" for s in ("grid", "block") for axis in "xyz"))


@dataclass(frozen=True)
class Source:
    """How the columns of a frame are made from one table.

    `codes`: a column of numbers, and their names; `same`: one label for all its rows; `instead`:
    columns of names that do as well where one is missing or NULL; `essential`: columns that no
    question is answered without, if it asks for them.
    """

    table: str
    numbers: Mapping[str, Expression]
    names: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, tuple[str, Mapping[int, str]]] = field(default_factory=dict)
    same: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, Sequence[str]] = field(default_factory=dict)
    essential: Sequence[str] = ()
    where: Expression | None = None

    def has(self, table: sa.TableClause, name: str) -> bool:
        """Whether the table has what one of the `numbers` is made of."""
        return self.numbers[name](table) is not None


def read(
    export: NsysExport, schema: Schema, source: Source, columns: Sequence[str] | None
) -> Frame:
    """The wanted columns of one table's frame, in the table's order."""
    wanted = tuple(columns or schema.names)
    if not export.has(source.table):
        return Frame.empty(schema, wanted)
    table = export.file.tables[source.table]
    if lacks_times(export, source, table):
        return Frame.empty(schema, wanted)
    plain = source.where is None and not export.is_small(source.table)
    guessed = export.guessed_steady(source.table) if plain else None
    fixed = _fixed(export, source, wanted, guessed) if plain else {}
    names = [name for name in wanted if name not in fixed and name not in source.same]
    condition = None if source.where is None else source.where(table)
    if fixed and guessed:
        # the rows of one value are nearly always all: no scan of its own has to tell
        condition = sa.not_(differs(table, guessed))

    def query(*, careful: bool) -> Query:
        selected = [
            selected_column(export, schema, source, name, careful=careful) for name in names
        ]
        nothing: list[Any] = [sa.literal_column("0").label("no_column")]
        made = sa.select(*(selected or nothing)).select_from(table)
        return made if condition is None else made.where(condition)

    raw = stored_columns(export, table, query)
    rows = len(next(iter(raw.values())))
    if fixed and guessed and not export.confirm(source.table, guessed, rows):
        export.steady(source.table)
        return read(export, schema, source, columns)
    raw |= {name: constant(value, rows) for name, value in fixed.items()}
    named = with_labels(export, source, raw)
    lacking = [name for name in names if name in source.numbers and not source.has(table, name)]
    return export.countable(source.table, Frame({name: named[name] for name in wanted}), lacking)


def with_labels(
    export: NsysExport, source: Source, raw: Mapping[str, ColumnData]
) -> dict[str, ColumnData]:
    """The columns of a table as its frame has them: ids named, the constant ones added."""
    made = dict(raw)
    if source.table in GPU_TABLES:
        made |= _unplaced(export, source, made)
    else:
        note_unlinked(export, source.table, made)
    frame = Frame(made)
    made |= {name: Labels.constant(label, frame.rows) for name, label in source.same.items()}
    if source.table in GPU_TABLES:
        check_places(export.file.path, frame)
    for name in raw:
        if name in source.names:
            if name in _NAMES and (lost := int(np.count_nonzero(frame.ints(name) == NAMELESS))):
                export.notes[f"{lost:,} rows of {source.table} have no name."] = None
            made[name] = note_absent(export, source.table, export.strings.labels(frame.ints(name)))
        elif name in source.codes:
            made[name] = coded(frame.ints(name), source.codes[name][1])
    return made


def note_absent(export: NsysExport, table: str, names: Labels) -> Labels:
    """The same names, with a note on the rows of a table whose name the export does not hold."""
    if lost := export.strings.absent(names):
        export.notes[f"{lost:,} rows of {table} have a name that the export does not hold."] = None
    return names


def selected_column(
    export: NsysExport, schema: Schema, source: Source, name: str, *, careful: bool
) -> sa.ColumnElement[Any]:
    """A column of a frame as its table has it. Raises ReportError for one that must be there."""
    table = export.file.tables[source.table]
    if name in source.numbers:
        expression = source.numbers[name]
    else:
        kept = source.names.get(name) or source.codes[name][0]
        expression = first_of(kept, *source.instead.get(name, ()))
    if name in source.essential and expression(table) is None:
        problem = f"its table {source.table} has no column for the {name.replace('_', ' ')}"
        raise ReportError(export.file.path, problem, "the export is damaged: export it again.")
    note_lacking(export, source, name)
    absent = schema[name].missing
    null = absent if isinstance(absent, int) else 0
    if name in source.numbers:
        if name in CHECKED and expression(table) is not None:
            null = NO_END
        elif name in PLACES and source.table in GPU_TABLES:
            null = UNKNOWN
    elif name in source.codes:
        null = UNKNOWN
    else:
        null = NAMELESS if name in _NAMES else UNNAMED
    return stored(table, name, expression, null, careful=careful)


def note_lacking(export: NsysExport, source: Source, name: str) -> None:
    """Say in a note where a table has no sizes, or other names than those of a column."""
    table = export.file.tables[source.table]
    sized = name == "bytes" and name in source.numbers and source.table in GPU_TABLES
    if sized and not source.has(table, name):
        export.notes[f"{source.table} has no sizes: they are not known."] = None
    kept = source.names.get(name)
    if kept is not None and kept not in table.c:
        for other in [other for other in source.instead.get(name, ()) if other in table.c][:1]:
            export.notes[f"{source.table} has no {kept}: {other} is shown instead."] = None


def _unplaced(
    export: NsysExport, source: Source, raw: Mapping[str, ColumnData]
) -> dict[str, ColumnData]:
    """Notes on GPU work that names no process, device, stream or call, and the columns in which 0
    stands for none."""
    made: dict[str, ColumnData] = {}
    for name in PLACES:
        values = raw.get(name)
        if values is None or isinstance(values, Labels) or name not in source.numbers:
            continue
        unknown = values < 0 if name in _ZERO_IF_UNKNOWN else values == UNKNOWN
        if name == "pid":
            unknown |= values == NO_PROCESS
        if count := int(np.count_nonzero(unknown)):
            export.notes[unplaced_note(source.table, name, count)] = None
            if name in _ZERO_IF_UNKNOWN:
                made[name] = np.where(unknown, 0, values)
    shapes = [raw[name] for name in _SHAPE if name in raw]
    if lost := sum(int(np.count_nonzero(values == 0)) for values in shapes):
        note = f"{lost:,} sizes of grids and blocks are missing in {source.table}: they are 0."
        export.notes[note] = None
    return made


def unplaced_note(table: str, name: str, count: int) -> str:
    """What is said of rows of GPU work that have none of PLACES."""
    return f"{count:,} rows of {table} name no {PLACES[name]}."


def note_unlinked(export: NsysExport, table: str, raw: Mapping[str, ColumnData]) -> None:
    """Say in a note where calls do not name the work that they launched."""
    note_without_process(export, table, raw)
    ids = raw.get("correlation_id")
    if isinstance(ids, np.ndarray) and ids.min(initial=1) <= 0:
        export.notes[f"Calls in {table} name no correlation id: their work is not found."] = None


def note_without_process(export: NsysExport, table: str, raw: Mapping[str, ColumnData]) -> None:
    """Say in a note how many rows of a table that has processes name none."""
    has_process = {"globalTid", "globalPid"} & set(export.file.tables[table].c.keys())
    for name in ("pid", "thread") if has_process else ():
        values = raw.get(name)
        if isinstance(values, np.ndarray) and (lost := int(np.count_nonzero(values == 0))):
            export.notes[f"{lost:,} rows of {table} name no process and no thread."] = None


def _fixed(
    export: NsysExport, source: Source, wanted: Sequence[str], guessed: Mapping[str, int] | None
) -> dict[str, int]:
    """The wanted columns that hold one value, surely or as guessed, where at least one varies."""
    read_as = {"pid": "globalPid", "device": "deviceId", "context": "contextId"}
    asked = [name for name in wanted if name in read_as and name in source.numbers]
    if not asked or len(asked) == len(wanted):
        return {}
    steady = export.steady(source.table) if guessed is None else guessed
    fixed = {name: steady[read_as[name]] for name in asked if read_as[name] in steady}
    return {n: (v >> 24) & 0xFFFFFF if n == "pid" else v for n, v in fixed.items()}


def stored_columns(
    export: NsysExport, table: sa.TableClause, query: Callable[..., Query]
) -> dict[str, ColumnData]:
    """What query(careful=False) gives; query(careful=True) where a table has not only integers."""
    if table.name not in export.careful:
        try:
            return only_integers(export.file.arrays(query(careful=False), split=table))
        except NotIntegersError:
            export.careful.add(table.name)
    asked = query(careful=True)
    note_not_whole(export, table, asked)
    return export.file.arrays(asked, split=table)


def note_not_whole(export: NsysExport, table: sa.TableClause, careful: Query) -> None:
    """Notes on the columns of a careful query that hold what is no whole number, but for those
    that have notes of their own."""
    casts = [each for each in sa.sql.visitors.iterate(careful) if isinstance(each, sa.Cast)]
    read = {str(each.clause.name) for each in casts if isinstance(each.type, sa.Integer)}
    names = sorted(read - _SAID - (_PLACED if table.name in GPU_TABLES else set()))
    counts = [
        sa.func.count(
            sa.case((table.c[name].is_not(None) & whole(table, name, careful=True).is_(None), 1))
        ).label(name)
        for name in names
    ]
    found = export.file.arrays(sa.select(*counts).select_from(table)) if counts else {}
    for name, count in found.items():
        if lost := int(Frame({name: count}).ints(name)[0]):
            note = (
                f"{lost:,} values of {table.name}.{name} are no whole numbers: they are not used."
            )
            export.notes[note] = None


def only_integers(raw: dict[str, ColumnData]) -> dict[str, ColumnData]:
    """Columns that were not read carefully. Raises NotIntegersError where a process is 0 or has all
    bits: texts and blobs have none in SQLite, fractions beyond int64 all."""
    pids = raw.get("pid")
    if pids is None or isinstance(pids, Labels) or not len(pids):
        return raw
    if pids.min() > 0 and pids.max() < NO_PROCESS:
        return raw
    raise NotIntegersError


def countable_columns(
    export: NsysExport, table: sa.TableClause, query: Callable[..., Query]
) -> Frame:
    """The same as a frame, without the rows that cannot be counted; NO_END stands for no time."""
    frame = Frame(stored_columns(export, table, query))
    kept, _ = countable_rows(frame)
    return frame if kept.all() else frame.take(kept)


def timed_rows(
    export: NsysExport,
    table: sa.TableClause,
    ids: Mapping[str, Expression],
    condition: sa.ColumnElement[bool],
) -> Frame:
    """Start, end and ids of some rows, of those that can be counted; NO_END stands for no time."""

    def query(*, careful: bool) -> Query:
        spans = [stored(table, n, made, NO_END, careful=careful) for n, made in SPAN.items()]
        nulls = {name: NAMELESS if name in _NAMES else 0 for name in ids}
        more = [stored(table, n, made, nulls[n], careful=careful) for n, made in ids.items()]
        return sa.select(*spans, *more).where(condition)

    return countable_columns(export, table, query)


def lacks_times(export: NsysExport, source: Source, table: sa.TableClause) -> bool:
    """Whether a table's rows cannot be placed in time: said in a note, of kernels an error."""
    times = [name for name in ("start_ns", "end_ns") if name in source.numbers]
    if all(source.numbers[name](table) is not None for name in times):
        return False
    if not export.holds_rows(source.table):
        return True
    lost = "start" if source.numbers["start_ns"](table) is None else "end"
    problem = f"its table {source.table} has no column {lost}"
    if source.table.endswith("_KIND_KERNEL"):
        raise ReportError(export.file.path, problem, "the export is damaged: export it again.")
    export.notes[f"{problem} and is left out."] = None
    return True
