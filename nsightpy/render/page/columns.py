"""The columns of a table as people read them on a page: a heading with its unit, and cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nsightpy.output.cells import ABSENT, cells, heading
from nsightpy.render.text.shortening import distinct_names, shorten
from nsightpy.render.text.terminal import by_importance, in_order
from nsightpy.results import Field, Table, Value

MOST_COLUMNS = 8  # the others are shown on demand
WIDEST_NAME = 64
WIDEST_TEXT = 90
LONGEST_WORD = 24


@dataclass(frozen=True)
class Cell:
    """A shown value; `full` says that the text is longer, `bar` is a share in per cent."""

    text: str
    full: bool = False
    bar: float | None = None


@dataclass(frozen=True)
class Column:
    """A column; `more` is one that is shown on demand."""

    field: Field
    heading: str
    cells: Sequence[Cell]
    more: bool = False

    @property
    def kind(self) -> str:
        """How it is set: name, text, word (a text that is not broken) or number."""
        if self.field.kind == "name":
            return "name"
        if not self.field.is_text and self.field.kind != "bool":
            return "number"
        return "word" if all(len(cell.text) <= LONGEST_WORD for cell in self.cells) else "text"


def columns_of(table: Table) -> list[Column]:
    """The columns that hold something, the most important ones first."""
    filled = [f for f in in_order(table.fields) if set(table.column(f.name)) - {None, ""}]
    main = by_importance(filled)[:MOST_COLUMNS]
    fields = sorted(filled, key=lambda field: field.name not in main)
    return [_column(f, table.column(f.name), more=f.name not in main) for f in fields]


def _column(field: Field, values: Sequence[Value], *, more: bool) -> Column:
    texts, unit = cells(field, values)
    title = heading(field) + (f" ({unit})" if unit else "")
    shown = ["" if text == ABSENT else text for text in texts]
    if field.kind == "name":
        short = distinct_names(shown, WIDEST_NAME)
    else:
        short = [shorten(text, WIDEST_TEXT) for text in shown]
    triples = zip(short, shown, values, strict=True)
    made = [Cell(text, full=text != whole, bar=_bar(field, v)) for text, whole, v in triples]
    return Column(field, title, made, more)


def _bar(field: Field, value: Value) -> float | None:
    """The length of a share's bar, in per cent."""
    scale = {"share": 100.0, "%": 1.0}.get(field.kind)
    if scale is None or not isinstance(value, int | float):
        return None
    return min(max(scale * value, 0.0), 100.0)
