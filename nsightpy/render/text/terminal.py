"""Tables for people: a unit in every cell, names cut to the terminal, nothing cut when piped."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import IO, TYPE_CHECKING

from nsightpy.output.cells import cell, cells
from nsightpy.output.escape import display_width, printable
from nsightpy.output.headings import heading
from nsightpy.render.text import layout
from nsightpy.render.text.views import by_importance, first_rows, in_order, view_of
from nsightpy.results import Field, Table, Value

if TYPE_CHECKING:
    from rich.console import Console

WIDEST_CARD, MOST_CARDS = 100, 4


def console(stream: IO[str] | None = None, width: int | None = None) -> Console:
    """A console that colours terminals only (never with NO_COLOR), and never wraps a pipe."""
    from rich.console import Console

    stream = stream or sys.stdout
    if width is None and not stream.isatty():
        width = layout.UNLIMITED
    return Console(
        file=stream,
        width=width,
        no_color=True if os.environ.get("NO_COLOR") else None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )


def print_table(table: Table, out: Console, rows: int | None = None) -> None:
    """Print a table in the console's width, at most so many rows; one line says what is left out.

    A table without rows is one line: headings of nothing would only be read as an answer.
    """
    if not table.rows:
        out.print("no rows", style="dim")
        return
    shown_rows, more = first_rows(table, rows)
    shown = people_columns(replace(table, rows=shown_rows))
    keys = by_importance(table.fields)
    kept, hidden = layout.fitted(shown, out.width, keys)
    for line in layout.lines(kept, out.width):
        out.print(line)
    if more:
        out.print(more, style="dim")
    if hidden:
        out.print(layout.hidden_line(hidden, min(out.width, layout.WIDEST_NOTE)), style="dim")


def people_columns(table: Table) -> list[layout.Shown]:
    """The known columns of a table as people read them, in the order of its view."""
    filled = [f for f in table.fields if set(table.column(f.name)) - {None, ""}]
    view = view_of(table)
    shown = [
        shown_column(field, indented(values) if field.name == view.tree else values)
        for field in in_order(filled)
        for values in [table.column(field.name)]
    ]
    if not view.once:
        return shown
    keys = [column.cells for column in shown if column.key in view.groups]
    again = [
        index > 0 and all(c[index] == c[index - 1] for c in keys) for index in range(len(table))
    ]
    return [_once(column, again) if column.key in view.once else column for column in shown]


def indented(paths: Sequence[Value]) -> list[Value]:
    """Paths a/b/c, outer ones first, as a tree: each by its own name under the one it lies in."""
    above: list[str] = []
    names: list[Value] = []
    for path in map(str, paths):
        while above and not path.startswith(above[-1] + "/"):
            above.pop()
        names.append("  " * len(above) + (path[len(above[-1]) + 1 :] if above else path))
        above.append(path)
    return names


def _once(column: layout.Shown, again: Sequence[bool]) -> layout.Shown:
    """A column of what is said of a group of rows: in the first row of each."""
    cells = ("" if same else text for text, same in zip(column.cells, again, strict=True))
    return replace(column, cells=tuple(cells))


def shown_column(field: Field, values: Sequence[Value]) -> layout.Shown:
    """A column's cells under its heading, which names the unit where all cells share it."""
    texts, unit = cells(field, values)
    title = heading(field) + (f" ({unit})" if unit else "")
    return layout.Shown(
        title, texts, field.is_text, field.name, field.own, field.kind == "name", field.width
    )


def print_cards(table: Table, out: Console, rows: int | None = None) -> None:
    """Print each row as a block, one line per known field, texts wrapped; many as a table."""
    from rich.text import Text

    if len(table) > MOST_CARDS:
        print_table(table, out, rows)
        return
    labels = list(map(heading, table.fields))
    label_width = max(map(display_width, labels)) + layout.GAP
    limit = min(out.width, WIDEST_CARD) - label_width
    wrap = partial(layout.wrapped, width=limit)
    shown_rows, more = first_rows(table, rows)
    for number, row in enumerate(shown_rows):
        if number:
            out.print()
        for field, label, value in zip(table.fields, labels, row, strict=True):
            if value is None:
                continue
            text = printable(str(value)) if field.is_text else cell(field, value)
            # warnings are separated by one bar in a text
            parts = [part for phrase in text.split(" | ") for part in wrap(phrase) or [""]]
            for name, part in zip_longest([label], parts, fillvalue=""):
                out.print(Text(f"{name:<{label_width}}", style="dim") + Text(part))
    if more:
        out.print(more, style="dim")
