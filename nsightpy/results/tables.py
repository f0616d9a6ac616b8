"""What analyses hand to people and machines: tables with named, unit-bearing columns, and notes.

A Table holds raw numbers: ns, bytes, counts. How they are shown is the renderer's business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nsightpy.results.abstention import Abstention
from nsightpy.results.keys import ROW_KEYS, RowKey
from nsightpy.results.listing import LazyRows, Row, Value

if TYPE_CHECKING:
    import pandas as pd

AnyTable = TypeVar("AnyTable", bound="Table")
# Instead of a number of rows that nobody counted.
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a table: its public name, its unit, and the decimals it is printed with.

    unit is "ns", "bytes", "%", "count", "text", ... ; decimals None means a whole number. Texts
    come out of reports, which anybody can write, unless they are `own` words of nsightpy. People
    see `heading` above it, where it is not what the command's columns of that name are called.
    """

    name: str
    unit: str = "count"
    decimals: int | None = None
    own: bool = False
    heading: str = ""

    @property
    def untrusted(self) -> bool:
        """Whether its values are free text out of reports."""
        return self.unit == "text" and not self.own


def fields_in(unit: str, *names: str, decimals: int | None = None) -> tuple[Field, ...]:
    """Columns that stand beside each other and have one unit."""
    return tuple(Field(name, unit, decimals) for name in names)


@dataclass(frozen=True, repr=False)
class Table:
    """Rows under named fields. `notes` says what a reader must know to trust them.

    `total_rows` is how many there are where `rows` are the first of more: None where these are all,
    UNKNOWN where nobody counted. `identity` are the keys of rows where they are not those of the
    command (results.keys), `keys` those that no column gives.
    """

    command: str
    fields: tuple[Field, ...]
    rows: Sequence[Row]
    inputs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    title: str = ""
    total_rows: int | None = None
    identity: tuple[RowKey, ...] | None = None
    keys: tuple[str | None, ...] | None = None

    def __repr__(self) -> str:
        size = f"{len(self.rows):,} rows of {', '.join(self.columns)}"
        return f"<{type(self).__name__} {self.command}: {size}; {len(self.notes)} notes>"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        return iter(self.rows)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def records(self) -> list[dict[str, Value]]:
        """The rows as dictionaries by column name."""
        columns = self.columns
        return [dict(zip(columns, row, strict=True)) for row in self.rows]

    @property
    def abstentions(self) -> tuple[Abstention, ...]:
        """Those of the notes that say what could not be answered."""
        return abstentions_in(self.notes)

    @property
    def untrusted(self) -> tuple[str, ...]:
        """The columns with free text out of reports."""
        return tuple(field.name for field in self.fields if field.untrusted)

    @property
    def truncated(self) -> bool:
        """Whether there are more rows than these."""
        total = len(self.rows) if self.total_rows is None else self.total_rows
        return total == UNKNOWN or total > len(self.rows)

    def keyed(self) -> Iterator[dict[str, Value]]:
        """The rows as dictionaries, each with the keys of what it is about (results.keys)."""
        usual = ROW_KEYS.get(self.command, ()) if self.identity is None else self.identity
        wanted = [key for key in usual if key.is_in(self.columns)]
        names = dict.fromkeys(key.name for key in wanted)
        keys = iter(self.keys or ())
        for row in self.rows:
            record = dict(zip(self.columns, row, strict=True))
            keys_of_row = {key.name: made for key in wanted if (made := key.of(record)) is not None}
            record = {**record, **names, **keys_of_row}
            if self.keys is not None:
                record["key"] = next(keys)
            yield record

    def members(self) -> dict[str, Any]:
        """What the document of this command holds beside rows, as plain JSON values."""
        return {}

    def first(self, count: int | None, of_each: str = "") -> Self:
        """The same with at most so many rows, and how many there were; None: with all.

        Where there is a column `of_each`, so many rows of each of its values.
        """
        if count is None or len(self.rows) <= count:
            return self
        total = len(self.rows) if self.total_rows is None else self.total_rows
        if of_each in self.columns:
            kept = _first_of_each(self.column(of_each), count)
            return replace(self, rows=tuple(compress(self.rows, kept)), total_rows=total)
        rows = self.rows.first(count) if isinstance(self.rows, LazyRows) else self.rows[:count]
        keys = None if self.keys is None else self.keys[:count]
        return replace(self, rows=rows, keys=keys, total_rows=total)

    def column(self, name: str) -> list[Value]:
        """One column's values, top to bottom."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def to_pandas(self) -> pd.DataFrame:
        """The same rows as a DataFrame; None becomes the missing value of its column.

        Whole numbers stay whole: a column of them with absent values is Int64.
        """
        import pandas as pd

        made = pd.DataFrame.from_records(list(self.rows), columns=list(self.columns))
        for name in self.columns:
            values = self.column(name)
            if _whole_with_gaps(values):
                made[name] = pd.Series(values, dtype="Int64")
        return made

    def _repr_html_(self) -> str:
        made = self.to_pandas()
        shown = made.astype(object).where(made.notna(), "")
        return str(shown.to_html(escape=True, index=False))


def _first_of_each(values: Sequence[Value], count: int) -> list[bool]:
    """Whether each value is among the first so many of its like."""
    seen = Counter[Value]()
    first = []
    for value in values:
        seen[value] += 1
        first.append(seen[value] <= count)
    return first


def _whole_with_gaps(values: Sequence[Value]) -> bool:
    known = [value for value in values if value is not None]
    return 0 < len(known) < len(values) and all(type(value) is int for value in known)


def abstentions_in(notes: Sequence[str]) -> tuple[Abstention, ...]:
    """Those of some notes that are abstentions."""
    return tuple(note for note in notes if isinstance(note, Abstention))


def with_notes(table: AnyTable, inputs: Sequence[str], notes: Sequence[str]) -> AnyTable:
    """The table with its inputs and notes, each note once and in order."""
    return replace(table, inputs=tuple(inputs), notes=tuple(dict.fromkeys(notes)))
