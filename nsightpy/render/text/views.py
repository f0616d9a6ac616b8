"""Which columns answer a question, and which rows a terminal shows unasked."""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy.output.headings import heading
from nsightpy.results import UNKNOWN, Field, Table, Value, View
from nsightpy.units import counted

# What --by splits by tells rows apart: it follows the most important column.
_SPLITS = ("rank", "device", "process", "stream", "grid", "memory", "shape", "thread")
Row = tuple[Value, ...]


def view_of(table: Table) -> View:
    """How the rows of a table are shown."""
    return View() if table.view is None else table.view


def in_order(fields: Sequence[Field]) -> list[Field]:
    """The fields from left to right."""
    left = sorted((field for field in fields if field.place > 0), key=lambda field: field.place)
    right = [field for field in fields if field.place < 0]
    return [*left, *(field for field in fields if field.place == 0), *right]


def by_importance(fields: Sequence[Field]) -> list[str]:
    """Names of columns, the most important first; of the others what a row is about."""
    listed = sorted((f for f in fields if f.importance), key=lambda field: field.importance)
    others = sorted((f for f in fields if not f.importance), key=lambda f: f.kind != "name")
    splits = [field for field in others if field.name in _SPLITS]
    rest = [field for field in others if field.name not in _SPLITS]
    return [field.name for field in (*listed[:1], *splits, *listed[1:], *rest)]


def first_rows(table: Table, most: int | None) -> tuple[Sequence[Row], str]:
    """At most so many rows, and what is to be said of the others; without a number all of them."""
    shown = len(table.rows) if most is None else min(most, len(table.rows))
    total = len(table.rows) if table.total_rows in (None, UNKNOWN) else table.total_rows or 0
    left = counted(total - shown, "more row")
    more = f"and {left}: --top 0 shows them" if total > shown else ""
    if shown == len(table.rows):
        return table.rows, more
    worst = next((field for field in table.fields if field.name == view_of(table).worst), None)
    if worst is None:
        return table.rows[:shown], more
    index = table.fields.index(worst)
    chosen = sorted(range(len(table.rows)), key=lambda row: -_size(table.rows[row][index]))[:shown]
    which = f" (shown: where {heading(worst)} is largest)"
    return [table.rows[row] for row in sorted(chosen)], more + which


def _size(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else float("-inf")
