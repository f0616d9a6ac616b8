"""Event tables as columns: the probed SQLAlchemy selects that every frame is made of.

Tables and columns are asked for, never assumed, and no version is ever looked at. A table that
the capture did not produce gives the empty frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from nsightpy.errors import ReportError
from nsightpy.frames import ColumnData, Frame, Ints, Labels, Schema, constant, elementwise
from nsightpy.readers.arrow import NotIntegersError
from nsightpy.readers.limits import check_places
from nsightpy.readers.nsys.columns import NO_END, Expression, column, process_of, stored
from nsightpy.readers.nsys.countable import CHECKED, countable_rows
from nsightpy.readers.nsys.strings import NAMELESS, Strings
from nsightpy.readers.nsys.table_names import EVENT_TABLES, EXPORT_TABLES, GPU_TABLES
from nsightpy.readers.sqlite import Query, SqliteFile, row_number

_NOTHING: sa.ColumnElement[int] = sa.literal_column("0").label("no_column")
# What GPU work names, as notes call it, and the value of what a row does not name.
_PLACES = {"pid": "process: they count as process 0", "device": "device", "stream": "stream"}
UNKNOWN = -1
_SHAPE = tuple(f"{shape}_{axis}" for shape in ("grid", "block") for axis in "xyz")
# A table of so many rows is read outright: what is asked about it first costs more.
FEW_ROWS = 10_000
# So many events are read as a whole and chosen from: several questions share them.
FEW_CALLS = 200_000
# Columns that often hold one value: a report with one process on one device.
STEADY_COLUMNS = ("globalPid", "deviceId", "contextId")

T = TypeVar("T")


class NsysExport:
    """One SQLite export: its tables, its strings, and what had to be said while reading it."""

    def __init__(self, path: Path, threads: int | None = None) -> None:
        self.file = SqliteFile(path, threads)
        self.strings = Strings(self.file)
        self.notes: dict[str, None] = {}
        self._steady: dict[str, dict[str, int]] = {}
        self._counts: dict[str, int] = {}
        self._found: dict[Callable[[NsysExport], Any], Any] = {}
        self._countable: dict[str, NDArray[np.bool_] | None] = {}
        self.careful: set[str] = set()  # tables that hold more than integers in their columns
        if not any(name.startswith(EXPORT_TABLES) for name in self.file.tables):
            raise ReportError(
                path,
                "is an SQLite file, but no Nsight Systems export: it has none of its tables",
                "give what `nsys export --type sqlite REPORT` writes; if it was exported with "
                "--tables, no table matched.",
            )

        if present := [name for name in EVENT_TABLES if self.has(name)]:
            self.file.row_bounds(*present)

    def once(self, make: Callable[[NsysExport], T]) -> T:
        """What a function finds in this export; it is asked once."""
        if make not in self._found:
            self._found[make] = make(self)
        found: T = self._found[make]
        return found

    def has(self, table: str) -> bool:
        return table in self.file.tables

    def count(self, table: str) -> int:
        """The number of rows of a table; 0 when it does not exist."""
        if not self.has(table):
            return 0
        if table not in self._counts:
            query = sa.select(sa.func.count()).select_from(self.file.tables[table])
            self._counts[table] = int(self.file.rows(query)[0][0])
        return self._counts[table]

    def holds_rows(self, table: str) -> bool:
        """Whether a table exists and has any row."""
        if not self.has(table):
            return False
        return self.file.row_bounds(table) is not None or self.count(table) > 0

    def is_small(self, table: str) -> bool:
        """Whether a table has so few rows for certain that it is read without further questions."""
        return self._spans_less(table, FEW_ROWS)

    def is_shared(self, table: str) -> bool:
        """Whether a table has so few rows for certain that all is read, whatever is wanted."""
        return self._spans_less(table, FEW_CALLS)

    def _spans_less(self, table: str, rows: int) -> bool:
        bounds = self.file.row_bounds(table) if self.has(table) else None
        return bounds is not None and bounds[1] - bounds[0] < rows

    def steady(self, table: str) -> Mapping[str, int]:
        """The columns of STEADY_COLUMNS that hold one integer in every row of a table.

        One scan is cheaper than carrying such a column.
        """
        if table not in self._steady and self.is_small(table):
            self._steady[table] = self._steady_of_few(self.file.tables[table])
        if table not in self._steady:
            found = self.one_valued(self.file.tables[table], STEADY_COLUMNS)
            self._steady[table] = {n: value for n, value in found.items() if value is not None}
        return self._steady[table]

    def _steady_of_few(self, source: sa.TableClause) -> dict[str, int]:
        names = [name for name in STEADY_COLUMNS if name in source.c]
        ends = (f(source.c[name]) for name in names for f in (sa.func.min, sa.func.max))
        counts = (sa.func.count(source.c[name]) for name in names)
        row = self.file.rows(sa.select(sa.func.count(), *ends, *counts).select_from(source))[0]
        rows, low, high, given = row[0], row[1::2], row[2::2], row[1 + 2 * len(names) :]
        return {
            name: low[n]
            for n, name in enumerate(names)
            if isinstance(low[n], int) and low[n] == high[n] and given[n] == rows
        }

    def guessed_steady(self, table: str) -> Mapping[str, int] | None:
        """What `steady` may turn out to be, by the first rows; None where it is known already.

        Who reads just the rows of these values and gets them all, says so: `confirm`.
        """
        if table in self._steady:
            return None
        source = self.file.tables[table]
        found = self._of_first_rows(source, STEADY_COLUMNS, sa.true())
        likely = {name: value for name, value in found.items() if value is not None}
        if not likely:
            self._steady[table] = {}
        return likely or None

    def confirm(self, table: str, guessed: Mapping[str, int], rows: int) -> bool:
        """Whether so many rows are all that a table has; then what was guessed is steady."""
        bounds = self.file.row_bounds(table)
        contiguous = bounds is not None and bounds[1] + 1 - bounds[0] == rows
        if not contiguous and rows != self.count(table):
            return False
        self._steady[table] = dict(guessed)
        return True

    def one_valued(
        self,
        source: sa.TableClause,
        names: Iterable[str],
        among: sa.ColumnElement[bool] | None = None,
    ) -> dict[str, int | None]:
        """Those of the columns that hold one integer, or NULL, in every row (`among` some)."""
        among = sa.true() if among is None else among
        values = self._of_first_rows(source, names, among)
        while values and not self._never(source, sa.and_(among, _differs(source, values))):
            kept = self._still_one(source, values, among)
            if kept == values:  # a NOT NULL that is not true: SQLite finds no row that differs
                return {}
            values = kept
        return values

    def _of_first_rows(
        self, source: sa.TableClause, names: Iterable[str], among: sa.ColumnElement[bool]
    ) -> dict[str, int | None]:
        """The same for the first rows, which tell at no cost of most columns that they vary."""
        asked = [name for name in names if name in source.c]
        if not asked:
            return {}
        first = self.file.rows(sa.select(*(source.c[n] for n in asked)).where(among).limit(1))
        values = dict(zip(asked, first[0], strict=True)) if first else {}
        values = {name: value for name, value in values.items() if isinstance(value, int | None)}
        bounds = self.file.row_bounds(source.name)
        if bounds is not None:
            last = min(bounds[0] + FEW_ROWS, 2**63 - 1)
            first_rows = sa.and_(among, row_number(source) < last)
            while values and (kept := self._still_one(source, values, first_rows)) != values:
                values = kept
        return values

    def _still_one(
        self,
        source: sa.TableClause,
        values: Mapping[str, int | None],
        among: sa.ColumnElement[bool],
    ) -> dict[str, int | None]:
        """The columns whose value the first row that differs in any has, too; all without one."""
        query = sa.select(*(source.c[name] for name in values))
        found = self.file.rows(query.where(among, _differs(source, values)).limit(1))
        seen = found[0] if found else tuple(values.values())
        pairs = zip(values.items(), seen, strict=True)
        return {name: value for (name, value), other in pairs if other == value}

    def _never(self, source: sa.TableClause, condition: sa.ColumnElement[bool]) -> bool:
        """Whether no row of a table meets a condition; the rows are read side by side."""
        query = sa.select(sa.func.count().label("rows")).select_from(source).where(condition)
        counts = self.file.arrays(query, split=source)["rows"]
        return not isinstance(counts, Labels) and not np.any(counts)

    def pids_of(self, *tables: str) -> set[int]:
        """The processes that own rows of these tables; one query for all that are small."""
        found: set[int] = set()
        few = []
        for table in filter(self.holds_rows, tables):
            source = self.file.tables[table]
            pid = process_of("globalPid" if "globalPid" in source.c else "globalTid")(source)
            if pid is None:
                continue
            if self.is_small(table):
                few.append(sa.select(pid))
            elif (steady := self.steady(table).get("globalPid")) is not None:
                found.add((steady >> 24) & 0xFFFFFF)
            else:
                found |= {int(row[0] or 0) for row in self.file.rows(sa.select(pid).distinct())}
        if few:
            found |= {int(row[0] or 0) for row in self.file.rows(sa.union(*few))}
        return found

    def countable(self, table: str, frame: Frame) -> Frame:
        """The rows of a table's frame that can be counted; the others make one note.

        Which they are is known from the first frame on, which has the times and sizes.
        """
        if table not in self._countable and not {"start_ns", "end_ns"}.isdisjoint(frame):
            countable, note = countable_rows(frame)
            self._countable[table] = None if countable.all() else countable
            if note:
                self.notes[f"{note.format(table=table)} left out."] = None
        kept = self._countable.get(table)
        return frame if kept is None else frame.take(kept)


def _differs(source: sa.TableClause, values: Mapping[str, int | None]) -> sa.ColumnElement[bool]:
    """Rows in which any of these columns holds another value."""
    return sa.or_(*(source.c[name].is_not(value) for name, value in values.items()))


@dataclass(frozen=True)
class Source:
    """How the columns of a frame are made from one table.

    `same`: one label for all its rows; `instead`: columns of names that do as well where one is
    missing; `essential`: columns that no question is answered without, if it asks for them.
    """

    table: str
    numbers: Mapping[str, Expression]
    names: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, tuple[str, Callable[[Ints], Labels]]] = field(default_factory=dict)
    same: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, Sequence[str]] = field(default_factory=dict)
    essential: Sequence[str] = ()
    where: Expression | None = None


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
        condition = sa.not_(_differs(table, guessed))

    def query(*, careful: bool) -> Query:
        selected = [selected_column(export, schema, source, n, careful=careful) for n in names]
        made = sa.select(*(selected or [_NOTHING])).select_from(table)
        return made if condition is None else made.where(condition)

    raw = stored_columns(export, table, query)
    rows = len(next(iter(raw.values())))
    if fixed and guessed and not export.confirm(source.table, guessed, rows):
        export.steady(source.table)
        return read(export, schema, source, columns)
    raw |= {name: constant(value, rows) for name, value in fixed.items()}
    named = with_labels(export, source, raw)
    return export.countable(source.table, Frame({name: named[name] for name in wanted}))


def with_labels(
    export: NsysExport, source: Source, raw: Mapping[str, ColumnData]
) -> dict[str, ColumnData]:
    """The columns of a table as its frame has them: ids named, the constant ones added."""
    made = dict(raw)
    if source.table in GPU_TABLES:
        made |= _unplaced(export, source, made)
        check_places(export.file.path, Frame(made))
    found = Frame(made)
    made |= {name: Labels.constant(label, found.rows) for name, label in source.same.items()}
    made |= {n: export.strings.labels(found.ints(n)) for n in raw if n in source.names}
    return made | {n: source.codes[n][1](found.ints(n)) for n in raw if n in source.codes}


def selected_column(
    export: NsysExport, schema: Schema, source: Source, name: str, *, careful: bool
) -> sa.ColumnElement[Any]:
    """A column of a frame as its table has it. Raises ReportError for one that must be there."""
    table = export.file.tables[source.table]
    if name in source.numbers:
        expression = source.numbers[name]
    else:
        kept = source.names.get(name) or source.codes[name][0]
        others = source.instead.get(name, ())
        expression = column(next((one for one in (kept, *others) if one in table.c), kept))
    if name in source.essential and expression(table) is None:
        problem = f"its table {source.table} has no column for the {name.replace('_', ' ')}"
        raise ReportError(export.file.path, problem, "the export is damaged: export it again.")
    absent = schema[name].missing
    null = absent if isinstance(absent, int) else 0
    if name in source.numbers:
        if name in CHECKED and expression(table) is not None:
            null = NO_END
        elif name in _PLACES and source.table in GPU_TABLES:
            null = UNKNOWN
    elif name == "name":
        null = NAMELESS
    return stored(table, name, expression, null, careful=careful)


def _unplaced(
    export: NsysExport, source: Source, raw: Mapping[str, ColumnData]
) -> dict[str, ColumnData]:
    """A note on GPU work that names no process, device or stream; process 0 stands for none."""
    for name, words in _PLACES.items():
        values = raw.get(name)
        if values is None or isinstance(values, Labels) or name not in source.numbers:
            continue
        if count := int(np.count_nonzero(values == UNKNOWN)):
            export.notes[f"{count:,} rows of {source.table} name no {words}."] = None
    shapes = [raw[name] for name in _SHAPE if name in raw]
    if lost := sum(int(np.count_nonzero(values == 0)) for values in shapes):
        note = f"{lost:,} sizes of grids and blocks are missing in {source.table}: they are 0."
        export.notes[note] = None
    if "pid" not in raw:
        return {}
    return {"pid": elementwise(lambda own: np.maximum(own, 0), Frame(raw).ints("pid"))}


def _fixed(
    export: NsysExport, source: Source, wanted: Sequence[str], guessed: Mapping[str, int] | None
) -> dict[str, int]:
    """The wanted columns that hold one value, surely or as guessed, where at least one varies."""
    read_as = {"pid": "globalPid", "device": "deviceId", "context": "contextId"}
    asked = [name for name in wanted if name in read_as and name in source.numbers]
    if not asked or len(asked) == len(wanted):
        return {}
    steady = export.steady(source.table) if guessed is None else guessed
    found = {name: steady[read_as[name]] for name in asked if read_as[name] in steady}
    return {n: (v >> 24) & 0xFFFFFF if n == "pid" else v for n, v in found.items()}


def stored_columns(
    export: NsysExport, table: sa.TableClause, query: Callable[..., Query]
) -> dict[str, ColumnData]:
    """What query(careful=False) gives; query(careful=True) where a table has not only integers."""
    if table.name not in export.careful:
        try:
            return export.file.arrays(query(careful=False), split=table)
        except NotIntegersError:
            export.careful.add(table.name)
    return export.file.arrays(query(careful=True), split=table)


def countable_columns(
    export: NsysExport, table: sa.TableClause, query: Callable[..., Query]
) -> Frame:
    """The same as a frame, without the rows that cannot be counted; NO_END stands for no time."""
    found = Frame(stored_columns(export, table, query))
    kept, _ = countable_rows(found)
    return found if kept.all() else found.take(kept)


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
