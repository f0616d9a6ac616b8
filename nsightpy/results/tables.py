"""What analyses hand to people and machines: tables with named, unit-bearing columns, and notes.

A Table holds raw numbers: ns, bytes, counts. How they are shown is the renderer's business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nsightpy.results.keys import Row, RowKey, Value
from nsightpy.results.notes import Said, abstentions, texts
from nsightpy.units import counted

if TYPE_CHECKING:
    import pandas as pd

AnyTable = TypeVar("AnyTable", bound="Table")
# Instead of a number of rows that nobody counted.
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a table: its public name, what it holds, and how people see it.

    kind: "time" and "moment" (ns; moments are compared, and typed behind --from), "bytes",
    "share" (of one), "ratio", "count", "id", "bool", "name" (of what a row is about), "text", or a
    unit: "GB/s", "%", ... decimals: as it is printed; None for whole numbers. Texts and names come
    out of reports, which anybody can write, unless they are `own` words of nsightpy.

    heading: above it, where its name is none (output.cells). importance: 1 is shown in the
    narrowest terminal; 0 after all others. place: 1, 2, ... stand before the others there, -1
    behind them. width: the fewest cells in which a text can still be read.
    """

    name: str
    kind: str = "count"
    decimals: int | None = None
    own: bool = False
    heading: str = ""
    importance: int = 0
    place: int = 0
    width: int = 0

    @property
    def is_text(self) -> bool:
        """Whether it holds words."""
        return self.kind in ("text", "name")

    @property
    def untrusted(self) -> bool:
        """Whether its values are free text out of reports."""
        return self.is_text and not self.own


def fields_in(kind: str, *names: str, decimals: int | None = None) -> tuple[Field, ...]:
    """Columns that stand beside each other and are of one kind."""
    return tuple(Field(name, kind, decimals) for name in names)


def rows_of(
    fields: Sequence[Field], subjects: Iterable[object], **made: Callable[[Any], Value]
) -> tuple[Row, ...]:
    """A row for each subject: the attributes that columns are named after, or what is `made`."""
    return tuple(
        tuple(
            made[field.name](subject) if field.name in made else getattr(subject, field.name)
            for field in fields
        )
        for subject in subjects
    )


@dataclass(frozen=True, slots=True)
class View:
    """How a terminal shows the rows of a command.

    rows: so many unasked. tree: the column with paths a/b/c, of which each is shown under the one
    that it lies in.
    """

    rows: int = 25
    tree: str = ""


@dataclass(frozen=True, repr=False)
class Table:
    """Rows under named fields. `notes` says what a reader must know to trust them.

    Of a finished answer they are texts; `abstentions` are those on what could not be answered.

    `total_rows` is how many there are where `rows` are the first of more: None where these are all,
    UNKNOWN where nobody counted. `identity` says what rows are about (results.keys), `keys` are
    those that no column gives. None is what the command declares.
    """

    command: str
    fields: tuple[Field, ...]
    rows: Sequence[Row]
    inputs: tuple[str, ...] = ()
    notes: tuple[Said, ...] = ()
    title: str = ""
    total_rows: int | None = None
    identity: tuple[RowKey, ...] | None = None
    keys: tuple[str | None, ...] | None = None
    view: View | None = None
    abstentions: tuple[Mapping[str, str], ...] = ()

    def __repr__(self) -> str:
        rows, notes = counted(len(self.rows), "row"), counted(len(self.notes), "note")
        columns = ", ".join(self.columns)
        return f"<{type(self).__name__} {self.command}: {rows} of {columns}; {notes}>"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> list[Value]:
        return self.column(name)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def records(self) -> list[dict[str, Value]]:
        """The rows as dictionaries by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    @property
    def untrusted(self) -> tuple[str, ...]:
        """The columns with free text out of reports."""
        return tuple(field.name for field in self.fields if field.untrusted)

    @property
    def total(self) -> int:
        """How many rows there are, shown or not; UNKNOWN where nobody counted."""
        return len(self.rows) if self.total_rows is None else self.total_rows

    @property
    def truncated(self) -> bool:
        """Whether there are more rows than these."""
        return self.total == UNKNOWN or self.total > len(self.rows)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The columns of keys that rows have beside their fields."""
        names = [key.name for key in self.identity or () if key.is_in(self.columns)]
        return tuple(dict.fromkeys([*names, *(["key"] if self.keys is not None else [])]))

    def keyed(self) -> Iterator[dict[str, Value]]:
        """The rows as dictionaries, each with the keys of what it is about (results.keys)."""
        wanted = [key for key in self.identity or () if key.is_in(self.columns)]
        names = dict.fromkeys(self.key_names)
        for number, row in enumerate(self.rows):
            record = dict(zip(self.columns, row, strict=True))
            found = ((key.name, key.of(record)) for key in wanted)
            record = {**record, **names, **{name: key for name, key in found if key is not None}}
            yield record if self.keys is None else {**record, "key": self.keys[number]}

    def members(self) -> dict[str, Any]:
        """What the document of this command holds beside rows, as plain JSON values."""
        return {}

    def first(self, count: int | None, of_each: str = "") -> Self:
        """The same with at most so many rows, and how many there were; None: with all.

        Where there is a column `of_each`, so many rows of each of its values.
        """
        if count is None or len(self.rows) <= count:
            return self
        if of_each in self.columns:
            seen = Counter[Value]()
            first = []
            for value, row in zip(self.column(of_each), self.rows, strict=True):
                seen[value] += 1
                first += [row] if seen[value] <= count else []
            return replace(self, rows=tuple(first), total_rows=self.total)
        keys = None if self.keys is None else self.keys[:count]
        return replace(self, rows=self.rows[:count], keys=keys, total_rows=self.total)

    def column(self, name: str) -> list[Value]:
        """One column's values, top to bottom. Raises KeyError where none has this name."""
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns)}")
        index = self.columns.index(name)
        return [row[index] for row in self.rows]

    def to_pandas(self) -> pd.DataFrame:
        """The same rows with their keys; None becomes the missing value of its column.

        Whole numbers stay whole: a column of them with absent values is Int64.
        """
        import pandas as pd

        frame = pd.DataFrame.from_records(list(self.rows), columns=list(self.columns))
        for name in self.columns:
            values = self.column(name)
            if {type(value) for value in values} == {int, type(None)}:
                frame[name] = pd.Series(values, dtype="Int64")
        for name in self.key_names:
            frame[name] = [row[name] for row in self.keyed()]
        return frame

    def _repr_html_(self) -> str:
        frame = self.to_pandas()[list(self.columns)]
        shown = frame.astype(object).where(frame.notna(), "")
        return str(shown.to_html(escape=True, index=False))


def with_notes(
    table: AnyTable, inputs: Sequence[str], notes: Sequence[Said], tool: str = "nsys"
) -> AnyTable:
    """The finished table: its inputs, its notes in the words for the reports of this tool."""
    return replace(
        table, inputs=tuple(inputs), notes=texts(notes, tool), abstentions=abstentions(notes, tool)
    )
