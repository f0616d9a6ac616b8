"""Tables for people: a unit in every cell, names cut to the terminal, nothing cut when piped."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import IO, TYPE_CHECKING

from nsightpy.output.cells import cell, cells, is_text
from nsightpy.output.escape import display_width, printable
from nsightpy.output.headings import heading
from nsightpy.render.text import layout
from nsightpy.render.text.views import by_importance, first_rows, in_order, view_of
from nsightpy.results import Field, Table, Value

if TYPE_CHECKING:
    from rich.console import Console

WIDEST_CARD = 100


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
    view = view_of(table.command)
    shown_rows, more = first_rows(table, view, rows)
    shown = people_columns(replace(table, rows=shown_rows))
    keys = by_importance(view, [column.key for column in shown])
    kept, hidden = layout.fitted(shown, out.width, keys)
    for line in layout.lines(kept, out.width):
        out.print(line)
    if more:
        out.print(more, style="dim")
    if hidden:
        out.print(layout.hidden_line(hidden, min(out.width, layout.WIDEST_NOTE)), style="dim")


def people_columns(table: Table) -> list[layout.Shown]:
    """The known columns of a table as people read them, in the order of its view."""
    known = [f for f in table.fields if set(table.column(f.name)) - {None, ""}]
    view = view_of(table.command)
    fields = in_order(view, known)
    shown = [shown_column(table.command, field, table.column(field.name)) for field in fields]
    if not view.once:
        return shown
    keys = [column.cells for column in shown if column.key in view.groups]
    again = [
        place > 0 and all(c[place] == c[place - 1] for c in keys) for place in range(len(table))
    ]
    return [_once(column, again) if column.key in view.once else column for column in shown]


def _once(column: layout.Shown, again: Sequence[bool]) -> layout.Shown:
    """A column of what is said of a group of rows: in the first row of each."""
    cells = ("" if same else text for text, same in zip(column.cells, again, strict=True))
    return replace(column, cells=tuple(cells))


def shown_column(command: str, field: Field, values: Sequence[Value]) -> layout.Shown:
    """A column's cells under its heading, which names the unit where all cells share it."""
    texts, unit = cells(field, values)
    title = (field.heading or heading(command, field.name)) + (f" ({unit})" if unit else "")
    return layout.Shown(title, texts, is_text(field), field.name, field.own)


def print_cards(table: Table, out: Console) -> None:
    """Print each row as a block of its own, one line per known field, texts wrapped."""
    from rich.text import Text

    labels = [field.heading or heading(table.command, field.name) for field in table.fields]
    label_width = max(map(display_width, labels)) + layout.GAP
    limit = min(out.width, WIDEST_CARD) - label_width
    # options of a command inside a text are not divided at their hyphens
    wrap = partial(textwrap.wrap, width=limit, break_on_hyphens=False)
    for place, row in enumerate(table.rows):
        if place:
            out.print()
        for field, label, value in zip(table.fields, labels, row, strict=True):
            if value is None:
                continue
            text = printable(str(value)) if is_text(field) else cell(field, value)
            # warnings are separated by one bar in a text
            parts = [part for phrase in text.split(" | ") for part in wrap(phrase) or [""]]
            for name, part in zip_longest([label], parts, fillvalue=""):
                out.print(Text(f"{name:<{label_width}}", style="dim") + Text(part))
